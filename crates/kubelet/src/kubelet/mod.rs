//! The mind of one node: it is told what happened, changes what is known, and has each pod that this touches synced.

pub(crate) mod admit;
mod cluster;
pub(crate) mod devices;
pub(crate) mod evict;
pub(crate) mod housekeeping;
pub(crate) mod manifests;
pub(crate) mod mirrors;
mod outcomes;
pub(crate) mod pinning;
mod preempt;
pub(crate) mod resize;
pub(crate) mod shutdown;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::core::v1::{Node, Pod};
use corten_meta::Time;

use crate::{
    ApiFailure, Config, Effect, Event, Outcome, PodRef, Snapshot, Source,
    node::{devices::Devices, image_gc::ImageGc, managers::Managers, pressure::Pressure, status::NodeMachine},
    pod::{
        context::Context,
        machine::{PatchState, PodMachine},
        termination::Termination,
    },
    spec::{
        pod::spec_of,
        runtime_class::RuntimeClasses,
        services::Services,
        sources::{self, Sources},
        trust_bundles::TrustBundles,
    },
    static_pods::{
        manifest::Manifests,
        mirror::{self, Mirrors},
    },
};

/// The mind of one node.
pub struct Kubelet {
    config: Config,
    node: NodeMachine,
    /// By uid.
    pods: BTreeMap<String, PodMachine>,
    sources: Sources,
    services: Services,
    runtime_classes: RuntimeClasses,
    devices: Devices,
    trust_bundles: TrustBundles,
    manifests: Manifests,
    mirrors: Mirrors,
    pressure: Pressure,
    eviction_phase: evict::EvictionPhase,
    garbage: ImageGc,
    managers: Managers,
    /// What no pod has and is still staged: it must not be detached yet.
    volumes_left: BTreeSet<String>,
    shutdown: Option<shutdown::Shutdown>,
    /// Before the first snapshot nothing is begun: what already runs is to be adopted.
    runtime_is_known: bool,
    /// Before the API's list is complete no stranger is stopped.
    pods_are_known: bool,
    /// What was removed, and when: an older snapshot may still show it.
    removed: BTreeMap<String, Time>,
    node_wake: Option<Time>,
    wake: Option<Time>,
}

