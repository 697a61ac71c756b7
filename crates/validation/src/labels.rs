//! Labels, annotations, and the selectors that look for labels.

use corten_meta::field;
use corten_schema::Cursor;

const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

pub fn labels(labels: Cursor<'_>) {
    for (key, value) in labels.entries() {
        for reason in field::qualified_name(key) {
            labels.invalid_as(key, &reason);
        }
        for reason in field::label_value(value.str()) {
            labels.invalid_as(value.str(), &reason);
        }
    }
}

pub fn annotations(annotations: Cursor<'_>) {
    let mut bytes = 0;
    for (key, value) in annotations.entries() {
        for reason in field::qualified_name(&key.to_lowercase()) {
            annotations.invalid_as(key, &reason);
        }
        bytes += key.len() + value.str().len();
    }
    if bytes > ANNOTATION_BYTES_MAX {
        annotations.report(corten_meta::Violation::too_long(annotations.path(), ANNOTATION_BYTES_MAX));
    }
}

/// Annotations that are meant for somebody, and say by a domain for whom (`ValidateUserAnnotations`).
pub fn user_annotations(map: Cursor<'_>) {
    annotations(map);
    for (key, _) in map.entries() {
        if !key.contains('/') && field::qualified_name(&key.to_lowercase()).is_empty() {
            map.invalid_as(key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
        }
    }
}

/// `metav1.LabelSelector`; an absent one is fine. True where nothing was found wrong.
pub fn label_selector(selector: Cursor<'_>) -> bool {
    let before = selector.reported();
    labels(selector.at("matchLabels"));
    for requirement in selector.list("matchExpressions") {
        let (operator, values) = (requirement.at("operator"), requirement.at("values"));
        match operator.str() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    values.missing("must be specified when `operator` is 'In' or 'NotIn'");
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
                }
            }
            _ => operator.invalid_as(operator.str(), "not a valid selector operator"),
        }
        requirement.at("key").follows(field::qualified_name);
        for value in values.each() {
            value.follows(field::label_value);
        }
    }
    selector.reported() == before
}
