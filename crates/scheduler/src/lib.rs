//! Decides which node runs which pod.
//!
//! A stepped mind: [`Scheduler::step`] takes what happened and gives back what to do. Every event only updates the
//! queue and the columns of the [`Snapshot`]; pods are placed on [`Event::Tick`], which the mind asks for with
//! [`Effect::WakeAt`]. So whoever feeds it first tells all it knows (the initial lists), then ticks.

mod among;
mod arguments;
mod budgets;
mod cluster;
mod cluster_object;
mod configuration;
mod consultations;
mod cycle;
mod device_waits;
mod devices;
mod entry;
mod event;
mod explaining;
mod extender;
mod framework;
mod gang;
mod groupings;
mod images;
mod labelled_group;
mod namespaces;
mod nearest;
mod node_room;
mod nominations;
mod observer;
mod ordered_pod;
mod parked;
mod placement;
mod placing;
mod plugins;
mod pod_groups;
mod pod_info;
mod preemption;
mod profile;
mod projections;
mod queue;
mod report;
mod requests;
mod snapshot;
mod storage;
mod telling;
#[cfg(test)]
mod tests;
mod topology_pod_counts;
mod trial;
mod under_way;
mod verdicts;
mod victims;
mod volumes;
mod waking;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use corten_api::lease_times::LeaseTimes;
use corten_meta::{Key, Time};

pub use budgets::DisruptionBudget;
pub use cluster_object::ClusterObject;
pub use devices::{
    CLAIM_FINALIZER, ClaimRelease, ClaimReservation, DeviceClaim, DeviceClass, DeviceObject, DeviceSlice,
    DeviceTaintRule, ExtendedClaimWrite, NewClaim,
};
pub use event::{Effect, Event, Eviction};
pub use extender::{
    Advice, Consultation, Extender, ExtenderFailure, ExtenderTls, NodeAdvice, NodeRefusal, NodeVictims, Pem, Question,
};
pub use framework::Plugin;
pub use groupings::{Grouping, ReplicaSet, ReplicationController, Service, StatefulSet};
pub use labelled_group::{DEFINITION as LABELLED_GROUPS_DEFINITION, LabelledGroup};
pub use namespaces::Namespace;
pub use node_room::{NodeCapacity, PodDemand};
pub use observer::{
    Change, ExtensionPoint, Fact, Moment, Observer, Pending, PluginSet, PodQueue, PointStatus, QueueEvent, Span,
    Subject, TryResult,
};
pub use plugins::PLUGINS;
pub use pod_groups::PodGroup;
pub use pod_info::PodInfo;
pub use profile::Profile;
pub use projections::{Node, Pod};
pub use snapshot::Snapshot;
pub use storage::{Attachment, Claim, CsiDriver, CsiNode, StorageCapacity, StorageClass, StorageObject, Volume};

use budgets::Budgets;
use entry::{DeviceWait, Entry, PodState};
use observer::Unobserved;
use queue::Queue;
use storage::WaitingPods;
use under_way::Consultations;

/// The Lease whose holder schedules, and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    pub namespace: String,
    pub name: String,
    pub times: LeaseTimes,
}

/// How the scheduler behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pods that name none of these are counted, never placed.
    pub profiles: Vec<Profile>,
    /// The servers that are asked beside the plugins, in this order.
    pub extenders: Vec<Extender>,
    /// Where the cluster is described. This and the next are for the process that a scheduler has of its own: it does not look at them itself.
    pub kubeconfig: Option<PathBuf>,
    /// Schedulers that share a lease, of which its holder schedules.
    pub leader_election: Option<LeaderElection>,
    /// Breaks ties between equally good nodes; the same seed and events give the same placements.
    pub seed: u64,
    pub backoff_initial: Duration,
    pub backoff_max: Duration,
    /// An unschedulable pod is tried again after this long even if nothing happened that could help it.
    pub unschedulable_retry: Duration,
    /// How many pods one tick places at most, so that a tick stays short.
    pub pods_per_tick_max: usize,
}

impl Config {
    /// What users see as the source of what is told of the scheduler itself: its first profile, as upstream has it.
    pub fn component(&self) -> &str {
        self.profiles.first().map_or("default-scheduler", |it| &it.name)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profiles: vec![Profile::default()],
            extenders: Vec::new(),
            kubeconfig: None,
            leader_election: None,
            seed: 0,
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(10),
            unschedulable_retry: Duration::from_secs(5 * 60),
            pods_per_tick_max: 256,
        }
    }
}

