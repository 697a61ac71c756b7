//! Checks that a definition must pass where it is new, or where it breaks them for the first time: what is stored already may be
//! wrong, and whoever changes something else of it is not refused (`validationOptions` of apiextensions' validation.go).

use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use serde_json::Value;

use super::{
    completeness, defaults, item_keys, keywords, list_items, pattern, place, rule_text, selectable_fields,
    structural_schema,
};

type Check = fn(Cursor<'_>);

/// Each looks at one version, whatever the others find.
const CHECKS: [Check; 7] = [
    place::validate,
    pattern::validate,
    completeness::validate,
    list_items::validate,
    item_keys::validate,
    rule_text::validate,
    selectable_fields::validate,
];

/// Upstream looks at no rule of a schema that breaks one of these: it has no `celContext` then.
const SHAPE: [Check; 4] = [structural_schema::validate, place::shape, pattern::validate, completeness::validate];

/// Upstream looks at no rule of a part of a schema where one of these finds something there or below (`SchemaErrors`).
const PARTS: [Check; 5] =
    [place::metadata, keywords::validate, list_items::validate, item_keys::validate, rule_text::validate];

/// What is wrong with the versions of `new`, and was not of those of `old`.
pub(super) fn violations_of(new: &Value, old: Option<&Value>) -> Vec<Violation> {
    let found = CHECKS.iter().filter_map(|it| broken(*it, new, old)).flatten();
    found.take(Violation::MOST + 1).collect()
}

/// What is wrong with defaults, of a definition that nothing else is wrong with.
pub(super) fn violations_of_defaults(new: &Value, old: Option<&Value>) -> Vec<Violation> {
    broken(defaults::validate, new, old).unwrap_or_default()
}

fn broken(check: Check, new: &Value, old: Option<&Value>) -> Option<Vec<Violation>> {
    let found = |it| violations(it, |definition: Cursor<'_>| definition.at("spec").list("versions").for_each(check));
    let in_new = found(new);
    let was_before = || old.is_some_and(|it| !found(it).is_empty());
    (!in_new.is_empty() && !was_before()).then_some(in_new)
}

/// What is not structural of a definition that was stored before that was asked for, as one from an earlier Kubernetes
/// (`calculateCondition` of apiextensions' nonstructuralschema).
pub fn not_structural(definition: &Value) -> Vec<Violation> {
    violations(definition, |definition: Cursor<'_>| {
        let unknown = definition.at("spec").at("preserveUnknownFields");
        if unknown.bool() {
            unknown.invalid("must be false");
        }
        definition.at("spec").list("versions").for_each(structural_schema::validate);
    })
}

/// Upstream asks of no change that schemas be structural that were not before (`requireStructuralSchema`).
pub(super) fn has_structural_schemas(definition: &Value) -> bool {
    let found = |it: Cursor<'_>| it.at("spec").list("versions").for_each(structural_schema::validate);
    violations(definition, found).is_empty()
}

/// The paths within one version at which its schema is wrong; none at all where rules in CEL cannot be looked at.
pub(super) fn faults_of(version: &Value) -> Option<Vec<String>> {
    let found = |check: &Check| violations(version, *check);
    SHAPE.iter().all(|it| found(it).is_empty()).then(|| PARTS.iter().flat_map(found).map(|it| it.path).collect())
}
