//! One try to place one pod: filter the nodes, score those that are left, pick the best.
//!
//! Buffers are kept from pod to pod: a try allocates per reason, never per node.

use std::{
    borrow::Cow,
    cell::LazyCell,
    collections::{BTreeMap, btree_map::Entry},
};

use crate::{
    PLUGINS, PodInfo, Snapshot,
    among::Among,
    framework::{Normalize, Reason, Refusal, SCORE_MAX, Score},
    snapshot::Row,
};

pub(crate) struct Cycle {
    random: u64,
    /// The search goes on where the last one ended, so that every node gets its turn.
    start_idx: usize,
    feasible: Vec<usize>,
    raw: Vec<i64>,
    totals: Vec<i64>,
}

/// So many reasons are told: a pod may name thousands of resources that no node has.
const REASONS_MAX: usize = 100;

/// Why no node can run a pod.
pub(crate) struct Failure {
    pub(crate) n_nodes: usize,
    /// The plugin that turned the pod down whatever the nodes are like, and why.
    pub(crate) refusal: Option<Box<(usize, Refusal)>>,
    pub(crate) rejections: Vec<Rejections>,
    pub(crate) nearest: Option<Nearest>,
}

/// How many nodes one reason turned down.
pub(crate) struct Rejections {
    pub(crate) plugin_idx: usize,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) n_nodes: usize,
}

/// The node that came furthest: the last filter, the smallest gap.
pub(crate) struct Nearest {
    pub(crate) node_idx: usize,
    pub(crate) plugin_idx: usize,
    gap: i64,
}

#[derive(Default)]
struct Tally<'p> {
    counts: Vec<(usize, Reason<'p>, usize)>,
    /// Where a reason is among them: there is one for each resource that a pod names.
    places: BTreeMap<Reason<'p>, usize>,
    nearest: Option<Nearest>,
}

impl Cycle {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: seed, start_idx: 0, feasible: Vec::new(), raw: Vec::new(), totals: Vec::new() }
    }

    /// The index of the best node.
    pub(crate) fn run(&mut self, pod: &PodInfo, snapshot: &Snapshot) -> Result<usize, Failure> {
        if let Some(refusal) = refusal(pod, snapshot) {
            let n_nodes = snapshot.n_nodes();
            return Err(Failure { n_nodes, refusal: Some(Box::new(refusal)), rejections: Vec::new(), nearest: None });
        }
        let tally = self.filter(pod, snapshot);
        match &*self.feasible {
            [] => Err(tally.failure(snapshot.n_nodes())),
            [only] => Ok(*only),
            _ => {
                self.score(pod, snapshot);
                Ok(self.pick())
            }
        }
    }

    /// Can the node run the pod?
    pub(crate) fn fits(&self, pod: &PodInfo, row: Row<'_>, snapshot: &Snapshot) -> bool {
        let among = LazyCell::new(|| Among::of(pod, snapshot));
        row.known && refusal(pod, snapshot).is_none() && first_rejection(pod, &row, &among, &mut Vec::new()).is_none()
    }

    /// Fills `feasible`, until enough are found.
    fn filter<'p>(&mut self, pod: &'p PodInfo, snapshot: &Snapshot) -> Tally<'p> {
        let n_rows = snapshot.n_rows();
        let n_wanted = n_wanted(snapshot.n_nodes());
        let (mut tally, mut reasons, mut n_visited) = (Tally::default(), Vec::new(), 0);
        let among = LazyCell::new(|| Among::of(pod, snapshot));
        self.feasible.clear();
        while n_visited < n_rows && self.feasible.len() < n_wanted {
            let idx = (self.start_idx + n_visited) % n_rows;
            n_visited += 1;
            let row = snapshot.row_at(idx);
            if !row.known {
                continue;
            }
            match first_rejection(pod, &row, &among, &mut reasons) {
                None => self.feasible.push(idx),
                Some(plugin_idx) => tally.add(plugin_idx, &reasons, idx, pod, &row),
            }
        }
        self.start_idx = (self.start_idx + n_visited) % n_rows.max(1);
        tally
    }

    /// Fills `totals`, one for each of `feasible`.
    fn score(&mut self, pod: &PodInfo, snapshot: &Snapshot) {
        self.totals.clear();
        self.totals.resize(self.feasible.len(), 0);
        for score in PLUGINS.iter().filter_map(|it| it.score.as_ref()) {
            self.raw.clear();
            self.raw.extend(self.feasible.iter().map(|idx| (score.raw)(pod, &snapshot.row_at(*idx))));
            normalize(score, &mut self.raw);
            for (total, points) in self.totals.iter_mut().zip(&self.raw) {
                *total += points * score.weight;
            }
        }
    }

    /// One of the best, each with the same chance.
    fn pick(&mut self) -> usize {
        let best = self.totals.iter().copied().max().expect("there are several feasible nodes");
        let n_best = self.totals.iter().filter(|it| **it == best).count();
        let mut skip = self.next_random(n_best);
        for (idx, total) in self.feasible.iter().zip(&self.totals) {
            if *total == best {
                if skip == 0 {
                    return *idx;
                }
                skip -= 1;
            }
        }
        unreachable!("fewer of the best are skipped than there are")
    }

    /// A number below `bound` (splitmix64).
    fn next_random(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound as u64).expect("smaller than a usize")
    }
}