/// See the crate's documentation.
pub struct Scheduler {
    config: Config,
    profiles: BTreeMap<String, Arc<Profile>>,
    snapshot: Snapshot,
    pods: BTreeMap<Key, Entry>,
    queue: Queue,
    cycle: cycle::Cycle,
    waiting: WaitingPods,
    device_waits: BTreeMap<Key, DeviceWait>,
    budgets: Budgets,
    consultations: Consultations,
    /// By the pod that the room is for: the pods that were asked to leave, and are not seen to go yet.
    evicting: BTreeMap<Key, BTreeSet<Key>>,
    observer: Arc<dyn Observer>,
    /// Of parked pods it may be found out anew why they fit nowhere, from then on; nothing where nothing has changed.
    explain_at: Option<Time>,
    explained_at: Time,
    /// The earliest wake-up already asked for and not yet answered by a tick.
    announced: Option<Time>,
}

impl Scheduler {
    pub fn new(config: Config) -> Self {
        let queue = Queue::new(config.backoff_initial, config.backoff_max, config.unschedulable_retry);
        let cycle = cycle::Cycle::new(config.seed);
        let (snapshot, pods) = (Snapshot::default(), BTreeMap::new());
        let profiles = config.profiles.iter().map(|it| (it.name.clone(), Arc::new(it.clone()))).collect();
        Self {
            config,
            profiles,
            snapshot,
            pods,
            queue,
            cycle,
            waiting: WaitingPods::default(),
            device_waits: BTreeMap::new(),
            budgets: Budgets::default(),
            consultations: Consultations::default(),
            evicting: BTreeMap::new(),
            observer: Arc::new(Unobserved),
            explain_at: None,
            explained_at: Time::MIN,
            announced: None,
        }
    }

    /// From now on this observer is told what it does.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.queue.observed_by(Arc::clone(&observer));
        Self { observer, ..self }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes one event in and says what to do. Only [`Event::Tick`] places pods.
    pub fn step(&mut self, event: Event, now: Time) -> Vec<Effect> {
        self.step_telling(event, now, &mut |_| ())
    }

    /// As [`Scheduler::step`], and says before it places a pod which one that is: whoever watches over it can name what it
    /// does not come back from.
    pub fn step_telling(&mut self, event: Event, now: Time, about: &mut dyn FnMut(&Key)) -> Vec<Effect> {
        let mut effects = match event {
            Event::Node(node) => self.node_seen(&node, now),
            Event::NodeGone(name) => self.node_gone(&name, now),
            Event::Pod(pod) => self.pod_seen(*pod, now),
            Event::PodGone(key) => self.pod_gone(&key, now),
            Event::Storage(object) => self.storage_seen(*object, now),
            Event::StorageGone(resource, key) => self.storage_gone(&resource, &key, now),
            Event::VolumesFailed { pod, uid, message } => self.volumes_failed(&pod, &uid, &message, now),
            Event::ReserveFailed { pod, uid, message } => self.devices_failed(&pod, &uid, &message, now),
            Event::Bound { pod, uid, node } => self.bound(&pod, &uid, &node, now),
            Event::BoundByAnother { pod, uid, node } => self.bound_by_another(&pod, &uid, &node, now),
            Event::BindFailed { pod, uid, retry, message } => self.bind_failed(&pod, &uid, retry, &message, now),
            Event::Cluster(object) => self.cluster_seen(*object, now),
            Event::ClusterGone(resource, key) => self.cluster_gone(&resource, &key),
            Event::LabelledGroupsServed(are_served) => self.labelled_groups_served(are_served, now),
            Event::Advised { pod, id, answer } => self.advised(&pod, id, answer, now),
            Event::Evicted { eviction } => self.evicted(&eviction),
            Event::EvictionFailed { eviction, .. } => {
                self.eviction_failed(&eviction, now);
                Vec::new()
            }
            Event::Tick => {
                self.announced = None;
                let mut effects = self.end_waits(now);
                effects.extend(self.place_pods(now, about));
                effects.extend(self.explain_outdated(now));
                effects
            }
        };
        effects.extend(self.tell_backing_off(now));
        effects.extend(self.wake_at(now));
        effects
    }

    /// How many pods wait to be tried.
    pub fn pending(&self) -> Pending {
        self.queue.pending()
    }

