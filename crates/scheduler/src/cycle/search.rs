//! The search for nodes that can run a pod. It goes on where the last one ended, and ends when enough are found.

use std::{
    collections::BTreeSet,
    ops::{Deref, Range},
};

use super::{Cycle, Tally, first_rejection, n_wanted, rejected_by, shortfall};
use crate::{
    PLUGINS, PodInfo, Snapshot,
    among::Among,
    framework::{Reason, Rejection},
    profile::Profile,
    verdicts::{Kind, Outcome, Rejected, Verdict, own_score},
};

impl Cycle {
    pub(super) fn begin(&mut self) {
        self.feasible.clear();
        self.totals.clear();
        self.is_any_normalized = false;
    }

    /// The node can run the pod. What it scores by plugins that look at it alone is known.
    pub(super) fn take(&mut self, idx: usize, (score, is_plain): (i64, bool)) {
        self.feasible.push(idx);
        self.totals.push(score);
        self.is_any_normalized |= !is_plain;
    }

    /// As [`Cycle::filter`], of the only nodes that a plugin may let the pod run on (`PreFilterResult`): no other is looked at.
    fn filter_named<'a, A: Deref<Target = Among<'a>>>(
        &mut self,
        search: &Search<'_, 'a, A>,
        (plugin_idx, names): (usize, &BTreeSet<&str>),
    ) -> Tally<'a> {
        let Search { snapshot, profile, .. } = search;
        let n_wanted = n_wanted(names.len(), profile.percentage_of_nodes_to_score);
        let (mut found, mut n_known) = (Found::default(), 0);
        for idx in names.iter().filter_map(|it| snapshot.idx_of(it)).filter(|it| snapshot.row_at(*it).known) {
            if self.feasible.len() >= n_wanted {
                break;
            }
            n_known += 1;
            match search.look_anew(idx, &mut found) {
                Look::Takes(score, is_plain) => self.take(idx, (score, is_plain)),
                Look::Resolvable => self.resolvable.push(idx),
                Look::Hopeless => {}
            }
        }
        let mut tally = found.told(None);
        if snapshot.n_nodes() > n_known {
            tally.count(plugin_idx, Reason::Unnamed(PLUGINS[plugin_idx].name), snapshot.n_nodes() - n_known);
        }
        tally
    }

    /// Takes nodes in order as long as it is known that they can run the pod, and more are wanted. Answers how many those were. This
    /// is what most tries spend their time on.
    fn take_known(&mut self, kind: &Kind, snapshot: &Snapshot, rows: Range<usize>, n_wanted: usize) -> usize {
        let (first, n_before) = (rows.start, self.feasible.len());
        let versions = &snapshot.versions()[rows.clone()];
        let known = kind.verdicts(rows).iter().zip(versions).take(n_wanted - n_before);
        let mut is_plain = true;
        for (idx, (verdict, version)) in (first..).zip(known) {
            if !kind.is_taken(verdict, *version) {
                break;
            }
            self.feasible.push(idx);
            self.totals.push(verdict.number);
            is_plain &= verdict.is_plain;
        }
        self.is_any_normalized |= !is_plain;
        self.feasible.len() - n_before
    }

    /// Fills `feasible`, until enough are found, and `resolvable`.
    pub(super) fn filter<'a, A: Deref<Target = Among<'a>>>(
        &mut self,
        pod: &'a PodInfo,
        snapshot: &'a Snapshot,
        profile: &Profile,
        among: &A,
    ) -> Tally<'a> {
        self.begin();
        let mut search = Search { pod, snapshot, profile, among, others: Vec::new() };
        if let Some((plugin_idx, names)) = profile.only_nodes(pod) {
            return self.filter_named(&search, (plugin_idx, &names));
        }
        let n_rows = snapshot.n_rows();
        let n_wanted = n_wanted(snapshot.n_nodes(), profile.percentage_of_nodes_to_score);
        search.others = profile.other_filters(pod, snapshot);
        self.filtered_by = profile.own_filters().iter().chain(&search.others).copied().collect();
        let mut verdicts = std::mem::take(&mut self.verdicts);
        let mut kind = verdicts.of(pod, n_rows);
        let (mut found, mut n_visited) = (Found::default(), 0);
        let from_start = self.start_idx % n_rows.max(1);
        for range in [from_start..n_rows, 0..from_start] {
            let mut idx = range.start;
            while idx < range.end && self.feasible.len() < n_wanted {
                if let Some(kind) = kind.as_deref().filter(|_| search.is_of_node_alone()) {
                    let taken = self.take_known(kind, snapshot, idx..range.end, n_wanted);
                    idx += taken;
                    n_visited += taken;
                    if idx >= range.end || self.feasible.len() >= n_wanted {
                        break;
                    }
                }
                let kind = kind.as_deref_mut().filter(|_| !snapshot.has_nominated_pods(idx));
                match search.look(idx, kind, &mut found) {
                    Look::Takes(score, is_plain) => self.take(idx, (score, is_plain)),
                    Look::Resolvable => self.resolvable.push(idx),
                    Look::Hopeless => {}
                }
                idx += 1;
                n_visited += 1;
            }
        }
        let tally = found.told(kind.as_deref());
        self.verdicts = verdicts;
        #[cfg(test)]
        search.check(self, (from_start, n_visited), &tally);
        self.start_idx = (from_start + n_visited) % n_rows.max(1);
        tally
    }
}