/// The first plugin that turns the pod down before any node is looked at.
fn refusal(pod: &PodInfo, snapshot: &Snapshot) -> Option<(usize, Refusal)> {
    PLUGINS.iter().enumerate().find_map(|(idx, plugin)| Some((idx, plugin.pre_filter?(pod, snapshot)?)))
}

/// The first plugin that turns the node down; its reasons are left in `reasons`. What runs elsewhere is only gathered
/// once a node has passed the filters that need nothing of it.
fn first_rejection<'p, 'a, F: FnOnce() -> Among<'a>>(
    pod: &'p PodInfo,
    row: &Row<'_>,
    among: &LazyCell<Among<'a>, F>,
    reasons: &mut Vec<Reason<'p>>,
) -> Option<usize> {
    reasons.clear();
    PLUGINS.iter().position(|plugin| {
        if let Some(filter) = plugin.filter {
            filter(pod, row, reasons);
        }
        if let Some(filter) = plugin.filter_among {
            filter(pod, row, among, reasons);
        }
        !reasons.is_empty()
    })
}

/// `numFeasibleNodesToFind`: all of up to 100 nodes, then a share that falls from 50 % to 5 % as the cluster grows.
fn n_wanted(n_nodes: usize) -> usize {
    const FEWEST: usize = 100;
    if n_nodes < FEWEST {
        return n_nodes;
    }
    let percent = 50_usize.saturating_sub(n_nodes / 125).max(5);
    (n_nodes * percent / 100).max(FEWEST)
}

fn normalize(score: &Score, raw: &mut [i64]) {
    let most = raw.iter().copied().max().unwrap_or(0);
    let share = |it: i64| if most == 0 { 0 } else { it * SCORE_MAX / most };
    match score.normalize {
        Normalize::Keep => {}
        Normalize::ToMost => raw.iter_mut().for_each(|it| *it = share(*it)),
        Normalize::ToLeast => raw.iter_mut().for_each(|it| *it = SCORE_MAX - share(*it)),
    }
}

impl<'p> Tally<'p> {
    fn add(&mut self, plugin_idx: usize, reasons: &[Reason<'p>], node_idx: usize, pod: &PodInfo, row: &Row<'_>) {
        for reason in reasons {
            match self.places.entry(*reason) {
                Entry::Occupied(at) => self.counts[*at.get()].2 += 1,
                Entry::Vacant(place) => {
                    place.insert(self.counts.len());
                    self.counts.push((plugin_idx, *reason, 1));
                }
            }
        }
        let gap = PLUGINS[plugin_idx].gap.as_ref().map_or(0, |it| (it.size)(pod, row));
        let is_nearer = self.nearest.as_ref().is_none_or(|it| (plugin_idx, -gap) > (it.plugin_idx, -it.gap));
        if is_nearer {
            self.nearest = Some(Nearest { node_idx, plugin_idx, gap });
        }
    }

    fn failure(self, n_nodes: usize) -> Failure {
        let rejection = |(plugin_idx, reason, n_nodes): (usize, Reason<'_>, usize)| Rejections {
            plugin_idx,
            reason: reason.text(),
            n_nodes,
        };
        let rejections = self.counts.into_iter().map(rejection).collect();
        Failure { n_nodes, refusal: None, rejections, nearest: self.nearest }
    }
}

impl Failure {
    /// What Kubernetes says: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`
    pub(crate) fn message(&self) -> String {
        if self.n_nodes == 0 {
            return "no nodes available to schedule pods".into();
        }
        if let Some((_, refusal)) = self.refusal.as_deref() {
            return format!("0/{} nodes are available: {}.", self.n_nodes, refusal.message);
        }
        let mut reasons: Vec<String> =
            self.rejections.iter().map(|it| format!("{} {}", it.n_nodes, it.reason)).collect();
        // As in `FitError.Error`: sorted as text, so that 10 comes before 2.
        reasons.sort();
        let n_more = reasons.len().saturating_sub(REASONS_MAX);
        reasons.truncate(REASONS_MAX);
        let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
        format!("0/{} nodes are available: {}{more}.", self.n_nodes, reasons.join(", "))
    }
}
