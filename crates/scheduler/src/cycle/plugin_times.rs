//! What each plugin takes by itself, of a try now and then: a clock that is read for each would cost every try more than most plugins do.
//!
//! What was said of nodes is kept, so that often no plugin looks at any. Of a try that is timed, one node is shown to all of them
//! once more, and what they say of it is not needed.

use std::ops::Deref;

use super::Cycle;
use crate::{
    PLUGINS, PodInfo, Profile, Snapshot,
    among::Among,
    framework::{Points, Refusal, Rejection},
    observer::{ExtensionPoint, Fact, Moment, Observer, PointStatus, Span},
};

/// Tells how long one plugin took until now; gives that.
pub(super) fn tell(
    observer: &dyn Observer,
    plugin: usize,
    (point, status): (ExtensionPoint, PointStatus),
    from: Moment,
) -> Moment {
    let to = observer.moment();
    observer.tell(&Fact::PluginRan { plugin, point, status, span: Span { from, to } });
    to
}

/// As [`super::refusal`].
pub(super) fn refusal(
    pod: &PodInfo,
    snapshot: &Snapshot,
    profile: &Profile,
    observer: &dyn Observer,
) -> Option<(usize, Refusal)> {
    let mut begun = observer.moment();
    profile.pre_filters.iter().find_map(|idx| {
        let refusal = PLUGINS[*idx].pre_filter?(pod, snapshot);
        let is_refused = refusal.is_some();
        let status = if is_refused { PointStatus::UnschedulableAndUnresolvable } else { PointStatus::Success };
        begun = tell(observer, *idx, (ExtensionPoint::PreFilter, status), begun);
        Some((*idx, refusal?))
    })
}

impl Cycle {
    /// Shows the first node that can run the pod to the plugins that had their say, else the first that might.
    pub(super) fn time_plugins<'a, A: Deref<Target = Among<'a>>>(
        &self,
        pod: &'a PodInfo,
        snapshot: &'a Snapshot,
        profile: &Profile,
        among: &A,
        observer: &dyn Observer,
    ) {
        let shown = self.feasible.first().or(self.resolvable.first()).copied();
        let shown = shown.or_else(|| (0..snapshot.n_rows()).find(|it| snapshot.row_at(*it).known));
        let Some(row) = shown.map(|it| snapshot.row_at(it)) else { return };
        let mut rejection = Rejection::default();
        let mut begun = observer.moment();
        for idx in profile.filters.iter().filter(|it| self.filtered_by.contains(**it)) {
            if let Some(filter) = PLUGINS[*idx].filter {
                filter(pod, &row, &profile.arguments, &mut rejection);
            }
            if let Some(filter) = PLUGINS[*idx].filter_among {
                filter(pod, &row, among, &mut rejection);
            }
            begun = tell(observer, *idx, (ExtensionPoint::Filter, status_of(&rejection)), begun);
            if !rejection.reasons().is_empty() {
                return;
            }
        }
        // Of one node only it is clear which is best.
        let scores = profile.scores.iter().filter(|_| self.feasible.len() > 1);
        for (idx, _) in scores {
            if let Some(Points::Each { raw, .. }) = PLUGINS[*idx].score.as_ref().map(|it| &it.points) {
                std::hint::black_box(raw(pod, &row, &profile.arguments));
                begun = tell(observer, *idx, (ExtensionPoint::Score, PointStatus::Success), begun);
            }
        }
    }
}

fn status_of(rejection: &Rejection<'_>) -> PointStatus {
    match rejection.is_final() {
        _ if rejection.reasons().is_empty() => PointStatus::Success,
        true => PointStatus::UnschedulableAndUnresolvable,
        false => PointStatus::Unschedulable,
    }
}
