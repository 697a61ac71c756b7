//! Rules in CEL of a definition: each compiles, and costs no more than it may. Asked of what is new: what is stored already may
//! have been right once.

use corten_schema::{
    Cursor,
    structural::{Occurrences, check_rule, too_expensive_together},
};

/// Those of one version.
pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    let cost = part(schema, true, Occurrences::ONCE);
    if let Some(problem) = too_expensive_together(cost) {
        schema.forbidden(&problem);
    }
}

/// What its rules cost together.
fn part(schema: Cursor<'_>, is_root: bool, occurs: Occurrences) -> u64 {
    let mut cost = 0_u64;
    for rule in schema.list("x-kubernetes-validations") {
        let (problems, of_rule) = check_rule(schema.value(), is_root, rule.value(), occurs);
        cost = cost.saturating_add(of_rule);
        for problem in problems {
            let at = rule.at(problem.field);
            if problem.is_cost { at.forbidden(&problem.detail) } else { at.invalid(&problem.detail) }
        }
    }
    let below = occurs.below(schema.value());
    for (_, property) in schema.at("properties").entries() {
        cost = cost.saturating_add(part(property, false, occurs));
    }
    for inner in ["additionalProperties", "items"].map(|it| schema.at(it)).into_iter().filter(|it| it.map().is_some()) {
        cost = cost.saturating_add(part(inner, false, below));
    }
    cost
}
