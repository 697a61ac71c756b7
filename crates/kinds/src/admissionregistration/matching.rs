//! Which requests a webhook or a policy is about: rules, selectors, conditions.

use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::Cursor;
use corten_validation::{
    fill::{Object, each, fill_pointer, inner, made},
    labels::label_selector,
};
use serde_json::Value;

use super::expressions::condition as condition_expression;

const CONDITIONS_MAX: usize = 64;

/// Rules are about resources of any scope unless they say otherwise.
pub(super) fn default_rules(object: &mut Object, list: &str) {
    each(object, list).for_each(|it| fill_pointer(it, "scope", "*"));
}

pub(super) fn default_selectors(object: &mut Object) {
    fill_pointer(object, "matchPolicy", "Equivalent");
    made(object, "namespaceSelector");
    made(object, "objectSelector");
}

/// What a policy's spec says of requests unless told otherwise.
pub(super) fn default_policy(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
    fill_pointer(spec, "failurePolicy", "Fail");
    if let Some(matched) = inner(spec, "matchConstraints") {
        default_resources(matched);
    }
}

pub(super) fn default_resources(object: &mut Object) {
    default_selectors(object);
    default_rules(object, "resourceRules");
    default_rules(object, "excludeResourceRules");
}

/// `MatchResources`.
pub(super) fn resources(matched: Cursor<'_>) {
    let policy = matched.at("matchPolicy");
    policy.one_of(&["Equivalent", "Exact"]);
    for selector in ["namespaceSelector", "objectSelector"] {
        let selector = matched.at(selector);
        if selector.exists() {
            label_selector(selector);
        } else {
            selector.missing("");
        }
    }
    for rule in matched.list("resourceRules").chain(matched.list("excludeResourceRules")) {
        named_rule(rule);
    }
}

fn named_rule(rule: Cursor<'_>) {
    let mut names = BTreeSet::new();
    for name in rule.list("resourceNames") {
        name.follows(field::path_segment);
        if !names.insert(name.str()) {
            name.duplicate();
        }
    }
    self::rule(rule);
}

/// `RuleWithOperations`.
pub(super) fn rule(rule: Cursor<'_>) {
    let operations = rule.at("operations");
    operations.required();
    alone(operations, "if '*' is present, must not specify other operations");
    for operation in operations.each() {
        operation.one_of(&["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
    let (groups, versions) = (rule.at("apiGroups"), rule.at("apiVersions"));
    groups.required();
    alone(groups, "if '*' is present, must not specify other API groups");
    versions.required();
    alone(versions, "if '*' is present, must not specify other API versions");
    for version in versions.each() {
        version.required();
    }
    resource_names(rule.at("resources"));
    if rule.at("scope").exists() {
        rule.at("scope").one_of(&["*", "Cluster", "Namespaced"]);
    }
}

/// Whoever wants everything lists nothing else.
fn alone(list: Cursor<'_>, detail: &str) {
    if list.items().len() > 1 && list.items().iter().any(|it| it == "*") {
        list.invalid(detail);
    }
}

fn resource_names(list: Cursor<'_>) {
    list.required();
    let (mut all_below, mut below_all) = (BTreeSet::new(), BTreeSet::new());
    let (mut everything, mut all, mut plain) = (false, false, false);
    for item in list.each() {
        let name = item.str();
        if name.is_empty() {
            item.missing("");
            continue;
        }
        everything |= name == "*/*";
        all |= name == "*";
        let Some((resource, subresource)) = name.split_once('/') else {
            plain = name != "*";
            continue;
        };
        if all_below.contains(resource) {
            item.invalid(&format!("if '{resource}/*' is present, must not specify {name}"));
        }
        if below_all.contains(subresource) {
            item.invalid(&format!("if '*/{subresource}' is present, must not specify {name}"));
        }
        if subresource == "*" {
            all_below.insert(resource);
        }
        if resource == "*" {
            below_all.insert(subresource);
        }
    }
    if everything && list.items().len() > 1 {
        list.invalid("if '*/*' is present, must not specify other resources");
    }
    if all && plain {
        list.invalid("if '*' is present, must not specify other resources without subresources");
    }
}

/// `matchConditions`.
pub(super) fn conditions(list: Cursor<'_>, has_params: bool) {
    if list.items().len() > CONDITIONS_MAX {
        list.report(Violation::too_many(list.path(), list.items().len(), CONDITIONS_MAX));
    }
    let mut names = BTreeSet::new();
    for condition in list.each() {
        let (expression, name) = (condition.at("expression"), condition.at("name"));
        if expression.str().trim().is_empty() {
            expression.missing("");
        } else {
            condition_expression(expression, has_params);
        }
        if name.required() {
            name.follows(field::qualified_name);
            if !names.insert(name.str()) {
                name.duplicate();
            }
        }
    }
}
