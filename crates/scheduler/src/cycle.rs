//! One try to place one pod: filter the nodes, score those that are left, pick the best.
//!
//! Buffers are kept from pod to pod: a try allocates per reason, never per node.

mod plugin_times;
mod search;

use std::{
    borrow::Cow,
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Deref,
    sync::Arc,
};

use corten_meta::shortened;

use crate::{
    Extender, NodeAdvice, PLUGINS, PodInfo, Snapshot,
    among::Among,
    extender::EXTENDER_SCORE_SCALE,
    framework::{Normalize, Points, Reason, Refusal, Rejection, SCORE_MAX, Scoring},
    observer::{ExtensionPoint, Fact, Moment, Observer, PluginSet, PointStatus, ran},
    parked::RefusedBy,
    pod_groups::PodGroups,
    profile::Profile,
    snapshot::Row,
    trial::Trial,
    verdicts::{Verdicts, own_score},
};

pub(crate) struct Cycle {
    random: u64,
    /// The search goes on where the last one ended, so that every node gets its turn.
    start_idx: usize,
    feasible: Vec<usize>,
    /// The nodes that might run the pod if others left them.
    resolvable: Vec<usize>,
    raw: Vec<i64>,
    /// What the nodes score, one for each of `feasible`.
    totals: Vec<i64>,
    verdicts: Verdicts,
    /// The plugins whose filters had their say in this try.
    filtered_by: PluginSet,
    /// A score of a feasible node is other than what its verdict says.
    is_any_normalized: bool,
}

/// What a node is to a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chance {
    Fits,
    Rejected {
        /// Whatever pods leave the node.
        is_final: bool,
        /// For what runs elsewhere.
        is_among: bool,
    },
    /// There is none on any node, or the node is not known.
    None,
}

/// What became of a try after extenders were asked.
pub(crate) enum Advised {
    Node(usize),
    Failed(Failure),
    /// A node fits by now that nobody was asked about.
    Again,
}

/// What extenders were asked, and what they said.
pub(crate) struct Advising<'a> {
    pub(crate) asked: &'a BTreeSet<String>,
    pub(crate) advice: &'a NodeAdvice,
    pub(crate) extenders: &'a [Extender],
}

impl Advising<'_> {
    /// Whose refusal it was, and why. An extender may leave a node out and not say why.
    fn refusal(&self, node: &str) -> (&str, &str) {
        const UNSAID: &str = "node(s) were left out by an extender";
        match self.advice.refused.get(node) {
            None => ("", UNSAID),
            Some(it) => {
                let url = self.extenders.get(it.extender).map_or("", |it| &*it.url_prefix);
                (url, if it.reason.is_empty() { UNSAID } else { &it.reason })
            }
        }
    }
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
    /// What came of the attempt to help it: `no new claims to deallocate, preemption: …`.
    pub(crate) post_filter: String,
    /// Without less important pods a node would still turn it down, for what runs elsewhere.
    pub(crate) is_among_without_lower: bool,
}

/// How many nodes one reason turned down.
pub(crate) struct Rejections {
    pub(crate) plugin_idx: usize,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) n_nodes: usize,
    /// The extender that did, where it was no plugin.
    pub(crate) extender: Option<String>,
}

/// The node that came furthest: the last filter, the smallest shortfall.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq, Debug))]
pub(crate) struct Nearest {
    pub(crate) node_idx: usize,
    pub(crate) plugin_idx: usize,
    pub(crate) shortfall: i64,
}

/// How many nodes each reason turned down.
#[derive(Clone, Default)]
#[cfg_attr(test, derive(PartialEq, Debug))]
pub(crate) struct Tally<'p> {
    counts: Vec<(usize, Reason<'p>, usize)>,
    /// Where a reason is among them: there is one for each resource that a pod names.
    places: BTreeMap<Reason<'p>, usize>,
    nearest: Option<Nearest>,
}

