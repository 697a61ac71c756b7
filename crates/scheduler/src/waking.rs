//! Which parked pods are tried again for what happens: those that fit a node by it, and those that by it could evict others from one.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use corten_meta::{Key, Time};

use crate::{
    PLUGINS, PodInfo, Profile, Scheduler,
    cycle::Chance,
    framework::Rejection,
    groupings::Groupings,
    parked::{ParkedGroup, RefusedBy},
    pod_info::HostPort,
    preemption::Preemption,
    requests::Amounts,
    snapshot::Row,
};

/// So many matches of terms and pods are looked at to tell which parked pods one event helps.
const WAKING_MATCHES_MAX: usize = 100_000;

impl Scheduler {
    /// Wakes the parked pods that fit the node as it is now, and those that would if less important pods left it. Most filters look at
    /// one node only, so nothing else that happened to it can help a pod they turned down.
    pub(crate) fn wake_helped(&mut self, node: &str, now: Time) {
        let (helped, kept_away) = self.helped_by(node);
        self.queue.refuse_among(&kept_away);
        helped.iter().for_each(|it| self.queue.wake_one(it, now));
    }

    /// The pods that it helps, and the groups of those that are kept off the node by nothing but what runs elsewhere: from now on that
    /// may help them, whoever turned them down when they were tried.
    fn helped_by(&self, node: &str) -> (Vec<Key>, Vec<u64>) {
        let (mut helped, mut kept_away) = (Vec::new(), Vec::new());
        let Some(idx) = self.snapshot.idx_of(node) else { return (helped, kept_away) };
        let mut offer = Offer::new(self, idx);
        let nominated = offer.row.nominated;
        for (number, group) in self.queue.parked() {
            // A pod that is nominated to the node does not stand in its own way.
            let other = group.keys.iter().find(|it| !nominated.contains_key(*it));
            let Some(info) = other.and_then(|it| self.pods.get(it)).map(|it| &it.info) else { continue };
            match offer.to(info) {
                Help::None => {}
                Help::IsKeptAway => kept_away.push(number),
                Help::Fits => helped.extend(group.keys.iter().cloned()),
                Help::Evicts => helped.extend(self.not_waiting(group).cloned()),
            }
        }
        // Whoever waits for room there and for nobody's end any more may have to make room anew, be it elsewhere.
        let own = nominated.keys().filter(|key| {
            let Some(info) = self.pods.get(*key).map(|it| &it.info) else { return false };
            matches!(offer.to(info), Help::Fits) || (self.may_evict(info) && !self.waits_for_victims(key))
        });
        helped.extend(own.cloned());
        (helped, kept_away)
    }

    fn may_evict(&self, info: &PodInfo) -> bool {
        info.may_preempt && self.profiles.get(&info.scheduler_name).is_some_and(|it| it.preempts)
    }

