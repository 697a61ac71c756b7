//! All claims, volumes and snapshots that drivers of this node have to do with.

mod attached;
mod attachments;
mod capacities;
mod claims;
mod conditions;
mod metadata;
mod outcomes;
mod removed;
mod snapshots;
mod unfinished;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    snapshots::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent},
    storage::v1::{StorageClass, VolumeAttachment, VolumeAttributesClass},
};
use corten_meta::{Key, ObjectReference, Time};
use corten_reconcile::EventType;

use crate::{
    acting::{Acting, Actor},
    attaching, cloning, expansion, provision, removal, sidecars,
    words::{Config, CsiDriverSettings, DriverFacts, DriverPod, Effect, Event, Handles, Job, Topology},
};

/// The longest pause before the next try, as external-provisioner's `--retry-interval-max`.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The same for the node's part of a growth, which waits for a Pod.
const NODE_PAUSE_MAX: Duration = Duration::from_secs(8);
/// After so long external-resizer looks at all claims anew, those among them whose growth a node has refused for good.
const RESYNC_PERIOD: Duration = Duration::from_secs(600);
/// So long the nodes of a place have to elect who acts there, before it is looked whether anybody does.
const ELECTED_WITHIN: Duration = Duration::from_secs(20);
/// What was done is seen by the watch, or looked at again after so long.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// See the crate's documentation.
#[derive(Debug)]
pub struct Provisioner {
    config: Config,
    claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    volumes: BTreeMap<String, Arc<PersistentVolume>>,
    classes: BTreeMap<String, Arc<StorageClass>>,
    attributes_classes: BTreeMap<String, Arc<VolumeAttributesClass>>,
    attachments: BTreeMap<String, Arc<VolumeAttachment>>,
    /// By PersistentVolume.
    unfinished: BTreeMap<String, unfinished::Unfinished>,
    /// Claims whose last change of attributes the driver refused, doing nothing: to which class.
    refused_changes: BTreeMap<Key, String>,
    /// Claims whose last growth the driver refused, doing nothing: to how many bytes.
    refused_growths: BTreeMap<Key, u64>,
    snapshots: BTreeMap<Key, Arc<VolumeSnapshot>>,
    contents: BTreeMap<String, Arc<VolumeSnapshotContent>>,
    snapshot_classes: BTreeMap<String, Arc<VolumeSnapshotClass>>,
    /// What of these is not known is not there.
    are_snapshots_synced: bool,
    /// As they say of themselves.
    registered: BTreeMap<String, DriverFacts>,
    /// What of that is Corten's to do.
    drivers: BTreeMap<String, DriverFacts>,
    /// The Leases that this node holds.
    leases: BTreeSet<String>,
    /// Those of other places that were looked at last, for a claim, and held by nobody.
    vacant: BTreeMap<Key, String>,
    csi_drivers: BTreeMap<String, CsiDriverSettings>,
    /// Their labels.
    nodes: BTreeMap<String, Topology>,
    knows_nodes: bool,
    pods: BTreeMap<Key, DriverPod>,
    /// Where those are that may be drivers'. What Pods are elsewhere changes nothing.
    driver_namespaces: BTreeSet<String>,
    knows_pods: bool,
    /// Before that nothing is begun: a volume that is there already would be asked for again.
    is_synced: bool,
    work: BTreeMap<Subject, Work>,
    capacity: capacities::Capacities,
    conditions: conditions::Conditions,
    attached: attached::Attached,
    removed_volumes: removed::Removed,
    removed_contents: removed::Removed,
    wake: Option<Time>,
}

/// What something is under way about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Claim(Key),
    /// A PersistentVolume that may be made yet, for a claim that is gone.
    Abandoned(String),
    Volume(String),
    Attachment(String),
    /// A content of a snapshot.
    Content(String),
}

#[derive(Debug, Default)]
struct Work {
    in_flight: bool,
    failures: u32,
    retry_at: Option<Time>,
}