impl Cycle {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: seed,
            start_idx: 0,
            feasible: Vec::new(),
            resolvable: Vec::new(),
            raw: Vec::new(),
            totals: Vec::new(),
            verdicts: Verdicts::default(),
            filtered_by: PluginSet::default(),
            is_any_normalized: false,
        }
    }

    /// The index of the best node. A pod that is nominated to a node goes there if it can.
    pub(crate) fn run(
        &mut self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        profile: &Profile,
        nominated: Option<usize>,
        observer: &dyn Observer,
    ) -> Result<usize, Failure> {
        self.begin_try(profile);
        let are_timed = observer.times_plugins();
        let begun = pass_pre_filters(pod, snapshot, profile, observer, are_timed)?;
        let among = LazyCell::new(|| Among::of(pod, snapshot, &profile.arguments));
        if let Some(idx) = nominated {
            let row = snapshot.row_at(idx);
            if row.known && rejected_by(pod, &row, &among, snapshot, profile, &mut Rejection::default()).is_none() {
                self.filtered(profile, begun, observer);
                return Ok(idx);
            }
        }
        let tally = self.filter(pod, snapshot, profile, &among);
        let mut begun = self.filtered(profile, begun, observer);
        if are_timed {
            self.time_plugins(pod, snapshot, profile, &among, observer);
            begun = observer.moment();
        }
        match &*self.feasible {
            [] => Err(Failure::of(snapshot.n_nodes(), None, tally)),
            [only] => Ok(*only),
            _ => {
                self.score(pod, snapshot, profile, observer, are_timed);
                ran(observer, (ExtensionPoint::Score, PointStatus::Success), &profile.name, begun);
                let plugins = profile.scores.iter().map(|it| it.0).collect();
                observer.tell(&Fact::Evaluated { point: ExtensionPoint::Score, plugins, profile: &profile.name });
                Ok(self.pick())
            }
        }
    }

    /// The nodes that the plugins let the pod run on, up to as many as are wanted.
    pub(crate) fn survey(
        &mut self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        profile: &Profile,
        observer: &dyn Observer,
    ) -> Result<&[usize], Failure> {
        self.begin_try(profile);
        let are_timed = observer.times_plugins();
        let begun = pass_pre_filters(pod, snapshot, profile, observer, are_timed)?;
        let among = LazyCell::new(|| Among::of(pod, snapshot, &profile.arguments));
        let tally = self.filter(pod, snapshot, profile, &among);
        self.filtered(profile, begun, observer);
        if are_timed {
            self.time_plugins(pod, snapshot, profile, &among, observer);
        }
        if self.feasible.is_empty() { Err(Failure::of(snapshot.n_nodes(), None, tally)) } else { Ok(&self.feasible) }
    }

    fn begin_try(&mut self, profile: &Profile) {
        self.resolvable.clear();
        self.filtered_by = profile.filters.iter().copied().collect();
    }

    /// Tells that filters have run; gives when they had.
    fn filtered(&self, profile: &Profile, begun: Moment, observer: &dyn Observer) -> Moment {
        let point = ExtensionPoint::Filter;
        observer.tell(&Fact::Evaluated { point, plugins: self.filtered_by, profile: &profile.name });
        ran(observer, (point, PointStatus::Success), &profile.name, begun)
    }

    /// As [`Cycle::run`], on the nodes that extenders let through, if they still fit.
    pub(crate) fn run_advised(
        &mut self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        profile: &Profile,
        nominated: Option<usize>,
        advising: &Advising<'_>,
        observer: &dyn Observer,
    ) -> Advised {
        self.resolvable.clear();
        if let Some(refusal) = refusal(pod, snapshot, profile) {
            return Advised::Failed(Failure::of(snapshot.n_nodes(), Some(refusal), Tally::default()));
        }
        let among = LazyCell::new(|| Among::of(pod, snapshot, &profile.arguments));
        let mut rejection = Rejection::default();
        let named = advising.advice.nodes.iter().filter(|it| advising.asked.contains(*it));
        let fits = |idx: &usize| {
            let row = snapshot.row_at(*idx);
            row.known && rejected_by(pod, &row, &among, snapshot, profile, &mut rejection).is_none()
        };
        let feasible: Vec<usize> = named.filter_map(|it| snapshot.idx_of(it)).filter(fits).collect();
        self.begin();
        feasible.iter().for_each(|it| self.take(*it, own_score(pod, &snapshot.row_at(*it), profile)));
        match (&*self.feasible, nominated) {
            ([], _) => self.unadvised(pod, snapshot, profile, &among, advising),
            ([only], _) => Advised::Node(*only),
            (feasible, Some(nominated)) if feasible.contains(&nominated) => Advised::Node(nominated),
            _ => {
                let begun = observer.moment();
                self.score(pod, snapshot, profile, observer, false);
                ran(observer, (ExtensionPoint::Score, PointStatus::Success), &profile.name, begun);
                for (idx, total) in self.feasible.iter().zip(&mut self.totals) {
                    let points = advising.advice.scores.get(snapshot.row_at(*idx).name).copied().unwrap_or(0);
                    *total = total.saturating_add(points.saturating_mul(EXTENDER_SCORE_SCALE));
                }
                Advised::Node(self.pick())
            }
        }
    }

    /// Counts the nodes that only extenders turned down.
    fn unadvised<'a, A: Deref<Target = Among<'a>>>(
        &mut self,
        pod: &'a PodInfo,
        snapshot: &'a Snapshot,
        profile: &Profile,
        among: &A,
        advising: &Advising<'_>,
    ) -> Advised {
        let tally = self.filter(pod, snapshot, profile, among);
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for name in self.feasible.iter().map(|it| snapshot.row_at(*it).name) {
            if !advising.asked.contains(name) || advising.advice.nodes.iter().any(|it| it == name) {
                return Advised::Again;
            }
            *counts.entry(advising.refusal(name)).or_default() += 1;
        }
        let mut failure = Failure::of(snapshot.n_nodes(), None, tally);
        failure.rejections.extend(counts.into_iter().map(|((url, reason), n_nodes)| Rejections {
            plugin_idx: 0,
            reason: Cow::Owned(shortened(reason).to_string()),
            n_nodes,
            extender: Some(url.to_owned()),
        }));
        Advised::Failed(failure)
    }

    /// The nodes that the last run found might run the pod if others left them.
    pub(crate) fn resolvable(&self) -> &[usize] {
        &self.resolvable
    }

    /// Can the node run the pod?
    pub(crate) fn fits(&self, pod: &PodInfo, row: Row<'_>, snapshot: &Snapshot, profile: &Profile) -> bool {
        self.chance(pod, row, snapshot, profile) == Chance::Fits
    }

    /// Can the node run the pod, or might it?
    pub(crate) fn chance(&self, pod: &PodInfo, row: Row<'_>, snapshot: &Snapshot, profile: &Profile) -> Chance {
        if !row.known || refusal(pod, snapshot, profile).is_some() {
            return Chance::None;
        }
        let among = LazyCell::new(|| Among::of(pod, snapshot, &profile.arguments));
        let mut rejection = Rejection::default();
        match rejected_by(pod, &row, &among, snapshot, profile, &mut rejection) {
            None => Chance::Fits,
            Some(idx) => {
                Chance::Rejected { is_final: rejection.is_final(), is_among: PLUGINS[idx].filter_among.is_some() }
            }
        }
    }

    /// Completes `totals`, one for each of `feasible`.
    fn score(
        &mut self,
        pod: &PodInfo,
        snapshot: &Snapshot,
        profile: &Profile,
        observer: &dyn Observer,
        are_timed: bool,
    ) {
        let Self { feasible, raw, totals, is_any_normalized, .. } = self;
        let arguments = &profile.arguments;
        for (plugin_idx, weight) in &profile.scores {
            let score = PLUGINS[*plugin_idx].score.as_ref().expect("a profile scores by plugins that score");
            match &score.points {
                // They are in it already.
                Points::Each { normalize: Normalize::Keep, .. } => {}
                // Where no node has any, all have the same.
                Points::Each { .. } if !*is_any_normalized => {}
                Points::Each { raw: points, normalize } => {
                    raw.clear();
                    raw.extend(feasible.iter().map(|idx| points(pod, &snapshot.row_at(*idx), arguments)));
                    normalize_scores(normalize, raw);
                    add(totals, raw, *weight);
                }
                Points::All(points) => {
                    let begun = are_timed.then(|| observer.moment());
                    let points = points(&Scoring { pod, snapshot, feasible, arguments });
                    if let Some(from) = begun {
                        plugin_times::tell(observer, *plugin_idx, (ExtensionPoint::Score, PointStatus::Success), from);
                    }
                    if let Some(points) = points {
                        add(totals, &points, *weight);
                    }
                }
            }
        }
    }

    /// One of the best, each with the same chance.
    fn pick(&mut self) -> usize {
        let (mut best, mut n_best) = (i64::MIN, 0);
        for total in &self.totals {
            if *total > best {
                (best, n_best) = (*total, 0);
            }
            n_best += usize::from(*total == best);
        }
        let mut skip = self.random_below(n_best);
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
    pub(crate) fn random_below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound as u64).expect("smaller than a usize")
    }
}