    /// Those for which nobody has been asked to leave yet.
    fn not_waiting<'g>(&self, group: &'g ParkedGroup) -> impl Iterator<Item = &'g Key> {
        // Nobody leaves for one of a gang alone.
        let one = group.keys.first().filter(|_| self.gang_of(&group.info).is_some());
        let none_waits = one.map(|it| !self.waits_for_victims(it));
        group.keys.iter().filter(move |it| none_waits.unwrap_or_else(|| !self.waits_for_victims(it)))
    }

    /// Wakes the parked pods to which a pod that came to a node, left one or changed there may matter: on any node.
    pub(crate) fn wake_concerned(&mut self, placed: &PodInfo, now: Time) {
        let (profiles, snapshot) = (&self.profiles, &self.snapshot);
        let concerned = |parked: &ParkedGroup| {
            let info = &parked.info;
            let by_default = |profile: &Arc<Profile>| {
                let constraints = profile.default_spread(info, &snapshot.groupings);
                constraints.iter().any(|it| it.selects(&placed.labels))
            };
            parked.refused_by.may_be_helped(|| {
                info.is_concerned_by(placed, &snapshot.namespaces)
                    || (info.key.namespace == placed.key.namespace
                        && profiles.get(&info.scheduler_name).is_some_and(by_default))
            })
        };
        self.queue.wake(concerned, now);
    }

    /// Wakes the parked pods to which a change of any node may matter, be it only that it is in another zone now.
    pub(crate) fn wake_lookers(&mut self, now: Time) {
        let (profiles, groupings) = (&self.profiles, &self.snapshot.groupings);
        let is_any_repelled = self.snapshot.has_repelling_pods();
        let looks = |it: &ParkedGroup| {
            let spreads = || is_spread_by_default(&it.info, profiles, groupings);
            it.refused_by.may_be_helped(|| is_any_repelled || it.info.looks_beyond_its_node() || spreads())
        };
        self.queue.wake(looks, now);
    }

    /// Takes in that a pod changed which waits its turn, and wakes it where that may help it to a node. (As upstream's hints for
    /// `UpdatePodLabel`, `UpdatePodToleration`, `UpdatePodScaleDown` and `UpdatePodGeneratedResourceClaim`.)
    pub(crate) fn wake_changed(&mut self, old: &PodInfo, new: &Arc<PodInfo>, now: Time) {
        // What was asked about it was asked of the pod before it changed.
        let was_asked_about = self.consultations.forget(&new.key);
        let Some(refused_by) = self.queue.regroup(new, RefusedBy::default()) else {
            // It fits; as it is now, so may the others of its gang.
            return self.queue.wake_passive(&new.key, now);
        };
        let (profiles, snapshot) = (&self.profiles, &self.snapshot);
        let by_labels = || {
            refused_by.may_be_helped(|| {
                snapshot.has_repelling_pods()
                    || new.looks_beyond_its_node()
                    || is_spread_by_default(new, profiles, &snapshot.groupings)
            })
        };
        let is_helped = was_asked_about
            || old.requested.exceeds(&new.requested)
            || !old.is_constrained_alike(new)
            || (old.labels != new.labels && by_labels());
        if is_helped {
            self.queue.wake_one(&new.key, now);
        }
    }
}

fn is_spread_by_default(info: &PodInfo, profiles: &BTreeMap<String, Arc<Profile>>, groupings: &Groupings) -> bool {
    profiles.get(&info.scheduler_name).is_some_and(|it| !it.default_spread(info, groupings).is_empty())
}

/// What a node is to a parked pod.
enum Help {
    None,
    /// What runs elsewhere keeps it off the node.
    IsKeptAway,
    Fits,
    /// It would fit if less important pods left.
    Evicts,
}

/// What one node offers parked pods.
struct Offer<'a> {
    scheduler: &'a Scheduler,
    idx: usize,
    row: Row<'a>,
    /// So many matches may still be looked at.
    n_matches_left: usize,
    /// The pods there, the least important first.
    pods: OnceCell<Vec<(i32, &'a Arc<PodInfo>)>>,
    /// The node without so many of them.
    emptied: BTreeMap<usize, Emptied>,
}

/// What plugins that look at one node only read of its pods.
struct Emptied {
    requested: Amounts,
    ports: BTreeMap<HostPort, usize>,
}

impl<'a> Offer<'a> {
    fn new(scheduler: &'a Scheduler, idx: usize) -> Self {
        let row = scheduler.snapshot.row_at(idx);
        let (pods, emptied) = (OnceCell::new(), BTreeMap::new());
        Self { scheduler, idx, row, n_matches_left: WAKING_MATCHES_MAX, pods, emptied }
    }