impl Provisioner {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            claims: BTreeMap::new(),
            volumes: BTreeMap::new(),
            classes: BTreeMap::new(),
            attributes_classes: BTreeMap::new(),
            attachments: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            refused_changes: BTreeMap::new(),
            refused_growths: BTreeMap::new(),
            registered: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            contents: BTreeMap::new(),
            snapshot_classes: BTreeMap::new(),
            are_snapshots_synced: false,
            drivers: BTreeMap::new(),
            leases: BTreeSet::new(),
            vacant: BTreeMap::new(),
            csi_drivers: BTreeMap::new(),
            nodes: BTreeMap::new(),
            knows_nodes: false,
            pods: BTreeMap::new(),
            driver_namespaces: BTreeSet::new(),
            knows_pods: false,
            is_synced: false,
            work: BTreeMap::new(),
            capacity: capacities::Capacities::default(),
            conditions: conditions::Conditions::default(),
            attached: attached::Attached::default(),
            removed_volumes: removed::Removed::default(),
            removed_contents: removed::Removed::default(),
            wake: None,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes one event in and says what is to be done.
    pub fn step(&mut self, event: Event, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        let subjects = self.take_in(event, now, &mut effects);
        if self.is_synced {
            for subject in subjects {
                self.look_at(&subject, now, &mut effects);
            }
            self.tell_capacity(now, &mut effects);
            self.ask_conditions(now, &mut effects);
            self.ask_attached(now, &mut effects);
        }
        let retries = self.work.values().filter(|it| !it.in_flight).filter_map(|it| it.retry_at);
        let wake = retries.chain(self.capacity.next).chain(self.conditions.next).chain(self.attached.next).min();
        if wake.is_some() && wake != self.wake {
            effects.extend(wake.map(Effect::WakeAt));
        }
        self.wake = wake;
        effects
    }

    /// Changes what is known and names what must be looked at.
    fn take_in(&mut self, event: Event, now: Time, effects: &mut Vec<Effect>) -> Vec<Subject> {
        match event {
            Event::Claim(claim) => self.take_in_claim(claim, now),
            Event::ClaimGone(key) => self.claim_gone(key),
            Event::Volume(volume) => self.take_in_volume(volume),
            Event::VolumeGone(name) => {
                let claim = self.volumes.remove(&name).as_deref().and_then(claim_of);
                self.removed_volumes.forget(&name);
                self.forget(&Subject::Volume(name));
                claim.map(Subject::Claim).into_iter().collect()
            }
            Event::Class(_)
            | Event::ClassGone(_)
            | Event::AttributesClass(_)
            | Event::AttributesClassGone(_)
            | Event::CsiDriver(..)
            | Event::CsiDriverGone(_) => self.take_in_class(event, now),
            Event::Snapshot(_)
            | Event::SnapshotGone(_)
            | Event::Content(_)
            | Event::ContentGone(_)
            | Event::SnapshotClass(_)
            | Event::SnapshotClassGone(_)
            | Event::SnapshotsSynced => self.take_in_snapshot(event),
            Event::Synced => {
                self.is_synced = true;
                self.capacity.tell_at(now);
                self.all()
            }
            Event::Attachment(attachment) => {
                let name = attachment.metadata.name.clone().unwrap_or_default();
                self.attachments.insert(name.clone(), attachment);
                vec![self.heard_of(Subject::Attachment(name))]
            }
            Event::AttachmentGone(name) => self.attachment_gone(name),
            Event::Drivers(drivers) => {
                self.registered = drivers.into_iter().map(|it| (it.name.clone(), it)).collect();
                self.capacity.tell_at(now);
                self.see_sidecars(now);
                self.all()
            }
            Event::Leads(leases) => {
                self.leases = leases;
                self.all()
            }
            Event::Pod(..) | Event::PodGone(_) | Event::PodsSynced => self.take_in_pod(event, now),
            Event::Node(..) | Event::NodeGone(_) | Event::NodesSynced => self.take_in_node(event),
            Event::Done(outcome) => {
                let source = self.source_of_abandoned(&outcome).map(Subject::Claim);
                std::iter::once(self.done(outcome, now, effects)).chain(source).collect()
            }
            Event::Conditions(..) | Event::Attached(..) | Event::CapacityTold(_) | Event::Capacities(_) => {
                self.take_in_told(event, effects)
            }
            Event::Tick => {
                self.wake = None;
                let is_due = |it: &Work| !it.in_flight && it.retry_at.is_some_and(|it| it <= now);
                self.work.iter().filter(|it| is_due(it.1)).map(|it| it.0.clone()).collect()
            }
        }
    }

    fn claim_gone(&mut self, key: Key) -> Vec<Subject> {
        let gone = self.claims.remove(&key);
        let source = gone.and_then(|it| cloning::deleted_source(&it, &self.claims));
        self.refused_changes.remove(&key);
        self.refused_growths.remove(&key);
        self.vacant.remove(&key);
        let abandoned = self.abandon(&key);
        self.forget(&Subject::Claim(key));
        abandoned.into_iter().chain(source.map(Subject::Claim)).collect()
    }

