//! Keeps configuration that Pods read as files and environment.

use corten_api::resources::CONFIG_MAPS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{read::entries, rules};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CONFIG_MAPS,
    singular: "configmap",
    short_names: &["cm"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.ConfigMap",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Data", "How many entries it has.", |object, _| {
            json!(entries(object, "/data") + entries(object, "/binaryData"))
        }),
        AGE,
    ],
    policy: &ConfigMap,
};

struct ConfigMap;

/// As many bytes as all values of a ConfigMap or Secret may have together.
pub(super) const DATA_BYTES_MAX: usize = 1024 * 1024;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

impl Policy for ConfigMap {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |object| {
            let (data, binary) = (object.at("data"), object.at("binaryData"));
            let mut bytes = 0;
            for (key, value) in data.entries() {
                data_key(value, key);
                if binary.value().get(key).is_some() {
                    value.invalid_as(key, "duplicate of key present in binaryData");
                }
                bytes += value.str().len();
            }
            for (key, value) in binary.entries() {
                data_key(value, key);
                bytes += decoded_len(value.str());
            }
            if bytes > DATA_BYTES_MAX {
                object.report(Violation::too_long(Violation::WHOLE_OBJECT, DATA_BYTES_MAX));
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |new| immutable_data(new, old, &["data", "binaryData"]))
    }

    fn has_generation(&self) -> bool {
        false
    }
}

/// Once `immutable` is set, neither it nor the data may change.
pub(super) fn immutable_data<'a>(new: Cursor<'a>, old: &Value, fields: &[&'a str]) {
    if old["immutable"] != true {
        return;
    }
    if !new.at("immutable").bool() {
        new.at("immutable").forbidden(IMMUTABLE);
    }
    let empty = json!({});
    let or_empty = |value: &Value| if value.is_null() { empty.clone() } else { value.clone() };
    for field in fields {
        if or_empty(new.at(field).value()) != or_empty(&old[*field]) {
            new.at(field).forbidden(IMMUTABLE);
        }
    }
}

/// The key of an entry must do as the name of a file.
pub(super) fn data_key(entry: Cursor<'_>, key: &str) {
    for reason in rules::data_key_reasons(key) {
        entry.invalid_as(key, &reason);
    }
}

/// How many bytes base64 text stands for.
pub(super) fn decoded_len(base64: &str) -> usize {
    let digits = base64.bytes().filter(|it| !matches!(it, b'=' | b'\r' | b'\n')).count();
    digits * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_together_are_bounded() {
        let told = |data: Value| -> Vec<String> {
            let (half, quarter) = ("x".repeat(DATA_BYTES_MAX / 2), "eHh4".repeat(DATA_BYTES_MAX / 12));
            let mut object = json!({ "metadata": { "name": "c" }, "data": data, "binaryData": { "b": quarter } });
            object["data"]["half"] = json!(half);
            ConfigMap.validate(&object).iter().map(ToString::to_string).collect()
        };
        assert!(told(json!({ "quarter": "x".repeat(DATA_BYTES_MAX / 4) })).is_empty());
        assert_eq!(
            told(json!({ "more": "x".repeat(DATA_BYTES_MAX / 4 + 2) })),
            ["[]: Too long: may not be more than 1048576 bytes"]
        );
    }
}