    fn to(&mut self, pod: &PodInfo) -> Help {
        let Scheduler { snapshot, cycle, profiles, .. } = self.scheduler;
        // Whom it takes long to tell of may as well try: its back-off says how often.
        if !self.has_matches_left(snapshot.n_matches_for(pod)) {
            return Help::Fits;
        }
        let Some(profile) = profiles.get(&pod.scheduler_name) else { return Help::None };
        match cycle.chance(pod, self.row, snapshot, profile) {
            Chance::None => Help::None,
            Chance::Fits => Help::Fits,
            Chance::Rejected { is_final: false, is_among } if self.scheduler.may_evict(pod) => {
                match self.without_lower(pod, profile) {
                    Help::None if is_among => Help::IsKeptAway,
                    help => help,
                }
            }
            Chance::Rejected { is_among: true, .. } => Help::IsKeptAway,
            Chance::Rejected { .. } => Help::None,
        }
    }

    fn has_matches_left(&mut self, n_wanted: usize) -> bool {
        self.n_matches_left.checked_sub(n_wanted).is_some_and(|left| {
            self.n_matches_left = left;
            true
        })
    }

    /// What the node would be without all pods there that matter less. What it is by itself is asked first: that costs little, and of
    /// most pods it says all.
    fn without_lower(&mut self, pod: &PodInfo, profile: &Profile) -> Help {
        let Scheduler { snapshot, pods, budgets, .. } = self.scheduler;
        let priority = snapshot.pod_groups.priority_of(pod);
        let n_lower = self.pods().partition_point(|it| it.0 < priority);
        if n_lower == 0 || !self.passes_own_filters(n_lower, pod, profile) {
            return Help::None;
        }
        let is_decided = !snapshot.has_nominated_pods(self.idx) && profile.other_filters(pod, snapshot).is_empty();
        if is_decided || !self.has_matches_left(snapshot.n_matches_for(pod).saturating_add(n_lower)) {
            return Help::Evicts;
        }
        match (Preemption { pod, snapshot, profile, pods, budgets }).rejected_without_lower(self.idx) {
            None => Help::Evicts,
            Some(plugin_idx) if PLUGINS[plugin_idx].filter_among.is_some() => Help::IsKeptAway,
            Some(_) => Help::None,
        }
    }

    fn passes_own_filters(&mut self, n_gone: usize, pod: &PodInfo, profile: &Profile) -> bool {
        let base = self.row;
        let emptied = self.without(n_gone);
        let row = Row {
            requested: &emptied.requested,
            ports: &emptied.ports,
            n_pods: base.n_pods.saturating_sub(n_gone),
            ..base
        };
        let mut rejection = Rejection::default();
        profile.own_filters().iter().filter_map(|it| PLUGINS[*it].filter).all(|filter| {
            filter(pod, &row, &profile.arguments, &mut rejection);
            rejection.reasons().is_empty()
        })
    }

    fn pods(&self) -> &[(i32, &'a Arc<PodInfo>)] {
        let groups = &self.scheduler.snapshot.pod_groups;
        self.pods.get_or_init(|| {
            let mut pods: Vec<_> = self.row.pods.values().map(|it| (groups.priority_of(it), it)).collect();
            pods.sort_by_key(|it| it.0);
            pods
        })
    }

    fn without(&mut self, n_gone: usize) -> &Emptied {
        let gone: Vec<&Arc<PodInfo>> = match self.emptied.contains_key(&n_gone) {
            true => Vec::new(),
            false => self.pods()[..n_gone].iter().map(|it| it.1).collect(),
        };
        match self.emptied.entry(n_gone) {
            Entry::Occupied(it) => it.into_mut(),
            Entry::Vacant(it) => it.insert(Emptied::of(self.row, &gone)),
        }
    }
}

impl Emptied {
    fn of(row: Row<'_>, gone: &[&Arc<PodInfo>]) -> Self {
        let (mut requested, mut ports) = (row.requested.clone(), row.ports.clone());
        // A sum that has stopped at the end of all numbers stays there, as where victims are sought.
        for pod in gone {
            if !requested.is_full() {
                requested.subtract(&pod.requested);
            }
            for port in &pod.ports {
                if let Entry::Occupied(mut count) = ports.entry(port.clone()) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
        Self { requested, ports }
    }
}