/// The first plugin that turns the pod down before any node is looked at.
fn refusal(pod: &PodInfo, snapshot: &Snapshot, profile: &Profile) -> Option<(usize, Refusal)> {
    profile.pre_filters.iter().find_map(|idx| Some((*idx, PLUGINS[*idx].pre_filter?(pod, snapshot)?)))
}

/// Runs what may turn a pod down before any node is looked at; gives when it had.
fn pass_pre_filters(
    pod: &PodInfo,
    snapshot: &Snapshot,
    profile: &Profile,
    observer: &dyn Observer,
    are_timed: bool,
) -> Result<Moment, Failure> {
    let begun = observer.moment();
    let refusal = match are_timed {
        false => refusal(pod, snapshot, profile),
        true => plugin_times::refusal(pod, snapshot, profile, observer),
    };
    let asked = profile.pre_filters.iter().copied();
    let plugins = match &refusal {
        None => asked.collect(),
        Some((last, _)) => asked.take_while(|it| it != last).chain([*last]).collect(),
    };
    observer.tell(&Fact::Evaluated { point: ExtensionPoint::PreFilter, plugins, profile: &profile.name });
    let status = if refusal.is_some() { PointStatus::UnschedulableAndUnresolvable } else { PointStatus::Success };
    let ended = ran(observer, (ExtensionPoint::PreFilter, status), &profile.name, begun);
    match refusal {
        Some(refusal) => Err(Failure::of(snapshot.n_nodes(), Some(refusal), Tally::default())),
        None => Ok(ended),
    }
}

