//! Keeps what few may read.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::SECRETS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, made},
    read::{entries, text},
};
use serde_json::{Value, json};

use super::config_map::{DATA_BYTES_MAX, data_key, decoded_len, immutable_data};
use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SECRETS,
    singular: "secret",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.Secret",
    view_of: None,
    selectable_fields: &["type"],
    columns: &[
        column("Type", "How programs are to read it.", |object, _| json!(text(object, "/type"))),
        column("Data", "How many entries it has.", |object, _| json!(entries(object, "/data"))),
        AGE,
    ],
    policy: &Secret,
};

struct Secret;

const REDACTED: &str = "<secret contents redacted>";

impl Policy for Secret {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        // Plain text wins over encoded text of the same key, and is never stored.
        if let Some(Value::Object(plain)) = object.shift_remove("stringData")
            && let Some(data) = made(object, "data")
        {
            for (key, value) in plain {
                data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
            }
        }
        fill(object, "type", "Opaque");
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |secret| {
            let data = secret.at("data");
            let mut bytes = 0;
            for (key, value) in data.entries() {
                data_key(value, key);
                bytes += decoded_len(value.str());
            }
            if bytes > DATA_BYTES_MAX {
                data.report(Violation::too_long(data.path(), DATA_BYTES_MAX));
            }
            content(secret, data);
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |new| {
            if new.at("type").value() != &old["type"] {
                new.at("type").invalid("field is immutable");
            }
            immutable_data(new, old, &["data"]);
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

/// What each known type of Secret must hold.
fn content(secret: Cursor<'_>, data: Cursor<'_>) {
    let must_have = |key: &'static str| {
        if !data.key(key).exists() {
            data.key(key).missing("");
        }
    };
    match secret.at("type").str() {
        "kubernetes.io/service-account-token" => {
            let account = secret.at("metadata").at("annotations").key("kubernetes.io/service-account.name");
            account.required();
        }
        "kubernetes.io/dockercfg" => must_be_json(data.key(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => must_be_json(data.key(".dockerconfigjson")),
        // Either will do.
        "kubernetes.io/basic-auth" if !data.key("username").exists() && !data.key("password").exists() => {
            must_have("username");
            must_have("password");
        }
        "kubernetes.io/ssh-auth" => {
            data.key("ssh-privatekey").required();
        }
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(must_have),
        _ => {}
    }
}

fn must_be_json(entry: Cursor<'_>) {
    if !entry.exists() {
        return entry.missing("");
    }
    let text: String = entry.str().split(['\r', '\n']).collect();
    let bytes = STANDARD.decode(text).unwrap_or_default();
    // Where the text is JSON of another type the reader's own words would show it.
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => {}
        Ok(_) => entry.invalid_as(REDACTED, "json: cannot unmarshal it into Go value of type map[string]interface {}"),
        Err(error) => entry.invalid_as(REDACTED, &error.to_string()),
    }
}
