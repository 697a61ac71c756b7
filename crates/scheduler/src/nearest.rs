//! Which node comes closest to taking a pod that fits nowhere: the one of which the least must change.

use crate::{
    PLUGINS, PodInfo, Profile, Snapshot,
    cycle::{Failure, Nearest},
    framework::Rejection,
    plugins::{NODE_AFFINITY, NODE_UNSCHEDULABLE, TAINT_TOLERATION},
    snapshot::Row,
};

/// The node that came furthest through the filters. What somebody has set on a node for a while is looked at before what the pod wants of
/// nodes, and is less: where all that came further are not what the pod asks for, it is the first that is, and is cordoned or tainted.
pub(crate) fn of(pod: &PodInfo, failure: &Failure, snapshot: &Snapshot, profile: &Profile) -> Option<Nearest> {
    let furthest = failure.nearest.clone()?;
    if PLUGINS[furthest.plugin_idx].name != NODE_AFFINITY {
        return Some(furthest);
    }
    let is_for_a_while = |idx: &usize| [NODE_UNSCHEDULABLE, TAINT_TOLERATION].contains(&PLUGINS[*idx].name);
    let for_a_while: Vec<usize> = profile.filters.iter().copied().filter(is_for_a_while).collect();
    if !failure.rejections.iter().any(|it| for_a_while.contains(&it.plugin_idx)) {
        return Some(furthest);
    }
    let rejects = |plugin_idx: usize, row: &Row<'_>| {
        let mut rejection = Rejection::default();
        PLUGINS[plugin_idx].filter.inspect(|filter| filter(pod, row, &profile.arguments, &mut rejection));
        !rejection.reasons().is_empty()
    };
    let closer = (0..snapshot.n_rows()).find_map(|node_idx| {
        let row = snapshot.row_at(node_idx);
        let plugin_idx = for_a_while.iter().copied().find(|it| row.known && rejects(*it, &row))?;
        (!rejects(furthest.plugin_idx, &row)).then_some(Nearest { node_idx, plugin_idx, shortfall: 0 })
    });
    closer.or(Some(furthest))
}