/// As [`first_rejection`], and the pods that are nominated to the node and go before this one might be there as well as not
/// (`RunFilterPluginsWithNominatedPods`).
pub(crate) fn rejected_by<'a, A: Deref<Target = Among<'a>>>(
    pod: &'a PodInfo,
    row: &Row<'a>,
    among: &A,
    snapshot: &Snapshot,
    profile: &Profile,
    rejection: &mut Rejection<'a>,
) -> Option<usize> {
    let groups = &snapshot.pod_groups;
    if nominated_before(pod, row, groups).next().is_some() {
        let mut trial = Trial::new(pod, *row, (**among).clone());
        nominated_before(pod, row, groups).for_each(|it| trial.add(it));
        let rejected = first_rejection(pod, &trial.row(), &&trial.among, profile, &profile.filters, rejection);
        if rejected.is_some() {
            return rejected;
        }
    }
    first_rejection(pod, row, among, profile, &profile.filters, rejection)
}

/// The pods that are nominated to the node and are as important as this one: by the priority by which the room was made.
pub(crate) fn nominated_before<'a>(
    pod: &PodInfo,
    row: &Row<'a>,
    groups: &PodGroups,
) -> impl Iterator<Item = &'a Arc<PodInfo>> {
    let priority = |it: &PodInfo| groups.priority_of(it);
    row.nominated.values().filter(move |it| it.uid != pod.uid && priority(it) >= priority(pod))
}

/// The first of these plugins that turns the node down; its reasons are left in `rejection`. What runs elsewhere is only gathered
/// once a node has passed the filters that need nothing of it.
pub(crate) fn first_rejection<'a, A: Deref<Target = Among<'a>>>(
    pod: &'a PodInfo,
    row: &Row<'_>,
    among: &A,
    profile: &Profile,
    filters: &[usize],
    rejection: &mut Rejection<'a>,
) -> Option<usize> {
    rejection.clear();
    filters.iter().copied().find(|plugin_idx| {
        let plugin = &PLUGINS[*plugin_idx];
        if let Some(filter) = plugin.filter {
            filter(pod, row, &profile.arguments, rejection);
        }
        if let Some(filter) = plugin.filter_among {
            filter(pod, row, among, rejection);
        }
        !rejection.reasons().is_empty()
    })
}

/// `numFeasibleNodesToFind`: all of up to 100 nodes, then the share that is set, or one that falls from 50 % to 5 % as the
/// cluster grows.
fn n_wanted(n_nodes: usize, percentage: usize) -> usize {
    const FEWEST: usize = 100;
    if n_nodes < FEWEST {
        return n_nodes;
    }
    let percent = if percentage == 0 { 50_usize.saturating_sub(n_nodes / 125).max(5) } else { percentage };
    (n_nodes * percent / 100).max(FEWEST)
}

fn add(totals: &mut [i64], points: &[i64], weight: i64) {
    for (total, points) in totals.iter_mut().zip(points) {
        *total += points * weight;
    }
}