    fn take_in_volume(&mut self, volume: Arc<PersistentVolume>) -> Vec<Subject> {
        let name = volume.metadata.name.clone().unwrap_or_default();
        let claim = claim_of(&volume);
        let is_new = self.volumes.insert(name.clone(), volume).is_none();
        let clones = claim.iter().filter(|_| is_new).flat_map(|it| self.clones_of(it)).collect::<Vec<_>>();
        let subjects = std::iter::once(Subject::Volume(name)).chain(claim.map(Subject::Claim)).chain(clones);
        subjects.map(|it| self.heard_of(it)).collect()
    }

    fn take_in_claim(&mut self, claim: Arc<PersistentVolumeClaim>, now: Time) -> Vec<Subject> {
        let (key, subject) = (key_of(&claim), Subject::Claim(key_of(&claim)));
        let known = self.claims.get(&key);
        let asks_anew = known.is_some_and(|it| it.spec != claim.spec);
        let was_refused = known.is_some_and(|it| expansion::is_refused_by_node(it));
        let is_refused = !was_refused && expansion::is_refused_by_node(&claim);
        let is_another = known.is_some_and(|it| it.metadata.uid != claim.metadata.uid);
        let clones = known.into_iter().chain([&claim]);
        let sources: Vec<Key> = clones.filter_map(|it| cloning::deleted_source(it, &self.claims)).collect();
        let is_bound =
            |it: &PersistentVolumeClaim| it.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Bound");
        let is_bound_now = is_bound(&claim) && !known.is_some_and(|it| is_bound(it));
        let abandoned = if is_another { self.abandon(&key) } else { Vec::new() };
        self.claims.insert(key.clone(), claim);
        let clones = if is_bound_now { self.clones_of(&key) } else { Vec::new() };
        if asks_anew {
            // What failed before is no longer what is asked for.
            self.forget(&subject);
        } else if is_refused && !self.work.get(&subject).is_some_and(|it| it.in_flight) {
            self.failed(&subject, now);
            self.put_off(&subject, RESYNC_PERIOD, now);
        }
        let others = clones.into_iter().chain(sources.into_iter().map(Subject::Claim));
        abandoned.into_iter().chain([self.heard_of(subject)]).chain(others).collect()
    }