impl Kubelet {
    pub fn new(config: Config) -> Self {
        let manifests = Manifests::new(!config.has_manifests);
        // Whoever starts a kubelet has asked `check_managers` before.
        let managers = Managers::new(&config).unwrap_or_default();
        Self {
            config,
            manifests,
            mirrors: Mirrors::default(),
            pressure: Pressure::default(),
            eviction_phase: evict::EvictionPhase::default(),
            garbage: ImageGc::default(),
            managers,
            volumes_left: BTreeSet::new(),
            shutdown: None,
            node: NodeMachine::default(),
            pods: BTreeMap::new(),
            sources: Sources::default(),
            services: Services::default(),
            runtime_classes: RuntimeClasses::default(),
            devices: Devices::default(),
            trust_bundles: TrustBundles::default(),
            runtime_is_known: false,
            pods_are_known: false,
            removed: BTreeMap::new(),
            node_wake: None,
            wake: None,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The pods that are wanted here, with the status that each has now, whatever the API has heard of it.
    pub fn pods(&mut self, now: Time) -> Vec<Pod> {
        let wanted: Vec<String> =
            self.pods.iter().filter(|(_, it)| it.in_api || it.is_static()).map(|(uid, _)| uid.clone()).collect();
        let (mut shown, mut effects) = (Vec::new(), Vec::new());
        for uid in wanted {
            self.with(&uid, now, &mut effects, |machine, cx| shown.push(machine.shown(cx)));
        }
        shown
    }

    /// This node's Node, as far as it is known here.
    pub fn node(&self) -> Option<&Node> {
        self.node.known()
    }

    /// Takes one event in and says what is to be done.
    pub fn step(&mut self, event: Event, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        let changed = self.take_in(event, now, &mut effects);
        for uid in changed {
            self.sync_pod(&uid, now, &mut effects);
        }
        for uid in self.with_room_made() {
            self.sync_pod(&uid, now, &mut effects);
        }
        let care_wake = self.tend_node(now, &mut effects);
        self.release_devices(&mut effects);
        self.node.set_devices(self.devices.counts());
        let managers_wake = self.tend_managers(now, &mut effects);
        let in_use = self.pods.values().flat_map(|it| it.claims.in_use());
        self.node.set_volumes_in_use(in_use.chain(self.volumes_left.iter().cloned()).collect());
        self.node_wake = self.node.look(&self.config, now, &mut effects);
        let mirror_wake = self.tend_mirrors(now, &mut effects);
        let wakes = self.node_wake.into_iter().chain(mirror_wake).chain(care_wake).chain(managers_wake);
        let wake = self.pods.values().filter_map(|it| it.wake).chain(wakes).min();
        if wake.is_some() && wake != self.wake {
            effects.extend(wake.map(Effect::WakeAt));
        }
        self.wake = wake;
        effects
    }

    /// Changes what is known and names the pods that must be looked at.
    fn take_in(&mut self, event: Event, now: Time, effects: &mut Vec<Effect>) -> Vec<String> {
        match event {
            Event::Pod(pod) => self.pod_seen(pod, now, effects).into_iter().collect(),
            Event::PodGone(who) => {
                if let Some(machine) = self.pods.get_mut(&who.uid) {
                    machine.in_api = false;
                    vec![who.uid]
                } else if self.mirror_gone(&who) {
                    self.manifests.of.get(&who.key).cloned().into_iter().collect()
                } else {
                    Vec::new()
                }
            }
            Event::PodsSynced => {
                self.pods_are_known = true;
                self.all()
            }
            Event::Source { source, data } => {
                if self.sources.update(&source, data) {
                    self.users_of(&source)
                } else {
                    Vec::new()
                }
            }
            Event::Service { .. }
            | Event::ServicesSynced
            | Event::RuntimeClass { .. }
            | Event::RuntimeClassesSynced
            | Event::TrustBundle { .. }
            | Event::TrustBundlesSynced => self.cluster_told(event),
            Event::Token { pod, wish, result } => {
                self.of_pod(pod, now, effects, |machine, cx| machine.token_done(&wish, result, cx))
            }
            Event::CertificateAsked { pod, place, result } => {
                self.of_pod(pod, now, effects, |machine, cx| machine.certificate_asked(&place, result, cx))
            }
            Event::CertificateRequest { key, news } => self.certificate_told(&key, news, now, effects),
            Event::VolumeRead { pod, volume, result } => {
                self.of_pod(pod, now, effects, |machine, cx| machine.volume_read(&volume, result, cx))
            }
            Event::Done { pod, outcome: Outcome::Devices(result) } => self.devices_given(&pod, result),
            Event::DeviceClaimsRead { pod, result } => {
                self.of_pod(pod, now, effects, |machine, cx| machine.device_claims_read(result, cx))
            }
            Event::Snapshot(snapshot) => self.observe(&snapshot, now),
            Event::Done { pod, outcome } => {
                self.done(&pod, outcome, now, effects);
                vec![pod.uid]
            }
            Event::StatusPatched { pod, result } => self.status_patched(pod, result, now, effects),
            Event::Manifests(manifests) => self.read_manifests(manifests, now, effects),
            Event::MirrorCreated { key, result } => {
                self.mirror_written(&key, result.map(Some), now);
                self.manifests.of.get(&key).cloned().into_iter().collect()
            }
            Event::PodDeleted { pod, result } if self.mirror_written(&pod.key, result.clone().map(|()| None), now) => {
                self.manifests.of.get(&pod.key).cloned().into_iter().collect()
            }
            Event::PodDeleted { pod, result } => {
                self.of_pod(pod, now, effects, |machine, cx| machine.deleted_from_api(result, cx))
            }
            Event::NodeRead { pod, result } => self.node_read(&pod.uid, result),
            Event::Node(_) | Event::NodeWritten(_) | Event::LeaseRenewed(_) | Event::Facts(_) => {
                self.own_node_told(event, now)
            }
            Event::OfNode(news) => self.node_told(news, now, effects),
            Event::Tick => {
                // Even a timer that rang too early must be set anew.
                self.wake = None;
                let is_due = |it: &PodMachine| it.wake.is_some_and(|it| it <= now);
                self.pods.iter().filter(|(_, it)| is_due(it)).map(|(uid, _)| uid.clone()).collect()
            }
        }
    }

    /// What the API has of this node, and what the machine says of itself.
    fn own_node_told(&mut self, event: Event, now: Time) -> Vec<String> {
        match event {
            Event::Node(node) => self.node.set_node(node),
            Event::NodeWritten(result) => self.node.written(result, now),
            Event::Facts(facts) => self.node.set_facts(facts),
            Event::LeaseRenewed(result) => {
                self.node.lease_renewed(&result, now);
                return Vec::new();
            }
            _ => return Vec::new(),
        }
        self.undecided()
    }

    /// Pods that name a ConfigMap or Secret.
    fn users_of(&self, source: &Source) -> Vec<String> {
        let names_it = |it: &PodMachine| sources::named_by(&it.pod).contains(source);
        self.pods.iter().filter(|(_, it)| names_it(it)).map(|(uid, _)| uid.clone()).collect()
    }

    /// Undecided ones last: by then it is known what the others take.
    fn all(&self) -> Vec<String> {
        let decided = self.pods.iter().filter(|(_, it)| !it.in_api || it.is_decided()).map(|(uid, _)| uid.clone());
        decided.chain(self.undecided()).collect()
    }

    fn pod_seen(&mut self, pod: Box<Pod>, now: Time, effects: &mut Vec<Effect>) -> Option<String> {
        let who = PodRef::of(&pod);
        if who.uid.is_empty() || spec_of(&pod).node_name.as_ref() != Some(&self.config.node_name) {
            return None;
        }
        // What runs here stays what it is, whatever somebody writes on it.
        if mirror::is_mirror(&pod) && !self.pods.contains_key(&who.uid) {
            return self.mirror_seen(pod);
        }
        let pod: Arc<Pod> = Arc::from(pod);
        match self.pods.get_mut(&who.uid) {
            Some(machine) if machine.in_api && version(&pod) < version(&machine.pod) => return None,
            Some(machine) => {
                machine.take(pod);
                machine.in_api = true;
            }
            None => {
                self.pods.insert(who.uid.clone(), PodMachine::new(who.clone(), pod, true, now));
            }
        }
        self.follow(effects);
        Some(who.uid)
    }

    /// Follows the ConfigMaps and Secrets of the pods that are still wanted.
    fn follow(&mut self, effects: &mut Vec<Effect>) {
        let wanted = self.pods.values().filter(|it| it.in_api);
        let needed: BTreeSet<Source> = wanted.flat_map(|it| sources::named_by(&it.pod)).collect();
        effects.extend(self.sources.follow(&needed));
    }

    fn observe(&mut self, snapshot: &Snapshot, now: Time) -> Vec<String> {
        let shown: BTreeSet<&str> = (snapshot.sandboxes.iter().map(|it| it.id.as_str()))
            .chain(snapshot.containers.iter().map(|it| it.id.as_str()))
            .collect();
        self.removed.retain(|id, at| Some(*at) >= snapshot.taken_at || shown.contains(id.as_str()));
        // Whoever has something here is someone, even if the API does not know of them.
        let owners = (snapshot.sandboxes.iter().map(|it| (&it.id, &it.pod)))
            .chain(snapshot.containers.iter().map(|it| (&it.id, &it.pod)))
            .filter(|(id, who)| !who.uid.is_empty() && !self.removed.contains_key(*id));
        let owners: Vec<PodRef> = owners.map(|it| it.1.clone()).collect();
        for who in owners {
            if !self.pods.contains_key(&who.uid) {
                self.adopt_stranger(who, now);
            }
        }
        for machine in self.pods.values_mut() {
            machine.observe(snapshot, &self.removed);
            machine.heed_stops(&self.config.stopped_with_machine);
        }
        self.runtime_is_known = true;
        self.all()
    }

    /// A pod of which something is here, and which the API may not know of.
    fn adopt_stranger(&mut self, who: PodRef, now: Time) -> String {
        let uid = who.uid.clone();
        let pod = Arc::new(stranger(&who));
        self.pods.insert(uid.clone(), PodMachine::new(who, pod, false, now));
        uid
    }

    fn status_patched(
        &mut self,
        pod: PodRef,
        result: Result<Box<Pod>, ApiFailure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Vec<String> {
        let mirror = result.as_ref().ok().filter(|it| mirror::is_mirror(it)).cloned();
        self.with(&pod.uid, now, effects, |machine, cx| match result {
            Ok(newer) => {
                let sent = std::mem::take(&mut machine.patch.sent);
                let made = newer.metadata.resource_version.clone();
                machine.patch = PatchState { sent, made, ..PatchState::default() };
                if !machine.is_static() && version(&newer) >= version(&machine.pod) {
                    machine.take(Arc::from(newer));
                }
            }
            Err(failure) => machine.patch_failed(&failure, cx),
        });
        if let Some(mirror) = mirror {
            self.mirror_seen(mirror);
        }
        vec![pod.uid]
    }

    /// Calls `act` with the pod and a context; nothing where there is no such pod.
    fn with(
        &mut self,
        uid: &str,
        now: Time,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut PodMachine, &mut Context<'_>),
    ) -> Option<Time> {
        let machine = self.pods.get_mut(uid)?;
        let (facts, effects_so_far) = (self.node.facts(), std::mem::take(effects));
        let mut cx = Context {
            config: &self.config,
            facts,
            sources: &self.sources,
            services: &self.services,
            runtime_classes: &self.runtime_classes,
            devices: &self.devices,
            trust_bundles: &self.trust_bundles,
            managers: &self.managers,
            now,
            effects: effects_so_far,
            wake: None,
        };
        act(machine, &mut cx);
        *effects = cx.effects;
        cx.wake
    }

    /// The same for news of one pod, which is to be looked at afterwards.
    fn of_pod(
        &mut self,
        pod: PodRef,
        now: Time,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut PodMachine, &mut Context<'_>),
    ) -> Vec<String> {
        self.with(&pod.uid, now, effects, act);
        vec![pod.uid]
    }

    fn sync_pod(&mut self, uid: &str, now: Time, effects: &mut Vec<Effect>) {
        let Some(machine) = self.pods.get(uid) else { return };
        let is_static = machine.is_static();
        let all_are_known = self.pods_are_known && self.manifests.are_known;
        if !(machine.in_api || is_static || all_are_known) {
            return;
        }
        // As in `allowStaticPodStart`: of two static pods of one name the newer one waits until the other is gone.
        let key = machine.who.key.clone();
        let waits = |it: &PodMachine| it.who.key == key && it.who.uid != uid && it.is_static() && !it.in_api;
        if is_static && machine.in_api && self.pods.values().any(waits) {
            return;
        }
        let is_successor = |it: &PodMachine| it.who.key == key && it.who.uid != uid && it.in_api;
        let has_successor = !machine.in_api && self.pods.values().any(is_successor);
        let runtime_is_known = self.runtime_is_known;
        let was_decided = machine.is_decided();
        self.admit(uid, now, effects);
        if self.managers.is_unwritten(uid) {
            return;
        }
        let resize_wake = self.consider_resize(uid, now, effects);
        let wake = self.with(uid, now, effects, |machine, cx| {
            if !was_decided {
                machine.note_rejection(cx);
            }
            machine.has_successor = has_successor;
            machine.sync_pod(cx, runtime_is_known);
        });
        let Some(machine) = self.pods.get_mut(uid) else { return };
        machine.wake = wake.into_iter().chain(resize_wake).min();
        let is_gone = !machine.in_api || machine.is_static();
        if is_gone && machine.ending.as_ref().is_some_and(Termination::is_over) {
            let gone = self.pods.remove(uid);
            self.follow(effects);
            // Another pod may have the name by now.
            if !self.pods.values().any(|it| it.who.key == key) {
                effects.push(Effect::Forget { pod: key.clone() });
            }
            if let Some(newer) = self.manifests.of.get(&key).cloned() {
                // The file went and came back while its pod was ending.
                if let Some(gone) = gone.filter(|it| it.who.uid == newer) {
                    self.pods.insert(newer.clone(), gone.anew(now));
                    self.attach_mirrors();
                }
                self.sync_pod(&newer, now, effects);
            }
        }
    }
}

/// All that is known of a pod the API does not have.
fn stranger(who: &PodRef) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = Some(who.key.namespace.clone());
    pod.metadata.name = Some(who.key.name.clone());
    pod.metadata.uid = Some(who.uid.clone());
    pod
}

/// Newer objects have larger numbers; what is no number counts as oldest.
pub(crate) fn version(pod: &Pod) -> u64 {
    pod.metadata.resource_version.as_ref().and_then(|it| it.parse().ok()).unwrap_or(0)
}
