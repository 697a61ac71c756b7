//! Pods of one kind spread over zones, nodes or any other label: `topologySpreadConstraints`, strictly (`DoNotSchedule`) or rather
//! than not (`ScheduleAnyway`).
//!
//! A pod that has no constraints has those of the configuration, among the pods of its Services and its workload.

use std::{borrow::Cow, collections::BTreeMap};

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::{Among, Domains},
    arguments::Arguments,
    framework::{Points, Reason, Rejection, SCORE_MAX, Score, Scoring, real, whole},
    pod_info::Constraint,
    snapshot::{Row, Snapshot},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodTopologySpread",
    filter_among: Some(filter),
    skips: Some(|pod, snapshot, arguments| {
        pod.spread.is_empty() && arguments.spread.hard(pod, &snapshot.groupings).is_empty()
    }),
    score: Some(Score { weight: 2, points: Points::All(points) }),
    actor: Actor::Author,
    wait: "PodTopologySpread",
    ..Plugin::NONE
};

const HOSTNAME: &str = "kubernetes.io/hostname";

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    for domains in &among.spread {
        let Domains { constraint, counts, fewest, .. } = domains;
        let Some(domain) = row.labels.get(&constraint.topology_key) else {
            let text = "node(s) didn't match pod topology spread constraints (missing required label)";
            rejection.finally_because(Reason::Text(text));
            return;
        };
        let here = counts.get(&**domain).copied().unwrap_or(0) + i64::from(constraint.selects(&pod.labels));
        if here - fewest > constraint.max_skew {
            rejection.because(Reason::Text("node(s) didn't match pod topology spread constraints"));
            return;
        }
    }
}

/// The constraints that are scored. Where they are the system's own, nodes need not have the labels of all of them
/// (`requireAllTopologies`).
struct Soft<'a> {
    constraints: Cow<'a, [Constraint]>,
    needs_all_labels: bool,
}

impl<'a> Soft<'a> {
    fn of(pod: &'a PodInfo, snapshot: &Snapshot, arguments: &Arguments) -> Self {
        if !pod.spread.is_empty() || !pod.soft_spread.is_empty() {
            return Self { constraints: Cow::Borrowed(&pod.soft_spread), needs_all_labels: true };
        }
        let constraints = arguments.spread.soft(pod, &snapshot.groupings);
        Self { constraints: Cow::Owned(constraints), needs_all_labels: !arguments.spread.is_of_system }
    }

    fn counts_node(&self, row: &Row<'_>) -> bool {
        !self.needs_all_labels || self.constraints.iter().all(|it| row.labels.contains_key(&it.topology_key))
    }
}

/// `PreScore`, `Score` and `NormalizeScore`.
fn points(scoring: &Scoring<'_>) -> Option<Vec<i64>> {
    let Scoring { pod, snapshot, feasible, arguments } = *scoring;
    let soft = Soft::of(pod, snapshot, arguments);
    if soft.constraints.is_empty() {
        return None;
    }
    let rows: Vec<(Row<'_>, bool)> =
        feasible.iter().map(|it| snapshot.row_at(*it)).map(|it| (it, soft.counts_node(&it))).collect();
    let n_counted = rows.iter().filter(|it| it.1).count();
    let mut sums = vec![0.0; rows.len()];
    for constraint in soft.constraints.iter() {
        let is_host = constraint.topology_key == HOSTNAME;
        let domains = if is_host { BTreeMap::new() } else { domain_counts(constraint, &soft, &rows, (pod, snapshot)) };
        let weight = weight_of(if is_host { n_counted } else { domains.len() });
        for ((row, _), sum) in rows.iter().zip(&mut sums).filter(|it| it.0.1) {
            let Some(domain) = row.labels.get(&constraint.topology_key) else { continue };
            let count =
                if is_host { constraint.count(pod, row) } else { domains.get(&Some(&**domain)).copied().unwrap_or(0) };
            *sum += real(count) * weight + real(constraint.max_skew - 1);
        }
    }
    let mut points = vec![0; rows.len()];
    normalize(&rows, &sums, &mut points);
    Some(points)
}

/// How many pods there are in each domain that a node which can run the pod is in; nodes without the label are in one together.
fn domain_counts<'a>(
    constraint: &Constraint,
    soft: &Soft<'_>,
    rows: &[(Row<'a>, bool)],
    (pod, snapshot): (&PodInfo, &'a Snapshot),
) -> BTreeMap<Option<&'a str>, i64> {
    let domain = |row: &Row<'a>| row.labels.get(&constraint.topology_key).map(|it| &**it);
    let mut counts: BTreeMap<_, i64> = rows.iter().filter(|it| it.1).map(|it| (domain(&it.0), 0)).collect();
    let has_one_label = soft.constraints.iter().all(|it| it.topology_key == constraint.topology_key);
    let key = &*constraint.topology_key;
    if constraint.counts_every_node(pod)
        && (has_one_label || !soft.needs_all_labels)
        && snapshot.topology_pod_counts.counts_by([key].into_iter())
    {
        for (value, in_domain) in constraint.count_by_domain(pod, snapshot) {
            if let Some(count) = counts.get_mut(&Some(value)) {
                *count += in_domain;
            }
        }
        return counts;
    }
    // Those without the label have no score by it.
    let labelled = snapshot.nodes().filter(|it| domain(it).is_some() && soft.counts_node(it));
    for row in labelled.filter(|it| constraint.honors(pod, it)) {
        if let Some(count) = counts.get_mut(&domain(&row)) {
            *count += constraint.count(pod, &row);
        }
    }
    counts
}

/// The more domains there are, the more each pod in one of them weighs (`topologyNormalizingWeight`).
fn weight_of(n_domains: usize) -> f64 {
    real(i64::try_from(n_domains).unwrap_or(i64::MAX).saturating_add(2)).ln()
}

/// The fewest pods have the most points; a node without the labels has none.
fn normalize(rows: &[(Row<'_>, bool)], sums: &[f64], points: &mut [i64]) {
    let score = |sum: f64| whole(sum.round());
    let counted = || rows.iter().zip(sums).filter(|it| it.0.1).map(|it| score(*it.1));
    let (least, most) = (counted().min().unwrap_or(0), counted().max().unwrap_or(0));
    for (((_, is_counted), sum), points) in rows.iter().zip(sums).zip(points) {
        *points = match is_counted {
            false => 0,
            true if most == 0 => SCORE_MAX,
            true => SCORE_MAX.saturating_mul(most.saturating_add(least).saturating_sub(score(*sum))) / most,
        };
    }
}