/// What one search is about.
struct Search<'s, 'a, A> {
    pod: &'a PodInfo,
    snapshot: &'a Snapshot,
    profile: &'s Profile,
    among: &'s A,
    /// The filters that look beyond a node and do not skip the pod.
    others: Vec<usize>,
}

/// What was seen of a node.
enum Look {
    /// It can run the pod, and scores so by itself.
    Takes(i64, bool),
    /// It might if others left it.
    Resolvable,
    Hopeless,
}

impl<'a, A: Deref<Target = Among<'a>>> Search<'_, 'a, A> {
    /// Does nothing matter but what each node is by itself?
    fn is_of_node_alone(&self) -> bool {
        self.others.is_empty() && !self.snapshot.has_nominations()
    }

    /// By what is kept, where anything is, and by the filters that look beyond the node.
    fn look(&self, idx: usize, kind: Option<&mut Kind>, found: &mut Found<'a>) -> Look {
        let Some((kind, verdict)) = kind.and_then(|kind| {
            let verdict = kind.on(idx, self.pod, self.snapshot, self.profile)?;
            Some((kind, verdict))
        }) else {
            return self.look_anew(idx, found);
        };
        match verdict.outcome {
            Outcome::Unknown => Look::Hopeless,
            Outcome::Rejected(number) => found.kept(idx, number, kind.rejected(number), verdict),
            Outcome::Fits if self.others.is_empty() => Look::Takes(verdict.number, verdict.is_plain),
            Outcome::Fits => {
                let row = self.snapshot.row_at(idx);
                match first_rejection(self.pod, &row, self.among, self.profile, &self.others, &mut found.rejection) {
                    None => Look::Takes(verdict.number, verdict.is_plain),
                    Some(plugin_idx) => {
                        found.rejected(plugin_idx, idx, shortfall(plugin_idx, self.pod, &row, self.profile))
                    }
                }
            }
        }
    }

    fn look_anew(&self, idx: usize, found: &mut Found<'a>) -> Look {
        let row = self.snapshot.row_at(idx);
        if !row.known {
            return Look::Hopeless;
        }
        match rejected_by(self.pod, &row, self.among, self.snapshot, self.profile, &mut found.rejection) {
            None => {
                let (score, is_plain) = own_score(self.pod, &row, self.profile);
                Look::Takes(score, is_plain)
            }
            Some(plugin_idx) => found.rejected(plugin_idx, idx, shortfall(plugin_idx, self.pod, &row, self.profile)),
        }
    }

    /// Without what is kept the same is found.
    #[cfg(test)]
    fn check(&self, cycle: &Cycle, (start, n_visited): (usize, usize), tally: &Tally<'a>) {
        let (mut found, mut anew) = (Found::default(), Cycle::new(0));
        let n_rows = self.snapshot.n_rows();
        let earlier = cycle.resolvable.len();
        for idx in (start..n_rows).chain(0..start).take(n_visited) {
            match self.look_anew(idx, &mut found) {
                Look::Takes(score, is_plain) => anew.take(idx, (score, is_plain)),
                Look::Resolvable => anew.resolvable.push(idx),
                Look::Hopeless => {}
            }
        }
        assert_eq!((&anew.feasible, &anew.totals), (&cycle.feasible, &cycle.totals), "{}", self.pod.key);
        assert_eq!(anew.is_any_normalized, cycle.is_any_normalized, "{}", self.pod.key);
        assert_eq!(anew.resolvable, cycle.resolvable[earlier - anew.resolvable.len()..], "{}", self.pod.key);
        assert_eq!(found.told(None), *tally, "{}", self.pod.key);
    }
}

/// What was found against nodes.
#[derive(Default)]
struct Found<'p> {
    tally: Tally<'p>,
    rejection: Rejection<'p>,
    /// How often each rejection was met that is kept with verdicts.
    n_kept: Vec<usize>,
}

impl<'p> Found<'p> {
    fn rejected(&mut self, plugin_idx: usize, idx: usize, shortfall: i64) -> Look {
        self.tally.add(plugin_idx, self.rejection.reasons());
        self.tally.compare(plugin_idx, idx, shortfall);
        if self.rejection.is_final() { Look::Hopeless } else { Look::Resolvable }
    }

    /// The first is tallied at once, so that reasons stay in the order in which they were met; the others are, together, in the end.
    fn kept(&mut self, idx: usize, number: u16, rejected: &Rejected, verdict: Verdict) -> Look {
        let number = usize::from(number);
        if self.n_kept.len() <= number {
            self.n_kept.resize(number + 1, 0);
        }
        if self.n_kept[number] == 0 {
            self.tally.add(rejected.plugin_idx, &rejected.reasons);
        }
        self.n_kept[number] += 1;
        self.tally.compare(rejected.plugin_idx, idx, verdict.number);
        if rejected.is_final { Look::Hopeless } else { Look::Resolvable }
    }

    fn told(mut self, kind: Option<&Kind>) -> Tally<'p> {
        let Some(kind) = kind else { return self.tally };
        for (number, count) in (0..).zip(&self.n_kept).filter(|it| *it.1 > 1) {
            let rejected = kind.rejected(number);
            rejected.reasons.iter().for_each(|it| self.tally.count(rejected.plugin_idx, *it, count - 1));
        }
        self.tally
    }
}
