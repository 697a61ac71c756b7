//! What a rule in CEL says beside its expression: its message, and the field that it is about.

use corten_schema::Cursor;

use super::{field_path, parts};

pub(super) fn validate(version: Cursor<'_>) {
    parts::structural(version.at("schema").at("openAPIV3Schema"), &mut |schema| {
        for rule in schema.list("x-kubernetes-validations") {
            message(rule);
            field(rule.at("fieldPath"), schema);
        }
    });
}

fn message(rule: Cursor<'_>) {
    let (message, expression) = (rule.at("message"), rule.at("messageExpression"));
    let is_blank = message.str().trim().is_empty();
    if !message.is_empty() && is_blank {
        message.invalid("message must be non-empty if specified");
    } else if is_blank && has_line_break(rule.at("rule").str().trim()) {
        message.missing("message must be specified if rule contains line breaks");
    }
    if !expression.is_empty() && expression.str().trim().is_empty() {
        expression.missing("messageExpression must be non-empty if specified");
    }
}

fn field(path: Cursor<'_>, schema: Cursor<'_>) {
    if path.is_empty() {
        return;
    }
    if path.str().trim().is_empty() {
        path.invalid("fieldPath must be non-empty if specified");
    }
    if has_line_break(path.str()) {
        path.invalid("fieldPath must not contain line breaks");
    }
    if field_path::find(path.str(), schema.value()).is_err() {
        path.invalid("fieldPath must be a valid path");
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
