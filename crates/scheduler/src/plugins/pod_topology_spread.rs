//! Pods of one kind spread over zones, nodes or any other label: `topologySpreadConstraints` that say `DoNotSchedule`.
//!
//! `ScheduleAnyway` is not scored yet, nor are upstream's own soft constraints for pods that have none: they cost no pod
//! its place.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, among::Among, framework::Reason, snapshot::Row};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodTopologySpread",
    filter_among: Some(filter),
    actor: Actor::Author,
    wait: "PodTopologySpread",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, reasons: &mut Vec<Reason<'p>>) {
    for (constraint, domains) in pod.spread.iter().zip(&among.spread) {
        let Some(domain) = row.labels.get(&constraint.topology_key) else {
            reasons.push(Reason::Text("node(s) didn't match pod topology spread constraints (missing required label)"));
            return;
        };
        let here = domains.counts.get(&**domain).copied().unwrap_or(0) + i64::from(constraint.selects(&pod.labels));
        if here - domains.fewest > constraint.max_skew {
            reasons.push(Reason::Text("node(s) didn't match pod topology spread constraints"));
            return;
        }
    }
}
