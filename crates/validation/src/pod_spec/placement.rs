//! What decides where a Pod may run: node selectors, affinity, tolerations, spreading.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::field;
use corten_schema::Cursor;

use crate::labels;

pub(super) fn validate(spec: Cursor<'_>) {
    labels::labels(spec.at("nodeSelector"));
    node_affinity(spec.at("affinity").at("nodeAffinity"));
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.at("affinity").at(kind);
        affinity.list("requiredDuringSchedulingIgnoredDuringExecution").for_each(pod_term);
        for preferred in affinity.list("preferredDuringSchedulingIgnoredDuringExecution") {
            weight(preferred.at("weight"));
            pod_term(preferred.at("podAffinityTerm"));
        }
    }
    spec.list("tolerations").for_each(toleration);
    spread(spec);
    let mut seen = BTreeSet::new();
    for gate in spec.list("schedulingGates").map(|it| it.at("name")) {
        gate.follows(field::qualified_name);
        if !seen.insert(gate.str()) {
            gate.duplicate();
        }
    }
}

fn weight(weight: Cursor<'_>) {
    if !(1..=100).contains(&weight.int()) {
        weight.invalid("must be in the range 1-100");
    }
}

fn node_affinity(affinity: Cursor<'_>) {
    let required = affinity.at("requiredDuringSchedulingIgnoredDuringExecution");
    if required.exists() {
        node_selector(required);
    }
    for preferred in affinity.list("preferredDuringSchedulingIgnoredDuringExecution") {
        weight(preferred.at("weight"));
        node_term(preferred.at("preference"));
    }
}

/// `v1.NodeSelector`: a node that one of the terms fits.
pub fn node_selector(selector: Cursor<'_>) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.is_empty() {
        terms.missing("must have at least one node selector term");
    }
    terms.each().for_each(node_term);
}

fn node_term(term: Cursor<'_>) {
    for requirement in term.list("matchExpressions") {
        requirement.at("key").follows(field::qualified_name);
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
            "Gt" | "Lt" => {
                if values.items().len() != 1 {
                    values.missing("must be specified single value when `operator` is 'Lt' or 'Gt'");
                }
            }
            _ => operator.invalid_as(operator.str(), "not a valid selector operator"),
        }
    }
    for requirement in term.list("matchFields") {
        let values = requirement.at("values");
        if values.items().len() != 1 {
            values.missing("must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
        }
        if !matches!(requirement.at("operator").str(), "In" | "NotIn") {
            requirement.at("operator").invalid_as(requirement.at("operator").str(), "not a valid selector operator");
        }
        if requirement.at("key").str() != "metadata.name" {
            requirement.at("key").invalid_as(requirement.at("key").str(), "not a valid field selector key");
        }
    }
}

fn pod_term(term: Cursor<'_>) {
    labels::label_selector(term.at("labelSelector"));
    labels::label_selector(term.at("namespaceSelector"));
    for key in term.list("matchLabelKeys").chain(term.list("mismatchLabelKeys")) {
        key.follows(field::qualified_name);
    }
    for namespace in term.list("namespaces") {
        namespace.follows(field::dns1123_label);
    }
    let topology = term.at("topologyKey");
    if topology.is_empty() {
        topology.missing("can not be empty");
    }
    topology.follows(field::qualified_name);
}

/// Labels whose values come from the Pod itself.
fn match_label_keys(constraint: Cursor<'_>) {
    let (keys, selector) = (constraint.at("matchLabelKeys"), constraint.at("labelSelector"));
    if keys.is_empty() {
        return;
    }
    if !selector.exists() {
        keys.forbidden("must not be specified when labelSelector is not set");
    }
    let in_labels = selector.at("matchLabels").entries().map(|it| it.0);
    let in_expressions = selector.list("matchExpressions").map(|it| it.at("key").str());
    let known: BTreeSet<&str> = in_labels.chain(in_expressions).collect();
    for key in keys.each() {
        key.follows(field::qualified_name);
        if known.contains(key.str()) {
            key.invalid("exists in both matchLabelKeys and labelSelector");
        }
    }
}

pub fn toleration(toleration: Cursor<'_>) {
    let (key, operator, value) = (toleration.at("key"), toleration.at("operator"), toleration.at("value"));
    let effect = toleration.at("effect");
    if !key.is_empty() {
        key.follows(field::qualified_name);
    }
    if key.is_empty() && operator.str() != "Exists" {
        operator.invalid_as(
            operator.str(),
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        );
    }
    if toleration.at("tolerationSeconds").exists() && effect.str() != "NoExecute" {
        effect.invalid_as(effect.str(), "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    match operator.str() {
        "" | "Equal" => {
            for reason in field::label_value(value.str()) {
                operator.invalid_as(value.str(), &reason);
            }
        }
        "Exists" => {
            if !value.is_empty() {
                operator.invalid_as(value.str(), "value must be empty when `operator` is 'Exists'");
            }
        }
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    }
}

fn spread(spec: Cursor<'_>) {
    let pair = |it: Cursor<'_>| (it.at("topologyKey").str().to_owned(), it.at("whenUnsatisfiable").str().to_owned());
    let mut pairs: BTreeMap<(String, String), usize> = BTreeMap::new();
    for constraint in spec.list("topologySpreadConstraints") {
        *pairs.entry(pair(constraint)).or_default() += 1;
    }
    for constraint in spec.list("topologySpreadConstraints") {
        let (skew, key, when) =
            (constraint.at("maxSkew"), constraint.at("topologyKey"), constraint.at("whenUnsatisfiable"));
        if skew.int() <= 0 {
            skew.invalid_int("must be greater than zero");
        }
        if key.is_empty() {
            key.missing("can not be empty");
        }
        when.one_of(&["DoNotSchedule", "ScheduleAnyway"]);
        // `ValidateSpreadConstraintNotRepeat`: the one that another repeats is reported.
        let later = pairs.entry(pair(constraint)).or_default();
        *later = later.saturating_sub(1);
        if *later > 0 {
            let pair = format!("{{{}, {}}}", key.str(), when.str());
            constraint.report(corten_meta::Violation::duplicate(
                format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path()),
                format!("{pair:?}"),
            ));
        }
        labels::label_selector(constraint.at("labelSelector"));
        let domains = constraint.at("minDomains");
        if domains.exists() {
            if domains.int() <= 0 {
                domains.invalid_int("must be greater than zero");
            }
            if when.str() != "DoNotSchedule" {
                domains.invalid(&format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    when.str()
                ));
            }
        }
        match_label_keys(constraint);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"].map(|it| constraint.at(it)) {
            if policy.exists() {
                policy.one_of(&["Honor", "Ignore"]);
            }
        }
    }
}
