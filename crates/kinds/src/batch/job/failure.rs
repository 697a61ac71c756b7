//! `podFailurePolicy`: which ends of a Pod fail the Job, count, or are overlooked.

use std::collections::BTreeSet;

use corten_meta::field;
use corten_schema::Cursor;

const RULES_MAX: usize = 20;
const PATTERNS_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

pub(super) fn validate(spec: Cursor<'_>) {
    let pods = spec.at("template").at("spec");
    let containers: BTreeSet<&str> =
        pods.list("containers").chain(pods.list("initContainers")).map(|it| it.at("name").str()).collect();
    let rules = spec.at("podFailurePolicy").at("rules");
    rules.at_most(RULES_MAX);
    for rule in rules.each() {
        action(rule.at("action"), spec.at("backoffLimitPerIndex").exists());
        let (codes, conditions) = (rule.at("onExitCodes"), rule.at("onPodConditions"));
        if codes.exists() {
            exit_codes(codes, &containers);
        }
        if !conditions.is_empty() {
            patterns(conditions);
        }
        match (codes.exists(), !conditions.is_empty()) {
            (true, true) => rule.invalid_unshown("specifying both OnExitCodes and OnPodConditions is not supported"),
            (false, false) => rule.invalid_unshown("specifying one of OnExitCodes and OnPodConditions is required"),
            _ => {}
        }
    }
}

fn action(action: Cursor<'_>, per_index: bool) {
    if action.is_empty() {
        action.missing(&format!("valid values: {}", listed(&ACTIONS)));
    } else if action.one_of(&ACTIONS) && action.str() == "FailIndex" && !per_index {
        action.invalid("requires the backoffLimitPerIndex to be set");
    }
}

/// `["In" "NotIn"]`
fn listed(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

fn patterns(conditions: Cursor<'_>) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    conditions.at_most(PATTERNS_MAX);
    for pattern in conditions.each() {
        pattern.at("type").follows(field::qualified_name);
        let status = pattern.at("status");
        if status.is_empty() {
            status.missing(&format!("valid values: {}", listed(&STATUSES)));
        } else {
            status.one_of(&STATUSES);
        }
    }
}

fn exit_codes(codes: Cursor<'_>, containers: &BTreeSet<&str>) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let operator = codes.at("operator");
    if operator.is_empty() {
        operator.missing(&format!("valid values: {}", listed(&OPERATORS)));
    } else {
        operator.one_of(&OPERATORS);
    }
    let container = codes.at("containerName");
    if container.exists() && !containers.contains(container.str()) {
        container.invalid("must be one of the container or initContainer names in the pod template");
    }
    let values = codes.at("values");
    if values.is_empty() {
        values.invalid("at least one value is required");
    } else {
        values.at_most(EXIT_CODES_MAX);
    }
    let mut seen = BTreeSet::new();
    for value in values.each() {
        if operator.str() == "In" && value.int() == 0 {
            value.invalid("must not be 0 for the In operator");
        }
        if !seen.insert(value.int()) {
            value.duplicate();
        }
    }
    if !values.each().map(Cursor::int).is_sorted() {
        values.invalid("must be ordered");
    }
}
