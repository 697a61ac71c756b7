//! What PodGroups, CompositePodGroups and the templates of Workloads share.

use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::Cursor;
use corten_validation::rules;

/// At most one constraint of a kind.
const CONSTRAINTS_MAX: usize = 1;
const CLAIMS_MAX: usize = 4;

/// Exactly one of the fields of a union.
pub(super) fn one_of(union: Cursor<'_>, fields: &[&'static str]) {
    let quoted = |names: &mut dyn Iterator<Item = &&'static str>| {
        names.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
    };
    let all = quoted(&mut fields.iter());
    let given = quoted(&mut fields.iter().filter(|it| union.at(it).exists()));
    match fields.iter().filter(|it| union.at(it).exists()).count() {
        0 => union.invalid_as("", &format!("must specify one of: {all}")),
        1 => {}
        _ => union.invalid_as(&format!("{{{given}}}"), &format!("must specify exactly one of: {all}")),
    }
}

/// A group of Pods: `smallest` is the field of its gang's size.
pub(super) fn validate(group: Cursor<'_>, smallest: &'static str) {
    let policy = group.at("schedulingPolicy");
    one_of(policy, &["basic", "gang"]);
    let gang = policy.at("gang");
    if gang.exists() && gang.at(smallest).int() < 1 {
        let size = gang.at(smallest);
        size.report(Violation::invalid(size.path(), size.int(), "must be greater than or equal to 1"));
    }
    let topology = group.at("schedulingConstraints").at("topology");
    topology.each().for_each(|it| it.at("key").follows(field::qualified_name));
    if topology.items().len() > CONSTRAINTS_MAX {
        topology.report(Violation::too_many(topology.path(), topology.items().len(), CONSTRAINTS_MAX));
    }
    if group.at("disruptionMode").exists() {
        one_of(group.at("disruptionMode"), &["all", "single"]);
    }
    if !group.at("priorityClassName").is_empty() {
        group.at("priorityClassName").follows(field::dns1123_subdomain);
    }
    rules::optional_one_of(group.at("preemptionPolicy"), &["Never", "PreemptLowerPriority"]);
    claims(group.at("resourceClaims"));
}

fn claims(claims: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for claim in claims.each() {
        let name = claim.at("name");
        if name.required() {
            name.follows(field::dns1123_label);
        }
        if seen.contains(name.str()) {
            name.duplicate();
        }
        seen.insert(name.str());
        one_of(claim, &["resourceClaimName", "resourceClaimTemplateName"]);
        for name in ["resourceClaimName", "resourceClaimTemplateName"].map(|it| claim.at(it)) {
            if !name.is_empty() {
                name.follows(field::dns1123_subdomain);
            }
        }
    }
    if claims.items().len() > CLAIMS_MAX {
        claims.report(Violation::too_many(claims.path(), claims.items().len(), CLAIMS_MAX));
    }
}

/// Where a group that was made from a Workload's template came from.
pub(super) fn origin(spec: Cursor<'_>) {
    let reference = spec.at("workloadRef");
    if reference.exists() {
        for name in ["workloadName", "templateName"].map(|it| reference.at(it)) {
            if name.required() {
                name.follows(field::dns1123_subdomain);
            }
        }
    }
    if !spec.at("parentCompositePodGroupName").is_empty() {
        spec.at("parentCompositePodGroupName").follows(field::dns1123_subdomain);
    }
}
