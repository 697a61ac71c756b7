//! Makes the mirror pods that are missing, and deletes those that show nothing.

use std::{sync::Arc, time::Duration};

use corten_api::{apimachinery::pkg::apis::meta::v1::OwnerReference, core::v1::Pod, resources::MIRROR_POD};
use corten_meta::{Key, Time};

use crate::{
    ApiEffect, ApiFailure, Effect, PodRef,
    backoff::pause,
    kubelet::{Kubelet, version},
    static_pods::{
        manifest::HASH,
        mirror::{Task, annotation, shows},
    },
};

const RETRY_SECONDS_MAX: u64 = 30;

/// Between a mirror and the next one of its name: who waits for the end of the first must have a chance to see it.
const PAUSE: Duration = Duration::from_secs(1);

/// Between two looks for mirrors that show nothing, as upstream's housekeeping has it (`housekeepingPeriod`).
const ORPHANS_PERIOD: Duration = Duration::from_secs(2);

impl Kubelet {
    /// Takes in a mirror pod; the uid of the static pod it shows.
    pub(crate) fn mirror_seen(&mut self, mirror: Box<Pod>) -> Option<String> {
        let key = PodRef::of(&mirror).key;
        let known = self.mirrors.known.get(&key);
        let is_older = known.is_some_and(|it| it.metadata.uid == mirror.metadata.uid && version(&mirror) < version(it));
        if !is_older {
            self.mirrors.known.insert(key.clone(), Arc::from(mirror));
        }
        self.attach_mirrors();
        self.manifests.of.get(&key).cloned()
    }

    /// True where that was a mirror pod.
    pub(crate) fn mirror_gone(&mut self, who: &PodRef) -> bool {
        let is_known = self.mirrors.known.get(&who.key).is_some_and(|it| it.metadata.uid.as_ref() == Some(&who.uid));
        if is_known {
            self.mirrors.known.remove(&who.key);
            self.attach_mirrors();
        }
        is_known
    }

    /// How a create or a delete of a mirror ended; false where it was about none.
    pub(crate) fn mirror_written(
        &mut self,
        key: &Key,
        result: Result<Option<Box<Pod>>, ApiFailure>,
        now: Time,
    ) -> bool {
        let Some(task) = self.mirrors.tasks.get_mut(key).filter(|it| it.in_flight) else { return false };
        task.in_flight = false;
        match result {
            Ok(made) => {
                *task = Task::default();
                match made {
                    Some(pod) => {
                        self.mirror_seen(pod);
                    }
                    None => {
                        task.retry_at = Some(now.after(PAUSE));
                        self.mirrors.known.remove(key);
                        self.attach_mirrors();
                    }
                }
            }
            Err(_) => {
                task.failures += 1;
                task.retry_at = Some(now.after(pause(task.failures, RETRY_SECONDS_MAX)));
            }
        }
        true
    }

    /// Each static pod reflects the mirror that was made of it, and no other.
    pub(crate) fn attach_mirrors(&mut self) {
        for machine in self.pods.values_mut().filter(|it| it.is_static()) {
            let mirror = self.mirrors.known.get(&machine.who.key).filter(|it| shows(it, &machine.who.uid));
            match mirror {
                None => machine.mirror = None,
                Some(mirror) => {
                    let is_new = machine.mirror != mirror.metadata.uid;
                    if is_new || version(mirror) > version(&machine.pod) {
                        machine.reflect(mirror);
                    }
                }
            }
        }
    }

    /// Makes the mirrors that are missing and deletes those that show nothing, or not what there is.
    pub(crate) fn tend_mirrors(&mut self, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        if !self.pods_are_known || !self.manifests.are_known {
            return None;
        }
        let keys: Vec<Key> = self.mirrors.known.keys().chain(self.manifests.of.keys()).cloned().collect();
        let mut wake: Option<Time> = None;
        let orphans_stay_until = self.mirrors.orphans_stay_until.filter(|it| *it > now);
        for key in keys {
            let Some(effect) = self.mirror_effect(&key) else { continue };
            let is_orphan = !self.manifests.of.contains_key(&key);
            let task = self.mirrors.tasks.entry(key).or_default();
            if task.in_flight {
                continue;
            }
            let stays_until = orphans_stay_until.filter(|_| is_orphan);
            if let Some(at) = task.retry_at.filter(|it| *it > now).max(stays_until) {
                wake = Some(wake.map_or(at, |it| it.min(at)));
                continue;
            }
            if is_orphan {
                self.mirrors.orphans_stay_until = Some(now.after(ORPHANS_PERIOD));
            }
            task.in_flight = true;
            effects.push(Effect::Api(effect));
        }
        self.mirrors.tasks.retain(|key, it| {
            it.in_flight || self.manifests.of.contains_key(key) || self.mirrors.known.contains_key(key)
        });
        wake
    }

    fn mirror_effect(&self, key: &Key) -> Option<ApiEffect> {
        let wanted = self.manifests.of.get(key);
        if let Some(mirror) = self.mirrors.known.get(key) {
            let is_leaving = mirror.metadata.deletion_timestamp.is_some();
            // As in `deleteOrphanedMirrorPods`: it stays until nothing of the pod it shows is left here.
            let is_needed = wanted.is_some() || self.pods.values().any(|it| it.who.key == *key);
            let is_right = wanted.map_or(is_needed, |uid| shows(mirror, uid)) && !is_leaving;
            return (!is_right).then(|| ApiEffect::DeletePod { pod: PodRef::of(mirror) });
        }
        let machine = self.pods.get(wanted?)?;
        let node_uid = self.node.uid()?;
        let mut mirror = (*machine.pod).clone();
        mirror.status = None;
        let meta = &mut mirror.metadata;
        (meta.uid, meta.resource_version, meta.generation) = (None, None, None);
        let mark = annotation(&machine.pod, HASH).unwrap_or_default().to_owned();
        meta.annotations.get_or_insert_default().insert(MIRROR_POD.into(), mark);
        meta.owner_references = Some(vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: self.config.node_name.clone(),
            uid: node_uid.to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        }]);
        Some(ApiEffect::CreateMirror { key: key.clone(), pod: Box::new(mirror) })
    }
}
