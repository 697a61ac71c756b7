//! Fields by which custom resources can be selected (KEP-4358): of simple types, and no two the same.

use std::collections::BTreeSet;

use corten_schema::Cursor;

use super::field_path;

pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    let mut seen = BTreeSet::new();
    for path in version.list("selectableFields").map(|it| it.at("jsonPath")).filter(|it| !it.is_empty()) {
        let found = match field_path::find(path.str(), schema.value()) {
            _ if path.str().contains('[') => Err("array notation is not allowed".to_owned()),
            found => found,
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                path.invalid(&format!("is an invalid path: {error}"));
                continue;
            }
        };
        if found.names.first().is_some_and(|it| it == "metadata") {
            path.invalid("must not point to fields in metadata");
        }
        if !matches!(found.schema["type"].as_str(), Some("string" | "boolean" | "integer")) {
            path.invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            );
        }
        if !seen.insert(found.names) {
            path.duplicate();
        }
    }
}
