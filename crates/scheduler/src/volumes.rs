//! Between the choice of a node and the binding of the pod: its volumes are bound, or made, for that node.

use std::sync::Arc;

use corten_api::volumes::{BOUND_BY_CONTROLLER, SELECTED_NODE, reference_to};
use corten_meta::{Key, Resource, Time};
use corten_reconcile::Projection;
use serde_json::{Value, json};

use crate::{
    Effect, PodInfo, Scheduler, StorageObject,
    devices::{CLAIM_FINALIZER, PodDevices},
    entry::PodState,
    observer::{Change, ExtensionPoint, PointStatus, QueueEvent, ran},
    report,
    storage::{Claim, Concern, Decisions, Progress, Storage, Volume},
};

type Patch = (Resource, Key, Value);

impl Scheduler {
    /// Binds a pod to its node, or first its volumes.
    pub(crate) fn bind(&mut self, info: &Arc<PodInfo>, node: &str, now: Time) -> Vec<Effect> {
        let begun = self.observer.moment();
        self.give_devices(info, node, now);
        let decisions = self.decisions(info, node);
        let has_all = decisions == Decisions::default();
        let patches = if has_all { Vec::new() } else { self.patches(&decisions, node) };
        self.snapshot.storage.assume(&decisions, node);
        let point = (ExtensionPoint::Reserve, PointStatus::Success);
        let reserved = ran(&*self.observer, point, &info.scheduler_name, begun);
        self.queue.reserved(&info.key, reserved);
        if has_all {
            return self.bind_with_devices(info, node, now);
        }
        let timeout = self.profiles[&info.scheduler_name].arguments.volumes.bind_timeout;
        self.waiting.begin(&info.key, node, &decisions, now.after(timeout));
        let mut effects = Vec::new();
        if !patches.is_empty() {
            effects.push(Effect::BindVolumes { pod: info.key.clone(), uid: info.uid.clone(), patches });
        }
        effects.extend(self.go_on(&info.key, now));
        effects
    }

    /// Gives the pod's claims their devices on the node, and makes one for its extended resources; no other pod gets them from now on.
    fn give_devices(&mut self, info: &PodInfo, node: &str, now: Time) {
        if !info.may_be_given_devices() {
            return;
        }
        let row = self.snapshot.row(node).expect("the node that was just chosen");
        let given = PodDevices::of(info, &self.snapshot.devices).on(row.for_devices()).unwrap_or_default();
        self.snapshot.devices.assume(info, given, now);
    }

    /// As in `PostFilter`: what an earlier try has left keeps the pod waiting until it is gone.
    pub(crate) fn delete_stale_claim(&self, info: &PodInfo) -> Option<Effect> {
        let meta = &self.snapshot.devices.stale_claim(info).filter(|it| !it.metadata.is_deleting())?.metadata;
        let finalizers = meta.finalizers.iter().filter(|it| *it != CLAIM_FINALIZER).cloned().collect();
        Some(Effect::DeleteClaim { pod: info.key.clone(), claim: meta.key(), uid: meta.uid.clone(), finalizers })
    }

    fn decisions(&self, info: &PodInfo, node: &str) -> Decisions {
        if info.claims.is_empty() {
            return Decisions::default();
        }
        let row = self.snapshot.row(node).expect("the node that was just chosen");
        self.snapshot.volumes_of(info).on(node, row.labels).unwrap_or_default()
    }

    /// What others have not written yet.
    fn patches(&self, decisions: &Decisions, node: &str) -> Vec<Patch> {
        let storage = &self.snapshot.storage;
        let volumes =
            decisions.volumes.iter().filter_map(|(volume, claim)| give(storage.volume(volume)?, storage.claim(claim)?));
        let made = decisions.to_be_made.iter().filter_map(|it| make_for(node, storage.claim(it)?));
        volumes.chain(made).collect()
    }

    /// An object of storage is new or changed.
    pub(crate) fn storage_seen(&mut self, object: StorageObject, now: Time) -> Vec<Effect> {
        let object = match object {
            StorageObject::Device(it) => {
                let (subject, change) = self.snapshot.devices.set(it);
                self.queue.because(QueueEvent::Of(subject, change));
                return self.devices_moved(now);
            }
            other => other,
        };
        let (subject, is_known) = self.snapshot.storage.knows(&object);
        self.queue.because(QueueEvent::Of(subject, if is_known { Change::Update } else { Change::Add }));
        let concern = self.snapshot.storage.set(object);
        self.storage_moved(&concern, now)
    }

    pub(crate) fn storage_gone(&mut self, resource: &Resource, key: &Key, now: Time) -> Vec<Effect> {
        if let Some(subject) = self.snapshot.devices.remove(resource, key) {
            self.queue.because(QueueEvent::Of(subject, Change::Delete));
            return self.devices_moved(now);
        }
        self.queue.because(QueueEvent::Of(Storage::subject_of(resource), Change::Delete));
        let concern = self.snapshot.storage.remove(resource, key);
        self.storage_moved(&concern, now)
    }

