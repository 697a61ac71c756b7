//! A resource within a custom resource is one: it says what it is, and its metadata is that of every object
//! (`pkg/apiserver/schema/objectmeta` of apiextensions-apiserver).

use corten_meta::{Violation, field};
use corten_schema::{Cursor, structural::Structural, violations};
use corten_validation::labels;
use serde_json::Value;

pub(super) fn violations_of(schema: &Structural, object: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, resource) in schema.embedded_resources(object) {
        let below = |it: Violation| Violation { path: format!("{path}.{}", it.path), ..it };
        found.extend(violations(resource, one).into_iter().map(below));
        if found.len() > Violation::MOST {
            break;
        }
    }
    found
}

fn one(resource: Cursor<'_>) {
    for name in ["apiVersion", "kind"] {
        let text = resource.at(name);
        if resource.map().is_some_and(|it| !it.contains_key(name)) {
            text.missing("must not be empty");
        } else if !text.value().is_string() {
            text.invalid("must be a string");
        } else if text.is_empty() {
            text.invalid("must not be empty");
        }
    }
    let (version, kind) = (resource.at("apiVersion"), resource.at("kind"));
    if version.str().matches('/').count() > 1 {
        version.invalid(&format!("unexpected GroupVersion string: {}", version.str()));
    }
    let reasons = field::dns1035_label(&kind.str().to_lowercase());
    if !kind.str().is_empty() && !reasons.is_empty() {
        kind.invalid(&format!("may have mixed case, but should otherwise match: {}", reasons.join(",")));
    }
    metadata(resource.at("metadata"));
}

/// A name may be missing: who makes a whole object of it gives it one.
fn metadata(metadata: Cursor<'_>) {
    for name in ["generateName", "name"].map(|it| metadata.at(it)).into_iter().filter(|it| !it.is_empty()) {
        let reasons = field::path_segment(name.str());
        name.invalid_all(reasons);
    }
    if !metadata.at("namespace").is_empty() {
        metadata.at("namespace").follows(field::dns1123_label);
    }
    labels::labels(metadata.at("labels"));
    labels::annotations(metadata.at("annotations"));
    for name in metadata.list("finalizers") {
        name.follows(field::qualified_name);
    }
}