    /// The scheduler that a pod names, where the pod is known.
    pub fn profile_of(&self, pod: &Key) -> Option<&str> {
        self.pods.get(pod).map(|it| &*it.info.scheduler_name)
    }

    /// What it believes about the nodes, for tests and metrics.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn node_seen(&mut self, node: &Node, now: Time) -> Vec<Effect> {
        if let Some(change) = self.snapshot.set_node(node) {
            self.queue.because(QueueEvent::Of(Subject::Node, change));
            self.outdate_reasons(now);
            self.wake_lookers(now);
            // Only now: whom this node keeps away for what runs elsewhere is helped by what happens from now on.
            self.wake_helped(&node.metadata.name, now);
        }
        Vec::new()
    }

    fn node_gone(&mut self, name: &str, now: Time) -> Vec<Effect> {
        self.snapshot.remove_node(name);
        self.queue.because(QueueEvent::Of(Subject::Node, Change::Delete));
        self.outdate_reasons(now);
        self.wake_lookers(now);
        Vec::new()
    }

    fn pod_seen(&mut self, pod: Pod, now: Time) -> Vec<Effect> {
        let key = pod.metadata.key();
        let is_another = self.pods.get(&key).is_some_and(|it| it.info.uid != pod.metadata.uid);
        let mut of_others = if is_another { self.forget(&key, now) } else { Vec::new() };
        if matches!(&*pod.status.phase, "Succeeded" | "Failed") {
            of_others.extend(self.found_bound(&key, &pod.spec.node_name, now));
            of_others.extend(self.forget(&key, now));
            return of_others;
        }
        of_others.extend(self.pod_taken_in(pod, key, now));
        of_others
    }

    fn pod_taken_in(&mut self, pod: Pod, key: Key, now: Time) -> Vec<Effect> {
        let known = self.pods.get(&key).map(|it| (Arc::clone(&it.info), it.place.clone(), it.since));
        let info = Arc::new(PodInfo::new(&pod));
        let place = match (&*pod.spec.node_name, &known) {
            // A bind is on its way: this is the pod from before it.
            ("", Some((_, PodState::Assumed(node), _))) => PodState::Assumed(node.clone()),
            ("", _) if pod.metadata.is_deleting() || !self.profiles.contains_key(&info.scheduler_name) => {
                PodState::Foreign
            }
            ("", _) => PodState::Waiting,
            (node, _) => PodState::Bound(node.to_owned()),
        };
        let effects = self.found_bound(&key, &pod.spec.node_name, now);
        self.move_usage(&key, known.as_ref().map(|it| (&it.0, &it.1)), (&info, &place), now);
        let is_waiting = place == PodState::Waiting;
        let change = if is_waiting { change_of(known.as_ref().map(|it| &*it.0), &info) } else { Change::Update };
        self.queue.because(QueueEvent::Of(Subject::UnschedulablePod, change));
        let since = known.as_ref().map_or(now, |it| it.2);
        let nomination = self.nomination_seen(&key, &pod.status.nominated_node_name);
        let mut entry = Entry::new(pod, Arc::clone(&info), place.clone(), since);
        if let Some(old) = self.pods.get_mut(&key) {
            entry.nominated = std::mem::take(&mut old.nominated);
        }
        self.pods.insert(key.clone(), entry);
        if info.deleting {
            // From now on it is seen that it goes.
            self.no_longer_asked(&key);
        }
        self.nomination_follows(&key, &nomination, now);
        let of_group = self.membership_follows(&info, &place, now);

        if place != PodState::Waiting {
            // One that is being bound is still being tried.
            if !matches!(place, PodState::Assumed(_)) {
                self.wait_no_more(&key);
                self.queue.remove(&key);
            }
            return effects.into_iter().chain(of_group).collect();
        }
        let unchanged = known.as_ref().is_some_and(|it| *it.0 == *info);
        if unchanged && self.queue.contains(&key) {
            return of_group;
        }
        let Some(gate) = self.gate_of(&info) else {
            match known.filter(|it| it.0.group == info.group && self.queue.is_waiting(&key)) {
                Some((old, ..)) => self.wake_changed(&old, &info, now),
                None => {
                    self.consultations.forget(&key);
                    self.queue.activate(&key, info.priority, now);
                }
            }
            return of_group;
        };
        self.consultations.forget(&key);
        self.queue.gate(&info, gate);
        // Where its group was told of it, it was, too.
        let is_told = unchanged || !of_group.is_empty();
        let own = (!is_told).then(|| report::gated(&self.pods[&key], &self.snapshot.pod_groups, now));
        of_group.into_iter().chain(own.into_iter().flatten()).collect()
    }

    /// A pod that is ours to place, or has a node, is one of its group.
    fn membership_follows(&mut self, info: &PodInfo, place: &PodState, now: Time) -> Vec<Effect> {
        let Some(group) = &info.group else { return Vec::new() };
        let groups = &mut self.snapshot.pod_groups;
        let has_moved = match place {
            PodState::Foreign => groups.remove_member(group, &info.key),
            // Those of a large group are not looked at for each that comes: they are let in by the one that completes it.
            _ => {
                groups.add_member(group, &info.key)
                    && (groups.is_just_complete(group) || groups.tells_its_pods(group) || self.queue.has_passive())
            }
        };
        if has_moved { self.group_moved(group, now) } else { Vec::new() }
    }

    /// A pod that was not known to be on a node is on one: the answer to its binding was lost or is late, or somebody else
    /// bound it. What it was said to wait for is over.
    fn found_bound(&self, key: &Key, node: &str, now: Time) -> Vec<Effect> {
        let open = |it: &&Entry| matches!(it.place, PodState::Waiting | PodState::Assumed(_)) && !node.is_empty();
        let open = self.pods.get(key).filter(open);
        if let Some(PodState::Assumed(assumed)) = open.map(|it| &it.place) {
            self.tell_on_node(key, (assumed, node), now);
        }
        open.map(|it| report::found_bound(&it.info, node, it.since, now)).into_iter().collect()
    }

    /// Keeps the snapshot in step with a pod's move from one place (and shape) to another.
    fn move_usage(
        &mut self,
        key: &Key,
        old: Option<(&Arc<PodInfo>, &PodState)>,
        new: (&Arc<PodInfo>, &PodState),
        now: Time,
    ) {
        let old_node = old.and_then(|it| it.1.node());
        let new_node = new.1.node();
        if old_node == new_node && old.is_some_and(|it| it.0.uses_same(new.0)) {
            return;
        }
        let change = match old.filter(|_| old_node.is_some()) {
            None => Change::Add,
            Some(_) if new_node.is_none() => Change::Delete,
            Some((info, _)) => change_of(Some(info), new.0),
        };
        self.queue.because(QueueEvent::Of(Subject::AssignedPod, change));
        let left = old.zip(old_node).map(|(old, node)| (old.0, node));
        if let Some((info, node)) = left {
            self.snapshot.remove_pod(node, key, info);
            self.outdate_reasons(now);
        }
        if let Some(node) = new_node {
            self.snapshot.add_pod(node, key, new.0);
            self.wake_concerned(new.0, now);
        }
        // Only now: a pod that stays where it is has never made room.
        if let Some((info, node)) = left {
            self.wake_helped(node, now);
            self.wake_concerned(info, now);
        }
    }

    fn pod_gone(&mut self, key: &Key, now: Time) -> Vec<Effect> {
        self.forget(key, now)
    }

    fn forget(&mut self, key: &Key, now: Time) -> Vec<Effect> {
        self.queue.remove(key);
        self.queue.because(QueueEvent::Of(Subject::UnschedulablePod, Change::Delete));
        self.wait_no_more(key);
        self.snapshot.devices.forget(key);
        self.end_nomination(key, now);
        self.evicting.remove(key);
        self.consultations.forget(key);
        let Some(entry) = self.pods.remove(key) else { return Vec::new() };
        let preemptors = self.no_longer_asked(key);
        let group = entry.info.group.as_ref().filter(|it| self.snapshot.pod_groups.remove_member(it, key));
        let effects = group.map(|it| self.group_moved(it, now)).unwrap_or_default();
        if let Some(node) = entry.place.node() {
            self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Delete));
            self.snapshot.remove_pod(node, key, &entry.info);
            self.outdate_reasons(now);
            self.wake_helped(node, now);
            self.wake_concerned(&entry.info, now);
        }
        // The last that was to leave for a pod may have been on another node than the one that is kept for it.
        for preemptor in preemptors {
            if !self.waits_for_victims(&preemptor) {
                self.queue.wake_one(&preemptor, now);
            }
        }
        effects
    }

    fn bound(&mut self, key: &Key, uid: &str, node: &str, now: Time) -> Vec<Effect> {
        let Some(entry) = self.pods.get(key).filter(|it| it.info.uid == uid) else { return Vec::new() };
        if let PodState::Assumed(assumed) = &entry.place {
            self.tell_on_node(key, (assumed, node), now);
        }
        self.settled(key, node).map_or_else(Vec::new, |entry| report::bound(&entry.info, node, entry.since, now))
    }

    /// Who has bound it says so, and counts it.
    fn bound_by_another(&mut self, key: &Key, uid: &str, node: &str, now: Time) -> Vec<Effect> {
        let Some(entry) = self.pods.get(key).filter(|it| it.info.uid == uid) else { return Vec::new() };
        if matches!(entry.place, PodState::Assumed(_)) {
            self.tell_too_late(key);
        }
        let entry = self.settled(key, node);
        entry.map(|it| report::found_bound(&it.info, node, it.since, now)).into_iter().collect()
    }

    /// It is on this node. Where it was assumed to be on another one, its own event moves it.
    fn settled(&mut self, key: &Key, node: &str) -> Option<&Entry> {
        self.queue.done(key);
        let entry = self.pods.get_mut(key)?;
        if entry.place == PodState::Assumed(node.to_owned()) {
            entry.place = PodState::Bound(node.to_owned());
        }
        Some(entry)
    }

    fn bind_failed(
        &mut self,
        key: &Key,
        uid: &str,
        retry: corten_meta::Retry,
        message: &str,
        now: Time,
    ) -> Vec<Effect> {
        let Some(entry) = self.pods.get_mut(key).filter(|it| it.info.uid == uid) else { return Vec::new() };
        // Anything but an assumption means that the pod's own event was faster than the answer.
        let PodState::Assumed(node) = entry.place.clone() else { return Vec::new() };
        entry.place = PodState::Waiting;
        let info = Arc::clone(&entry.info);
        self.snapshot.remove_pod(&node, key, &info);
        self.snapshot.devices.forget(key);
        let tried = self.queue.trying(key);
        self.queue.back_off(key, info.priority, now);
        self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Delete));
        let effects = report::bind_failed(entry, &node, retry, message, now);
        self.tell_tried(&info, tried, TryResult::Error);
        self.restore_nomination(key, now);
        self.wake_helped(&node, now);
        self.wake_concerned(&info, now);
        effects
    }

    /// What was assumed of a pod on its node counts no more, and it is tried again after its back-off.
    fn leave_node(&mut self, pod: &Key, info: &PodInfo, node: &str, now: Time) {
        self.tell_tried(info, self.queue.trying(pod), TryResult::Error);
        self.queue.because(QueueEvent::Of(Subject::AssignedPod, Change::Delete));
        self.snapshot.remove_pod(node, pod, info);
        self.snapshot.devices.forget(pod);
        self.restore_nomination(pod, now);
        self.queue.back_off(pod, info.priority, now);
        self.wake_helped(node, now);
        self.wake_concerned(info, now);
    }

    /// Asks for the next tick, unless one that is early enough has been asked for already.
    fn wake_at(&mut self, now: Time) -> Option<Effect> {
        let expires =
            self.waiting.next().map(|it| it.0).into_iter().chain(self.device_waits.values().map(|it| it.until));
        let at = self.queue.next_at(now).into_iter().chain(expires).chain(self.explain_at).min()?;
        if self.announced.is_some_and(|it| it <= at) {
            return None;
        }
        self.announced = Some(at);
        Some(Effect::WakeAt(at))
    }

    /// The pods it believes to be on nodes, for the check that the columns are what a rebuild gives.
    #[cfg(test)]
    fn placed(&self) -> impl Iterator<Item = (&Key, &Arc<PodInfo>, &str)> {
        self.pods.iter().filter_map(|(key, it)| Some((key, &it.info, it.place.node()?)))
    }
}

/// What is other than it was of a pod, in upstream's words, and in the order in which it looks.
fn change_of(old: Option<&PodInfo>, new: &PodInfo) -> Change {
    match old {
        None => Change::Add,
        Some(old) if old.labels != new.labels => Change::PodLabel,
        Some(old) if old.requested.exceeds(&new.requested) => Change::PodScaleDown,
        Some(old) if !old.gates.is_empty() && new.gates.is_empty() => Change::PodGatesEliminated,
        Some(_) => Change::Update,
    }
}
