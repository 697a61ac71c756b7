//! A pod runs where its volumes are, or can be made: rather where they take less of what there is (`shape` says otherwise). One that
//! waits for claims which get theirs without it waits with them.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    arguments::Shape,
    framework::{Points, Reason, Refusal, Rejection, SCORE_MAX, Score, Scoring, real, whole},
    snapshot::{Row, Snapshot},
    storage::{self, ClassUse},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeBinding",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    skips: Some(|pod, _, _| pod.claims.is_empty()),
    score: Some(Score { weight: 1, points: Points::All(points) }),
    actor: Actor::Author,
    wait: "VolumeBinding",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo, snapshot: &Snapshot) -> Option<Refusal> {
    let (message, claim) = storage::refusal(pod, &snapshot.storage)?;
    Some(Refusal { message, claim: Some(("PersistentVolumeClaim", claim)) })
}

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if pod.claims.is_empty() {
        return;
    }
    let Err(conflicts) = among.volumes.on(row.name, row.labels) else { return };
    for (applies, text) in [
        (conflicts.elsewhere, "node(s) didn't match PersistentVolume's node affinity"),
        (conflicts.none_found, "node(s) didn't find available persistent volumes to bind"),
        (conflicts.no_room, "node(s) did not have enough free storage"),
        (conflicts.missing, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    ] {
        if applies {
            rejection.finally_because(Reason::Text(text));
        }
    }
}

/// `StorageCapacityScoring`: only volumes that are chosen or made with the node count.
fn points(scoring: &Scoring<'_>) -> Option<Vec<i64>> {
    let Scoring { pod, snapshot, feasible, arguments } = *scoring;
    if pod.claims.is_empty() {
        return None;
    }
    let volumes = snapshot.volumes_of(pod);
    if volumes.unbound.is_empty() {
        return None;
    }
    let points = |idx: &usize| {
        let row = snapshot.row_at(*idx);
        let decisions = volumes.on(row.name, row.labels).unwrap_or_default();
        mean(&volumes.uses(&decisions, row.labels), &arguments.volumes.shape)
    };
    Some(feasible.iter().map(points).collect())
}

/// Each storage class has the same weight.
fn mean(uses: &[ClassUse], shape: &Shape) -> i64 {
    if uses.is_empty() {
        return 0;
    }
    let sum: i64 = uses.iter().map(|it| shape.at(use_percent(*it))).sum();
    whole((real(sum) / real(i64::try_from(uses.len()).unwrap_or(i64::MAX))).round())
}

fn use_percent(ClassUse { requested, capacity }: ClassUse) -> i64 {
    if capacity == 0 || requested > capacity {
        return SCORE_MAX;
    }
    let percent = i128::from(requested) * i128::from(SCORE_MAX) / i128::from(capacity);
    i64::try_from(percent).unwrap_or(SCORE_MAX)
}
