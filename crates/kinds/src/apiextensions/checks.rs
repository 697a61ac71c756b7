//! Checks that a definition must pass where it is new, or where it breaks them for the first time: what is stored already may be
//! wrong, and whoever changes something else of it is not refused (`validationOptions` of apiextensions' validation.go).

use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use serde_json::Value;

use super::{completeness, defaults, item_keys, list_items, pattern, place, rule_text, selectable_fields};

/// Each looks at one version. The last ones rely on what the first ones found nothing wrong with.
const CHECKS: [fn(Cursor<'_>); 8] = [
    place::validate,
    pattern::validate,
    completeness::validate,
    list_items::validate,
    item_keys::validate,
    rule_text::validate,
    selectable_fields::validate,
    defaults::validate,
];

/// What is wrong with the versions of `new`, and was not of those of `old`: the first check that finds something tells all that
/// it finds.
pub(super) fn violations_of(new: &Value, old: Option<&Value>) -> Vec<Violation> {
    CHECKS.iter().find_map(|check| broken(*check, new, old)).unwrap_or_default()
}

fn broken(check: fn(Cursor<'_>), new: &Value, old: Option<&Value>) -> Option<Vec<Violation>> {
    let found = |it| violations(it, |definition: Cursor<'_>| definition.at("spec").list("versions").for_each(check));
    let in_new = found(new);
    let was_before = || old.is_some_and(|it| !found(it).is_empty());
    (!in_new.is_empty() && !was_before()).then_some(in_new)
}
