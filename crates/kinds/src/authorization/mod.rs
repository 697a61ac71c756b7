//! `authorization.k8s.io`: reviews that are answered, never stored.

pub(crate) mod local_subject_access_review;
pub(crate) mod self_subject_access_review;
pub(crate) mod self_subject_rules_review;
pub(crate) mod subject_access_review;

use corten_schema::Cursor;

/// A review asks about a resource or a path, one of the two.
fn attributes(spec: Cursor<'_>) {
    let (resource, path) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
    if resource.exists() && path.exists() {
        path.invalid("cannot be specified in combination with resourceAttributes");
    }
    if !resource.exists() && !path.exists() {
        resource.invalid("exactly one of nonResourceAttributes or resourceAttributes must be specified");
    }
    for name in ["fieldSelector", "labelSelector"] {
        selector(resource.at(name), name == "labelSelector");
    }
}

/// A selector is written out, or in requirements: one of the two.
fn selector(selector: Cursor<'_>, is_of_labels: bool) {
    if !selector.exists() {
        return;
    }
    let (raw, requirements) = (selector.at("rawSelector"), selector.at("requirements"));
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => raw.invalid("may not specified at the same time as requirements"),
        (true, true) => requirements.missing("when not specifying a rawSelector, requirements are required"),
        _ => {}
    }
    for requirement in requirements.each() {
        let (key, operator, values) = (requirement.at("key"), requirement.at("operator"), requirement.at("values"));
        key.required();
        match operator.str() {
            "In" | "NotIn" if values.is_empty() => {
                values.missing("must be specified when `operator` is 'In' or 'NotIn'")
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            // Fields may be selected in ways that come later; those select nothing out.
            _ if is_of_labels => operator.invalid("not a valid selector operator"),
            "" => operator.missing(""),
            _ => {}
        }
    }
}

/// Whom a review is about, where it is not about its asker.
fn subject(spec: Cursor<'_>) {
    if spec.at("user").is_empty() && spec.at("groups").is_empty() {
        spec.at("user").invalid_as("", "at least one of user or group must be specified");
    }
}