    fn take_in_class(&mut self, event: Event, now: Time) -> Vec<Subject> {
        match event {
            Event::Class(class) => {
                self.classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
                self.capacity.tell_at(now);
                self.all()
            }
            Event::ClassGone(name) => {
                self.classes.remove(&name);
                self.capacity.tell_at(now);
                Vec::new()
            }
            Event::AttributesClass(class) => {
                self.attributes_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
                self.claims.keys().cloned().map(Subject::Claim).collect()
            }
            Event::AttributesClassGone(name) => {
                self.attributes_classes.remove(&name);
                Vec::new()
            }
            Event::CsiDriver(name, settings) => {
                self.csi_drivers.insert(name, settings);
                Vec::new()
            }
            Event::CsiDriverGone(name) => {
                self.csi_drivers.remove(&name);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// What came of questions.
    fn take_in_told(&mut self, event: Event, effects: &mut Vec<Effect>) -> Vec<Subject> {
        match event {
            Event::Conditions(driver, told) => {
                self.conditions_told(&driver, told.as_ref(), effects);
                Vec::new()
            }
            Event::Attached(driver, told) => self.attached_told(&driver, told.as_ref()),
            Event::CapacityTold(name) => {
                self.capacity_told(name, effects);
                Vec::new()
            }
            Event::Capacities(found) => {
                self.capacity.found_earlier(found);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn take_in_pod(&mut self, event: Event, now: Time) -> Vec<Subject> {
        match event {
            Event::Pod(key, pod) => {
                let known = self.pods.insert(key.clone(), pod);
                let pod = &self.pods[&key];
                let may_be_drivers = known.iter().chain([pod]).any(|it| !it.folders.is_empty())
                    || self.driver_namespaces.contains(&*key.namespace);
                // Until all are known, one says nothing.
                let is_news = self.knows_pods && may_be_drivers && known.as_ref() != Some(pod);
                if is_news { self.see_sidecars(now) } else { Vec::new() }
            }
            Event::PodGone(key) => {
                self.pods.remove(&key);
                if self.driver_namespaces.contains(&*key.namespace) { self.see_sidecars(now) } else { Vec::new() }
            }
            Event::PodsSynced => {
                self.knows_pods = true;
                self.see_sidecars(now)
            }
            _ => Vec::new(),
        }
    }

    fn take_in_node(&mut self, event: Event) -> Vec<Subject> {
        match event {
            Event::Node(name, labels) => {
                let is_news = self.knows_nodes && self.nodes.get(&name) != Some(&labels);
                self.nodes.insert(name.clone(), labels);
                if is_news { self.claims_for(&name) } else { Vec::new() }
            }
            Event::NodeGone(name) => {
                self.nodes.remove(&name);
                Vec::new()
            }
            _ => {
                self.knows_nodes = true;
                self.all()
            }
        }
    }

    /// The claims that are to begin with what this one has, which is told by now: where that is says who makes them.
    fn clones_of(&mut self, claim: &Key) -> Vec<Subject> {
        let is_placed = |it: &DriverFacts| !it.is_built_in() && !it.topology.is_empty();
        let are_looked_at = self.is_synced && self.drivers.values().any(is_placed);
        if are_looked_at { self.made_of("PersistentVolumeClaim", claim) } else { Vec::new() }
    }

    /// The claims whose volume is to be made for this node, which may be elsewhere now: they are looked at after no pause.
    fn claims_for(&mut self, node: &str) -> Vec<Subject> {
        let is_for = |it: &PersistentVolumeClaim| {
            let has_volume =
                it.spec.as_ref().is_some_and(|it| it.volume_name.as_ref().is_some_and(|it| !it.is_empty()));
            !has_volume && provision::annotation(it, provision::SELECTED_NODE) == Some(node)
        };
        let found = self.claims.iter().filter(|it| is_for(it.1)).map(|it| Subject::Claim(it.0.clone()));
        let subjects: Vec<Subject> = found.collect();
        subjects.iter().for_each(|it| self.forget(it));
        subjects
    }

    fn all(&self) -> Vec<Subject> {
        let claims = self.claims.keys().cloned().map(Subject::Claim);
        let attachments = self.attachments.keys().cloned().map(Subject::Attachment);
        let contents = self.contents.keys().cloned().map(Subject::Content);
        let volumes = self.volumes.keys().cloned().map(Subject::Volume);
        claims.chain(volumes).chain(attachments).chain(contents).chain(self.abandoned()).collect()
    }

    /// Leaves to sidecars what they do, and names what is to be looked at anew.
    fn see_sidecars(&mut self, now: Time) -> Vec<Subject> {
        self.driver_namespaces = sidecars::namespaces(&self.pods);
        let pods = self.knows_pods.then_some(&self.pods);
        let own = |it: &DriverFacts| sidecars::without_theirs(it, &self.config.node_name, pods);
        let drivers = self.registered.iter().map(|it| (it.0.clone(), own(it.1))).collect();
        if self.drivers == drivers {
            return Vec::new();
        }
        self.drivers = drivers;
        self.capacity.tell_at(now);
        self.all()
    }

    /// What is to be done about a volume itself.
    fn job_of_volume(&self, name: &str, effects: &mut Vec<Effect>) -> Option<Job> {
        let volume = self.volumes.get(name)?;
        let driver = self.drivers.get(&volume.spec.as_ref()?.csi.as_ref()?.driver)?;
        // One that a node still has is not removed.
        let attachment = self.attachments.values().find(|it| attaching::volume_of(it) == Some(name));
        let is_attached = attachment.is_some();
        let is_removed = self.removed_volumes.is_known(name, volume.metadata.uid.as_deref().unwrap_or_default());
        let removes = driver.provisions && !is_removed && self.acting().is_of_volume(volume, driver);
        let removal = removes.then(|| removal::job(volume, driver)).flatten();
        if let (Some(Job::Remove { .. }), Some(attachment)) = (&removal, attachment) {
            let message = format!("persistentvolume {name} is still attached to node {}", attachment.spec.node_name);
            self.tell(&driver.name, &about_volume(volume), EventType::Normal, "VolumeDelete", message, effects);
        }
        let removal = removal.filter(|_| !is_attached);
        let attaches = (driver.attaches || driver.attaches_nothing) && self.leads(driver);
        removal.or_else(|| attaches.then(|| attaching::release(volume, is_attached)).flatten())
    }

    fn acting(&self) -> Acting<'_> {
        Acting { node: &self.config.node_name, leases: &self.leases, nodes: &self.nodes, volumes: &self.volumes }
    }

    /// Is it this node that acts for the driver?
    fn leads(&self, driver: &DriverFacts) -> bool {
        self.acting().is(&Actor::Driver, driver)
    }

    /// The volumes of a driver of others that are somebody's: it is not believed that one of them was made anew.
    fn handles(&self, driver: &DriverFacts, but: &str) -> Handles {
        let of = |volume: &Arc<PersistentVolume>| {
            let (name, csi) = (volume.metadata.name.clone()?, volume.spec.as_ref()?.csi.as_ref()?);
            (csi.driver == driver.name && name != but).then(|| (csi.volume_handle.clone(), name))
        };
        if driver.is_built_in() { Handles::new() } else { self.volumes.values().filter_map(of).collect() }
    }

    /// What is under way ends, and is forgotten then.
    fn forget(&mut self, subject: &Subject) {
        if self.work.get(subject).is_some_and(|it| !it.in_flight) {
            self.work.remove(subject);
        }
    }

    /// What was done about it can be seen by now.
    fn heard_of(&mut self, subject: Subject) -> Subject {
        if self.work.get(&subject).is_some_and(|it| !it.in_flight && it.failures == 0) {
            self.work.remove(&subject);
        }
        subject
    }

    fn look_at(&mut self, subject: &Subject, now: Time, effects: &mut Vec<Effect>) {
        let work = self.work.get(subject);
        if work.is_some_and(|it| it.in_flight || it.retry_at.is_some_and(|it| it > now)) {
            return;
        }
        let job = match subject {
            Subject::Claim(key) => self.job_of_claim(key, now, effects),
            Subject::Abandoned(volume) => self.job_of_abandoned(volume),
            Subject::Volume(name) => self.job_of_volume(name, effects),
            Subject::Attachment(name) => self.job_of_attachment(name, now),
            Subject::Content(name) => self.job_of_content(name, now, effects),
        };
        match job {
            Some(job) => {
                let work = self.work.entry(subject.clone()).or_default();
                (work.in_flight, work.retry_at) = (true, None);
                self.begins(&job);
                effects.push(Effect::Do(Box::new(job)));
            }
            None => {
                // Something was told that keeps it from going on: the next try is at its time.
                if self.work.get(subject).is_some_and(|it| it.retry_at.is_none_or(|it| it <= now)) {
                    self.work.remove(subject);
                }
            }
        }
    }

    fn tell(
        &self,
        driver: &str,
        about: &ObjectReference,
        event_type: EventType,
        reason: &'static str,
        message: String,
        effects: &mut Vec<Effect>,
    ) {
        let (driver, about) = (driver.to_owned(), about.clone());
        effects.push(Effect::Event { driver, about, event_type, reason, message });
    }

    fn failed(&mut self, subject: &Subject, now: Time) {
        self.failed_for(subject, PAUSE_MAX, now);
    }

    /// It is tried again after a pause, which is never longer than `longest`.
    fn failed_for(&mut self, subject: &Subject, longest: Duration, now: Time) {
        let work = self.work.entry(subject.clone()).or_default();
        work.in_flight = false;
        work.failures = work.failures.saturating_add(1);
        let pause = Duration::from_secs(1_u64 << work.failures.saturating_sub(1).min(16)).min(longest);
        work.retry_at = Some(now.after(pause));
    }

    /// It is not tried again before that.
    fn put_off(&mut self, subject: &Subject, pause: Duration, now: Time) {
        if let Some(work) = self.work.get_mut(subject) {
            work.retry_at = Some(now.after(pause));
        }
    }

    /// It ended well, or is tried again after a pause.
    fn ended(&mut self, subject: &Subject, is_ok: bool, now: Time) {
        if is_ok {
            let retry_at = Some(now.after(SEEN_WITHIN));
            self.work.insert(subject.clone(), Work { in_flight: false, failures: 0, retry_at });
            self.capacity.tell_soon(now);
        } else {
            self.failed(subject, now);
        }
    }
}

fn key_of(claim: &PersistentVolumeClaim) -> Key {
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    Key::new(of(&claim.metadata.namespace), of(&claim.metadata.name))
}

fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let owner = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(owner.namespace.clone()?, owner.name.clone()?))
}

fn not_provisioned(class: &StorageClass, why: &str) -> String {
    let class = class.metadata.name.as_deref().unwrap_or_default();
    format!("failed to provision volume with StorageClass {class:?}: {why}")
}

fn about_claim(claim: &PersistentVolumeClaim) -> ObjectReference {
    let (key, of) = (key_of(claim), |it: &Option<String>| it.clone().unwrap_or_default());
    ObjectReference {
        kind: "PersistentVolumeClaim".into(),
        api_version: "v1".into(),
        namespace: key.namespace,
        name: key.name,
        uid: of(&claim.metadata.uid),
        resource_version: of(&claim.metadata.resource_version),
        ..ObjectReference::default()
    }
}

fn about_volume(volume: &PersistentVolume) -> ObjectReference {
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    ObjectReference {
        kind: "PersistentVolume".into(),
        api_version: "v1".into(),
        name: of(&volume.metadata.name),
        uid: of(&volume.metadata.uid),
        resource_version: of(&volume.metadata.resource_version),
        ..ObjectReference::default()
    }
}
