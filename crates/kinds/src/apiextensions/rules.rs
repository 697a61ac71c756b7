//! Rules in CEL of a definition: each compiles, and costs no more than it may. Asked of what is new: what is stored already may
//! have been right once.

use corten_schema::{
    Cursor,
    structural::{Occurrences, check_rule, too_expensive_together},
};

/// Those of one version.
pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    let cost = part(schema, true, Occurrences::ONCE, None);
    if let Some(problem) = too_expensive_together(cost) {
        schema.forbidden(&problem);
    }
}

/// What its rules cost together. `uncorrelated` is the outermost list whose items of before nobody can find again.
fn part<'a>(schema: Cursor<'a>, is_root: bool, occurs: Occurrences, uncorrelated: Option<Cursor<'a>>) -> u64 {
    let mut cost = 0_u64;
    for rule in schema.list("x-kubernetes-validations") {
        let found = check_rule(schema.value(), is_root, rule.value(), occurs);
        cost = cost.saturating_add(found.cost);
        for problem in &found.problems {
            let at = rule.at(problem.field);
            if problem.is_cost { at.forbidden(&problem.detail) } else { at.invalid(&problem.detail) }
        }
        if found.problems.is_empty() {
            old_self(rule, found.uses_old_self, uncorrelated);
        }
    }
    let below = occurs.below(schema.value());
    for (_, property) in schema.at("properties").entries() {
        cost = cost.saturating_add(part(property, false, occurs, uncorrelated));
    }
    if schema.at("additionalProperties").map().is_some() {
        cost = cost.saturating_add(part(schema.at("additionalProperties"), false, below, uncorrelated));
    }
    if schema.at("items").map().is_some() {
        let has_keys = schema.at("x-kubernetes-list-type").str() == "map";
        let uncorrelated = uncorrelated.or((!has_keys).then_some(schema));
        cost = cost.saturating_add(part(schema.at("items"), false, below, uncorrelated));
    }
    cost
}

fn old_self(rule: Cursor<'_>, is_used: bool, uncorrelated: Option<Cursor<'_>>) {
    if let (true, Some(list)) = (is_used, uncorrelated) {
        rule.at("rule").invalid(&format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {}",
            list.path()
        ));
    }
    if !is_used && rule.at("optionalOldSelf").exists() {
        rule.at("optionalOldSelf").invalid("may not be set if oldSelf is not used in rule");
    }
}
