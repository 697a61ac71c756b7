//! Which objects parametrize a policy.

use corten_meta::field;
use corten_schema::Cursor;
use corten_validation::{labels::label_selector, read::text};
use serde_json::Value;

use crate::columns::selector_text;

/// A policy's column.
pub(super) fn param_kind(policy: &Value) -> String {
    match &policy["spec"]["paramKind"] {
        Value::Object(_) => {
            format!("{}/{}", text(policy, "/spec/paramKind/apiVersion"), text(policy, "/spec/paramKind/kind"))
        }
        _ => "<unset>".into(),
    }
}

/// A binding's column.
pub(super) fn param_ref(binding: &Value) -> String {
    let reference = &binding["spec"]["paramRef"];
    let name = match text(binding, "/spec/paramRef/name") {
        _ if !reference.is_object() => return "<unset>".into(),
        "" => selector_text(&reference["selector"]),
        name => name.to_owned(),
    };
    match text(binding, "/spec/paramRef/namespace") {
        "" => name,
        namespace => format!("{namespace}/{name}"),
    }
}

pub(super) fn kind(kind: Cursor<'_>) {
    api_version(kind.at("apiVersion"));
    let name = kind.at("kind");
    if name.required() {
        let reasons = field::dns1035_label(&name.str().to_lowercase());
        if !reasons.is_empty() {
            name.invalid(&format!("may have mixed case, but should otherwise match: {}", reasons.join(",")));
        }
    }
}

fn api_version(version: Cursor<'_>) {
    if !version.required() {
        return;
    }
    let parts: Vec<&str> = version.str().split('/').collect();
    let (group, name) = match parts[..] {
        [name] => ("", name),
        [group, name] => (group, name),
        _ => return version.invalid(&format!("unexpected GroupVersion string: {}", version.str())),
    };
    let reasons = field::dns1123_subdomain(group);
    if !group.is_empty() && !reasons.is_empty() {
        version.invalid_as(group, &reasons.join(","));
    }
    let reasons = field::dns1035_label(name);
    if name.is_empty() {
        version.invalid("version must be specified");
    } else if !reasons.is_empty() {
        version.invalid_as(name, &reasons.join(","));
    }
}

pub(super) fn reference(reference: Cursor<'_>) {
    if !reference.exists() {
        return;
    }
    let (name, selector) = (reference.at("name"), reference.at("selector"));
    if !name.is_empty() {
        name.follows(field::path_segment);
        if selector.exists() {
            name.forbidden("name and selector are mutually exclusive");
        }
    }
    if selector.exists() {
        label_selector(selector);
        if !name.is_empty() {
            selector.forbidden("name and selector are mutually exclusive");
        }
    }
    if name.is_empty() && !selector.exists() {
        reference.missing("one of name or selector must be specified");
    }
    let action = reference.at("parameterNotFoundAction");
    if action.required() {
        action.one_of(&["Deny", "Allow"]);
    }
}

/// The policy a binding is of.
pub(super) fn policy_name(name: Cursor<'_>) {
    if name.required() {
        name.follows(field::dns1123_subdomain);
    }
}