fn normalize_scores(how: &Normalize, raw: &mut [i64]) {
    let most = raw.iter().copied().max().unwrap_or(0);
    let share = |it: i64| if most == 0 { 0 } else { it * SCORE_MAX / most };
    match how {
        Normalize::Keep => {}
        Normalize::ToMost => raw.iter_mut().for_each(|it| *it = share(*it)),
        Normalize::ToLeast => raw.iter_mut().for_each(|it| *it = SCORE_MAX - share(*it)),
    }
}

impl<'p> Tally<'p> {
    pub(crate) fn add(&mut self, plugin_idx: usize, reasons: &[Reason<'p>]) {
        for reason in reasons {
            self.count(plugin_idx, *reason, 1);
        }
    }

    pub(crate) fn count(&mut self, plugin_idx: usize, reason: Reason<'p>, n_nodes: usize) {
        match self.places.entry(reason) {
            Entry::Occupied(at) => self.counts[*at.get()].2 += n_nodes,
            Entry::Vacant(place) => {
                place.insert(self.counts.len());
                self.counts.push((plugin_idx, reason, n_nodes));
            }
        }
    }

    /// Is the node nearer than all before it?
    fn compare(&mut self, plugin_idx: usize, node_idx: usize, shortfall: i64) {
        let is_nearer =
            self.nearest.as_ref().is_none_or(|it| (plugin_idx, -shortfall) > (it.plugin_idx, -it.shortfall));
        if is_nearer {
            self.nearest = Some(Nearest { node_idx, plugin_idx, shortfall });
        }
    }
}

fn shortfall(plugin_idx: usize, pod: &PodInfo, row: &Row<'_>, profile: &Profile) -> i64 {
    PLUGINS[plugin_idx].shortfall.as_ref().map_or(0, |it| (it.size)(pod, row, &profile.arguments))
}

impl Failure {
    pub(crate) fn of(n_nodes: usize, refusal: Option<(usize, Refusal)>, tally: Tally<'_>) -> Self {
        let rejection = |(plugin_idx, reason, n_nodes): (usize, Reason<'_>, usize)| Rejections {
            plugin_idx,
            reason: reason.text(),
            n_nodes,
            extender: None,
        };
        let rejections = tally.counts.into_iter().map(rejection).collect();
        let (refusal, post_filter) = (refusal.map(Box::new), String::new());
        Self { n_nodes, refusal, rejections, nearest: tally.nearest, post_filter, is_among_without_lower: false }
    }

    /// The plugins that turned nodes or the pod down.
    pub(crate) fn plugins(&self) -> PluginSet {
        let of_nodes = self.rejections.iter().filter(|it| it.extender.is_none()).map(|it| it.plugin_idx);
        of_nodes.chain(self.refusal.iter().map(|it| it.0)).collect()
    }

    pub(crate) fn refused_by(&self) -> RefusedBy {
        RefusedBy {
            is_among: self.is_among_without_lower
                || self.rejections.iter().any(|it| PLUGINS[it.plugin_idx].filter_among.is_some()),
            is_extender: self.rejections.iter().any(|it| it.extender.is_some()),
        }
    }

    /// A plugin turned the pod down whatever the nodes are like.
    pub(crate) fn refused(n_nodes: usize, plugin_idx: usize, message: String) -> Self {
        Self::of(n_nodes, Some((plugin_idx, Refusal { message, claim: None })), Tally::default())
    }

    /// What Kubernetes says: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).`, and what came
    /// of the attempt to help (`FitError.Error`).
    pub(crate) fn message(&self) -> String {
        if self.n_nodes == 0 {
            return "no nodes available to schedule pods".into();
        }
        let after = if self.post_filter.is_empty() { String::new() } else { format!(" {}", self.post_filter) };
        if let Some((_, refusal)) = self.refusal.as_deref() {
            return format!("0/{} nodes are available: {}.{after}", self.n_nodes, refusal.message);
        }
        let mut reasons: Vec<String> =
            self.rejections.iter().map(|it| format!("{} {}", it.n_nodes, it.reason)).collect();
        // Sorted as text, so that 10 comes before 2.
        reasons.sort();
        let n_more = reasons.len().saturating_sub(REASONS_MAX);
        reasons.truncate(REASONS_MAX);
        let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
        format!("0/{} nodes are available: {}{more}.{after}", self.n_nodes, reasons.join(", "))
    }
}