    /// Whoever waits for devices may have them now.
    fn devices_moved(&mut self, now: Time) -> Vec<Effect> {
        self.queue.wake(|it| it.info.may_be_given_devices(), now);
        self.look_at_device_waits(now)
    }

    fn storage_moved(&mut self, concern: &Concern, now: Time) -> Vec<Effect> {
        let claim = match concern {
            Concern::Claim(claim) | Concern::Volume { claim: Some(claim), .. } => Some(claim),
            Concern::Volume { .. } | Concern::Class(_) | Concern::Any | Concern::None => None,
        };
        let pods = claim.map(|it| self.waiting.pods_of(it)).unwrap_or_default();
        let cause = self.queue.cause();
        let effects: Vec<Effect> = pods.iter().flat_map(|it| self.go_on(it, now)).collect();
        self.tell_ready(&effects);
        self.queue.because(cause);
        let storage = &self.snapshot.storage;
        self.queue.wake(|it| storage.may_help(concern, &it.info), now);
        effects
    }

    /// Looks how far the volumes of a pod are that has its node.
    fn go_on(&mut self, pod: &Key, now: Time) -> Vec<Effect> {
        let Some(entry) = self.pods.get(pod) else { return Vec::new() };
        let PodState::Assumed(node) = entry.place.clone() else { return Vec::new() };
        let (info, since) = (Arc::clone(&entry.info), entry.since);
        let labels = self.snapshot.row(&node).filter(|it| it.known).map(|it| it.labels);
        match self.waiting.progress(pod, &self.snapshot.storage, labels) {
            None => Vec::new(),
            Some(Progress::Open(claim)) => vec![report::waits_for_volumes(&info, &node, &claim, since, now)],
            Some(Progress::Bound) => {
                self.forget_volumes(pod);
                self.bind_with_devices(&info, &node, now)
            }
            Some(Progress::Failed(message)) => self.volumes_failed(pod, &info.uid, &message, now),
        }
    }

    /// Takes the pod's node away: another try may find another.
    pub(crate) fn volumes_failed(&mut self, pod: &Key, uid: &str, message: &str, now: Time) -> Vec<Effect> {
        let claims = self.waiting.end(pod);
        let Some(first) = claims.first() else { return Vec::new() };
        let is_open = |it: &&Key| self.snapshot.storage.claim(it).is_none_or(|it| !it.is_bound());
        let open = claims.iter().find(is_open).unwrap_or(first).clone();
        self.snapshot.storage.forget_assumed(claims.iter());
        let Some(entry) = self.pods.get_mut(pod).filter(|it| it.info.uid == uid) else { return Vec::new() };
        let PodState::Assumed(node) = entry.place.clone() else { return Vec::new() };
        entry.place = PodState::Waiting;
        let info = Arc::clone(&entry.info);
        self.tell_prepared(pod, PointStatus::Error);
        let Some(entry) = self.pods.get(pod) else { return Vec::new() };
        let effects = report::volumes_failed(entry, &node, &open, message, now);
        self.leave_node(pod, &info, &node, now);
        effects
    }

    /// Gives up those that have waited long enough.
    pub(crate) fn end_waits(&mut self, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some((_, pod)) = self.waiting.next().filter(|it| it.0 <= now).cloned() {
            let uid = self.pods.get(&pod).map(|it| it.info.uid.clone()).unwrap_or_default();
            effects.extend(self.volumes_failed(&pod, &uid, "context deadline exceeded", now));
        }
        effects.extend(self.end_device_waits(now));
        effects
    }

    /// The pod waits neither for volumes nor for devices any more.
    pub(crate) fn wait_no_more(&mut self, pod: &Key) {
        self.forget_volumes(pod);
        self.device_waits.remove(pod);
    }

    /// The pod waits for volumes no more.
    fn forget_volumes(&mut self, pod: &Key) {
        let claims = self.waiting.end(pod);
        if !claims.is_empty() {
            self.snapshot.storage.forget_assumed(claims.iter());
        }
    }
}

/// Gives a volume to a claim, if both are still as they were seen; nothing where it is the claim's (`GetBindVolumeToClaim`).
fn give(volume: &Volume, claim: &Claim) -> Option<Patch> {
    let meta = &claim.metadata;
    if volume.spec.claim_ref.as_ref().is_some_and(|it| it.uid == meta.uid) {
        return None;
    }
    let mut patch = json!({
        "metadata": { "uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version },
        "spec": { "claimRef": reference_to(meta) },
    });
    if volume.spec.claim_ref.is_none() {
        patch["metadata"]["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
    }
    Some((Volume::RESOURCE, volume.metadata.key(), patch))
}

/// Says for which node a claim's volume is to be made.
fn make_for(node: &str, claim: &Claim) -> Option<Patch> {
    let patch = json!({ "metadata": { "uid": claim.metadata.uid, "annotations": { SELECTED_NODE: node } } });
    (claim.selected_node() != Some(node)).then(|| (Claim::RESOURCE, claim.metadata.key(), patch))
}
