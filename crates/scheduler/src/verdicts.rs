//! What those plugins that look at one node only have said of the nodes, kept for pods that ask the same of a node.
//!
//! Each change of a row gives it a version that no row has had before, so what was said of a version holds wherever the row is by
//! now. Nothing is thrown away when a node changes: its verdict is of an older version then, and the node is judged anew when
//! its turn comes.

use std::ops::Range;

use crate::{
    PLUGINS, PodInfo, Snapshot,
    framework::{Normalize, Points, Reason, Rejection},
    profile::Profile,
    snapshot::Row,
};

/// Verdicts are kept for so many kinds of pods, those that came last.
const KINDS_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Verdicts {
    kinds: Vec<Kind>,
    n_asked: u64,
    n_kinds: u32,
}

/// Pods that ask the same of a node, and what was said of the nodes.
pub(crate) struct Kind {
    sample: PodInfo,
    asked_at: u64,
    /// Verdicts of kinds that had this place before bear another stamp.
    stamp: u32,
    verdicts: Vec<Verdict>,
    /// The rejections that verdicts name.
    rejections: Vec<Rejected>,
}

/// Why nodes were turned down.
#[derive(PartialEq)]
pub(crate) struct Rejected {
    pub(crate) plugin_idx: usize,
    pub(crate) reasons: Vec<Reason<'static>>,
    pub(crate) is_final: bool,
}

/// What was said of one node.
#[derive(Clone, Copy, Default)]
pub(crate) struct Verdict {
    version: u64,
    /// The score by those plugins whose points are kept as they are, or the shortfall of a node that is turned down.
    pub(crate) number: i64,
    stamp: u32,
    pub(crate) outcome: Outcome,
    /// The plugins whose points are normalized give it none.
    pub(crate) is_plain: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// No such node is known.
    #[default]
    Unknown,
    Fits,
    /// For the reasons with this number.
    Rejected(u16),
}

impl Verdicts {
    /// What is kept for pods like this one. Nothing is where a plugin asks more of a node than its row holds, or where there would
    /// be too many different reasons.
    pub(crate) fn of(&mut self, pod: &PodInfo, n_rows: usize) -> Option<&mut Kind> {
        // Which class of devices stands for an extended resource is no row's.
        if !pod.requested.extended.is_empty() {
            return None;
        }
        self.n_asked += 1;
        let idx =
            self.kinds.iter().position(|it| it.sample.asks_same_of_a_node(pod)).unwrap_or_else(|| self.begin(pod));
        let kind = &mut self.kinds[idx];
        kind.asked_at = self.n_asked;
        if kind.verdicts.len() < n_rows {
            kind.verdicts.resize(n_rows, Verdict::default());
        }
        Some(kind)
    }

    /// A kind that is new takes the place of the one that has not been asked for the longest.
    fn begin(&mut self, pod: &PodInfo) -> usize {
        self.n_kinds = self.n_kinds.wrapping_add(1);
        let mut kind = Kind {
            sample: pod.clone(),
            asked_at: 0,
            stamp: self.n_kinds,
            verdicts: Vec::new(),
            rejections: Vec::new(),
        };
        if self.kinds.len() < KINDS_MAX {
            self.kinds.push(kind);
            return self.kinds.len() - 1;
        }
        let oldest =
            (0..self.kinds.len()).min_by_key(|it| self.kinds[*it].asked_at).expect("there are as many as may be");
        kind.verdicts = std::mem::take(&mut self.kinds[oldest].verdicts);
        self.kinds[oldest] = kind;
        oldest
    }
}

impl Kind {
    /// What is said of the row as it is now.
    pub(crate) fn on(&mut self, idx: usize, pod: &PodInfo, snapshot: &Snapshot, profile: &Profile) -> Option<Verdict> {
        let verdict = self.verdicts[idx];
        if verdict.version == snapshot.version(idx) && verdict.stamp == self.stamp {
            return Some(verdict);
        }
        self.judge(pod, idx, snapshot, profile)
    }

    /// What was said of these rows last, as they were then.
    pub(crate) fn verdicts(&self, rows: Range<usize>) -> &[Verdict] {
        &self.verdicts[rows]
    }

    /// Does it say that the row in this version can run such pods?
    pub(crate) fn is_taken(&self, verdict: &Verdict, version: u64) -> bool {
        verdict.version == version && verdict.stamp == self.stamp && verdict.outcome == Outcome::Fits
    }

    pub(crate) fn rejected(&self, number: u16) -> &Rejected {
        &self.rejections[usize::from(number)]
    }

    /// Judges the row anew. Nothing is kept of one that is turned down for reasons of which there are too many.
    fn judge(&mut self, pod: &PodInfo, idx: usize, snapshot: &Snapshot, profile: &Profile) -> Option<Verdict> {
        let row = snapshot.row_at(idx);
        let (outcome, number, is_plain) = if !row.known {
            (Outcome::Unknown, 0, true)
        } else if let Some((rejected, shortfall)) = rejected(pod, &row, profile)? {
            (Outcome::Rejected(self.number_of(rejected)?), shortfall, true)
        } else {
            let (score, is_plain) = own_score(pod, &row, profile);
            (Outcome::Fits, score, is_plain)
        };
        let verdict = Verdict { version: snapshot.version(idx), number, stamp: self.stamp, outcome, is_plain };
        self.verdicts[idx] = verdict;
        Some(verdict)
    }

    fn number_of(&mut self, rejected: Rejected) -> Option<u16> {
        let found = self.rejections.iter().position(|it| *it == rejected);
        let number = found.unwrap_or_else(|| {
            self.rejections.push(rejected);
            self.rejections.len() - 1
        });
        u16::try_from(number).ok()
    }
}

/// Why the plugins that look at this node only turn it down, and by what shortfall; or that they do not. Nothing where a reason outlives
/// its pod.
fn rejected(pod: &PodInfo, row: &Row<'_>, profile: &Profile) -> Option<Option<(Rejected, i64)>> {
    let mut rejection = Rejection::default();
    for plugin_idx in profile.own_filters() {
        let filter = PLUGINS[*plugin_idx].filter.expect("those come first that look at a node by itself");
        filter(pod, row, &profile.arguments, &mut rejection);
        if rejection.reasons().is_empty() {
            continue;
        }
        let reasons = rejection.reasons().iter().map(|it| it.lasting()).collect::<Option<_>>()?;
        let shortfall = PLUGINS[*plugin_idx].shortfall.as_ref().map_or(0, |it| (it.size)(pod, row, &profile.arguments));
        return Some(Some((Rejected { plugin_idx: *plugin_idx, reasons, is_final: rejection.is_final() }, shortfall)));
    }
    Some(None)
}

/// The weighted sum of points that are kept as they are, and whether no others are given.
pub(crate) fn own_score(pod: &PodInfo, row: &Row<'_>, profile: &Profile) -> (i64, bool) {
    let (mut sum, mut is_plain) = (0, true);
    for (plugin_idx, weight) in &profile.scores {
        match PLUGINS[*plugin_idx].score.as_ref().map(|it| &it.points) {
            Some(Points::Each { raw, normalize: Normalize::Keep }) => sum += raw(pod, row, &profile.arguments) * weight,
            Some(Points::Each { raw, .. }) => is_plain &= raw(pod, row, &profile.arguments) == 0,
            Some(Points::All(_)) | None => {}
        }
    }
    (sum, is_plain)
}
