//! Between the choice of a node and the binding of the pod: the drivers of its devices say that these are ready (KEP-5007).

use std::sync::Arc;

use corten_meta::{Key, Time};

use crate::{
    Effect, ExtendedClaimWrite, PodInfo, Scheduler,
    devices::Readiness,
    entry::{DeviceWait, PodState},
    observer::PointStatus,
    report,
};

impl Scheduler {
    /// Binds a pod, or has its devices made ready first.
    pub(crate) fn bind_with_devices(&mut self, info: &Arc<PodInfo>, node: &str, now: Time) -> Vec<Effect> {
        let extended = self.snapshot.devices.extended_claim(info);
        let claim = match self.snapshot.devices.readiness(info) {
            Readiness::Ready => return vec![self.bind_now(info, node, extended)],
            Readiness::Open(claim) => claim,
            Readiness::Failed(message) => {
                self.begin_device_wait(info, now);
                return self.devices_failed(&info.key, &info.uid, &message, now);
            }
        };
        let timeout = self.profiles[&info.scheduler_name].arguments.devices.bind_timeout;
        // As in `isClaimTimeout`: what an earlier scheduler has begun, or another pod, is waited for from then on.
        let begun = self.snapshot.devices.longest_unready(info);
        let due = begun.map(|(claim, since)| (since.after(timeout), claim.metadata.name.clone()));
        if let Some((_, claim)) = due.as_ref().filter(|it| it.0 <= now) {
            self.begin_device_wait(info, now);
            return self.devices_failed(&info.key, &info.uid, &format!("claim {claim} binding timeout"), now);
        }
        let until = now.after(timeout);
        self.begin_device_wait(info, due.map_or(until, |it| it.0.min(until)));
        let claims = self.snapshot.devices.reservations(info);
        let since = self.pods.get(&info.key).map_or(now, |it| it.since);
        let mut effects = Vec::new();
        if !claims.is_empty() || extended.is_some() {
            effects.push(Effect::Reserve { pod: info.key.clone(), uid: info.uid.clone(), claims, extended });
        }
        effects.extend(report::waits_for_devices(info, node, claim.as_deref(), since, now));
        effects
    }

    fn begin_device_wait(&mut self, info: &PodInfo, until: Time) {
        let has_extended = self.snapshot.devices.has_extended_claim(info);
        self.device_waits.insert(info.key.clone(), DeviceWait { until, has_extended });
    }

    fn bind_now(&self, info: &PodInfo, node: &str, extended: Option<ExtendedClaimWrite>) -> Effect {
        let claims = self.snapshot.devices.reservations(info);
        let (pod, uid, node, extender) = (info.key.clone(), info.uid.clone(), node.to_owned(), self.binder(info));
        Effect::Bind { pod, uid, node, claims, extended, extender }
    }

    /// A claim moved: whoever waits for its devices may be bound now, or never.
    pub(crate) fn look_at_device_waits(&mut self, now: Time) -> Vec<Effect> {
        let pods: Vec<(Key, bool)> = self.device_waits.iter().map(|it| (it.0.clone(), it.1.has_extended)).collect();
        let mut effects = Vec::new();
        for (pod, has_extended) in pods {
            let Some(entry) = self.pods.get(&pod) else { continue };
            let PodState::Assumed(node) = entry.place.clone() else { continue };
            let info = Arc::clone(&entry.info);
            let devices = &self.snapshot.devices;
            let readiness = match has_extended && !devices.has_extended_claim(&info) {
                true => Readiness::Failed("the claim for extended resources was deleted in the meantime".into()),
                false => devices.readiness(&info),
            };
            match readiness {
                Readiness::Open(_) => {}
                Readiness::Ready => {
                    self.device_waits.remove(&pod);
                    // The claim for its extended resources is made, and named by its status.
                    self.tell_prepared(&pod, PointStatus::Success);
                    effects.push(self.bind_now(&info, &node, None));
                }
                Readiness::Failed(message) => effects.extend(self.devices_failed(&pod, &info.uid, &message, now)),
            }
        }
        effects
    }

    /// Takes the pod's node away, and from its claims what nobody else has: another try may find others.
    pub(crate) fn devices_failed(&mut self, pod: &Key, uid: &str, message: &str, now: Time) -> Vec<Effect> {
        if self.device_waits.remove(pod).is_none() {
            return Vec::new();
        }
        let Some(entry) = self.pods.get_mut(pod).filter(|it| it.info.uid == uid) else { return Vec::new() };
        let PodState::Assumed(node) = entry.place.clone() else { return Vec::new() };
        entry.place = PodState::Waiting;
        let info = Arc::clone(&entry.info);
        self.tell_prepared(pod, PointStatus::Error);
        let Some(entry) = self.pods.get(pod) else { return Vec::new() };
        let mut effects = report::devices_failed(entry, &node, message, now);
        let claims = self.snapshot.devices.releases(&info);
        if !claims.is_empty() {
            effects.push(Effect::ReleaseClaims { pod: pod.clone(), claims });
        }
        self.leave_node(pod, &info, &node, now);
        effects
    }

    /// Gives up those that have waited long enough.
    pub(crate) fn end_device_waits(&mut self, now: Time) -> Vec<Effect> {
        let over: Vec<Key> = self.device_waits.iter().filter(|it| it.1.until <= now).map(|it| it.0.clone()).collect();
        let mut effects = Vec::new();
        for pod in over {
            let uid = self.pods.get(&pod).map(|it| it.info.uid.clone()).unwrap_or_default();
            effects.extend(self.devices_failed(&pod, &uid, "device binding timeout", now));
        }
        effects
    }
}
