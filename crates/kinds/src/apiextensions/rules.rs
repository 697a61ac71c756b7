//! Rules in CEL of a definition: each compiles, and costs no more than it may. Asked of what is new: what is stored already may
//! have been right once.
//!
//! Rules are looked at where the schema is right: what a wrong one says of them is no help (`validateCustomResourceDefinitionValidation`
//! and `ValidateCustomResourceDefinitionOpenAPISchema`).

use corten_cel::ListKind;
use corten_meta::Violation;
use corten_schema::{
    Cursor,
    structural::{Occurrences, TotalCost, check_rule},
};

use super::{checks, internal_form, parts};

/// Those of one version.
pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    let mut has_rules = false;
    parts::structural(schema, &mut |it| has_rules |= !it.at("x-kubernetes-validations").is_empty());
    if !has_rules {
        return;
    }
    let Some(faults) = checks::faults_of(version.value()) else { return };
    let faulty = Faulty { version: version.path(), faults };
    let mut total = TotalCost::default();
    part(schema, true, Occurrences::ONCE, None, (&faulty, &mut total));
    if let Some(excess) = total.excess() {
        for path in excess.contributors {
            schema.report(Violation::forbidden(path, excess.contributor));
        }
        schema.forbidden(&excess.whole);
    }
}

/// Where a schema is wrong.
struct Faulty {
    version: String,
    faults: Vec<String>,
}

impl Faulty {
    /// Is it wrong here or below?
    fn has(&self, schema: Cursor<'_>) -> bool {
        if self.faults.is_empty() {
            return false;
        }
        let path = schema.path();
        let within = path[self.version.len()..].trim_start_matches('.');
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
        self.faults.iter().filter_map(|it| it.strip_prefix(within)).any(is_below)
    }
}

/// Its rules, and those of what is in it. `uncorrelated` is the outermost list whose items of before nobody can find again.
fn part<'a>(
    schema: Cursor<'a>,
    is_root: bool,
    occurs: Occurrences,
    uncorrelated: Option<Cursor<'a>>,
    (faulty, total): (&Faulty, &mut TotalCost),
) {
    let rules = schema.at("x-kubernetes-validations");
    let are_looked_at = !rules.is_empty() && !faulty.has(schema);
    for rule in rules.each().filter(|_| are_looked_at) {
        let found = check_rule(schema.value(), is_root, rule.value(), occurs);
        for (field, cost) in &found.costs {
            total.add(*cost, || rule.at(field).path());
        }
        for problem in &found.problems {
            let at = rule.at(problem.field);
            if problem.is_cost {
                at.forbidden(&problem.detail);
            } else {
                let shown = internal_form::rule(rule.value());
                at.report(Violation::invalid(at.path(), shown, &problem.detail));
            }
        }
        if found.problems.is_empty() {
            old_self(rule, found.uses_old_self, uncorrelated);
        }
    }
    let below = occurs.below(schema.value());
    for (_, property) in schema.at("properties").entries() {
        part(property, false, occurs, uncorrelated, (faulty, &mut *total));
    }
    if schema.at("additionalProperties").map().is_some() {
        part(schema.at("additionalProperties"), false, below, uncorrelated, (faulty, &mut *total));
    }
    if schema.at("items").map().is_some() {
        let has_keys = schema.at("x-kubernetes-list-type").str() == ListKind::MAP;
        let uncorrelated = uncorrelated.or((!has_keys).then_some(schema));
        part(schema.at("items"), false, below, uncorrelated, (faulty, &mut *total));
    }
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
