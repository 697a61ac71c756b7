//! What follows from how a job ended.

use std::collections::BTreeMap;

use corten_meta::{Key, Time};
use corten_reconcile::EventType::{self, Normal, Warning};

use super::{
    NODE_PAUSE_MAX, PAUSE_MAX, Provisioner, RESYNC_PERIOD, SEEN_WITHIN, Subject, about_claim, about_volume,
    not_provisioned,
};
use crate::{
    names::volume_name,
    provision,
    words::{Effect, Failure, FailureKind, Job, Outcome},
};

impl Provisioner {
    /// Whom the claim is for is seen already, or soon. Where another change came before, it is tried again.
    fn selected(&mut self, claim: Key, version: &str, is_ok: bool, now: Time) -> Subject {
        let of = self.claims.get(&claim);
        let is_seen = of.is_none_or(|it| it.metadata.resource_version.as_deref() != Some(version));
        let subject = Subject::Claim(claim);
        if is_ok {
            let work = self.work.entry(subject.clone()).or_default();
            (work.in_flight, work.retry_at) = (false, (!is_seen).then(|| now.after(SEEN_WITHIN)));
        } else {
            self.failed(&subject, now);
        }
        subject
    }

    /// It is no scheduler that looks for another node: all of them do, and this one has its pause.
    fn given_back(&mut self, claim: Key) -> Subject {
        let subject = Subject::Claim(claim);
        self.work.entry(subject.clone()).or_default().in_flight = false;
        subject
    }

    /// Whoever holds it acts. Where nobody does, what follows is decided at once.
    fn lease_seen(&mut self, claim: Key, lease: String, result: Result<bool, Failure>, now: Time) -> Subject {
        let subject = Subject::Claim(claim.clone());
        if matches!(result, Ok(false)) {
            self.vacant.insert(claim, lease);
            let work = self.work.entry(subject.clone()).or_default();
            (work.in_flight, work.retry_at) = (false, None);
        } else {
            self.failed(&subject, now);
        }
        subject
    }

    /// Does no scheduler select a node for it?
    fn is_for_any_node(&self, claim: &Key) -> bool {
        let class = self.claims.get(claim).and_then(|it| it.spec.as_ref()?.storage_class_name.as_ref());
        class.and_then(|it| self.classes.get(it)).is_some_and(|it| !provision::waits_for_consumer(it))
    }

    pub(super) fn done(&mut self, outcome: Outcome, now: Time, effects: &mut Vec<Effect>) -> Subject {
        match outcome {
            Outcome::Provisioned { claim, volume, driver, result } => {
                self.asked_for_volume(claim, volume, &driver, result, now, effects)
            }
            Outcome::Selected { claim, version, result } => self.selected(claim, &version, result.is_ok(), now),
            Outcome::LeaseSeen { claim, lease, result } => self.lease_seen(claim, lease, result, now),
            Outcome::Rescheduled { claim, result: Ok(()) } if self.is_for_any_node(&claim) => self.given_back(claim),
            Outcome::Rescheduled { claim, result }
            | Outcome::StatusWritten { claim, result }
            | Outcome::FinalizersWritten { claim, result } => {
                let subject = Subject::Claim(claim);
                self.ended(&subject, result.is_ok(), now);
                subject
            }
            Outcome::Removed { volume, driver, result } => self.removed(volume, &driver, result, now, effects),
            Outcome::Attached { attachment, result } => {
                let subject = Subject::Attachment(attachment);
                self.ended(&subject, result.is_ok(), now);
                subject
            }
            Outcome::LetGo { volume, result } => {
                let subject = Subject::Volume(volume);
                self.ended(&subject, result.is_ok(), now);
                subject
            }
            Outcome::SnapshotTaken { taking, result } => self.snapshot_taken(&taking, result, now, effects),
            Outcome::SnapshotRemoved { content, driver, result } => {
                self.snapshot_removed(content, &driver, result.is_ok(), now, effects)
            }
            Outcome::SnapshotFound { finding, result } => self.snapshot_found(&finding, result, now, effects),
            Outcome::Expanded { claim, volume, driver, bytes, result } => {
                self.expansion_ended(claim, (&volume, bytes), &driver, &result, now, effects)
            }
            Outcome::Modified { claim, class, driver, result } => {
                self.modified(&claim, &class, &driver, result, now, effects);
                Subject::Claim(claim)
            }
            Outcome::ExpandedOnNode { claim, volume, driver, result } => {
                self.expanded_on_node(claim, &volume, &driver, result, now, effects)
            }
        }
    }

    fn asked_for_volume(
        &mut self,
        claim: Key,
        volume: String,
        driver: &str,
        result: Result<(), Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let is_open = self.is_left_open(&volume, &result);
        let of_gone = Subject::Abandoned(volume.clone());
        if self.work.get(&of_gone).is_some_and(|it| it.in_flight) {
            return self.abandoned_ended(volume, is_open, now);
        }
        let is_there = self.claims.get(&claim).is_some_and(|it| volume_name(it) == volume);
        let subject = Subject::Claim(claim.clone());
        if is_there {
            self.provisioned(&claim, &volume, driver, result, now, effects);
        } else {
            self.work.remove(&subject);
            self.abandoned_ended(volume, is_open, now);
        }
        subject
    }

    fn removed(
        &mut self,
        volume: String,
        driver: &str,
        result: Result<(), Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let subject = Subject::Volume(volume.clone());
        self.ended(&subject, result.is_ok(), now);
        match (result, self.volumes.get(&volume)) {
            (Err(failure), Some(found)) => {
                let about = about_volume(found);
                self.tell(driver, &about, Warning, "VolumeFailedDelete", failure.message, effects);
            }
            (Ok(()), Some(found)) => {
                self.removed_volumes.note(volume.clone(), found.metadata.uid.as_deref().unwrap_or_default());
                self.volumes.remove(&volume);
            }
            _ => {}
        }
        subject
    }

    /// `Ok(true)`: the node's part is to be done yet.
    fn expansion_ended(
        &mut self,
        claim: Key,
        (volume, bytes): (&str, u64),
        driver: &str,
        result: &Result<bool, Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let told = match result {
            Ok(false) => (Normal, "VolumeResizeSuccessful", "Resize volume succeeded".to_owned()),
            Ok(true) => (Normal, "FileSystemResizeRequired", "Require file system resize of volume on node".to_owned()),
            Err(failure) => {
                let message = format!("resize volume {volume:?} by resizer {driver:?} failed: {}", failure.message);
                (Warning, "VolumeResizeFailed", message)
            }
        };
        let kind = result.as_ref().map_or_else(|it| it.kind, |_| FailureKind::Open);
        remember(&mut self.refused_growths, &claim, bytes, kind);
        let subject = self.expanded(claim, driver, told, result.is_ok(), now, effects);
        if let Err(failure) = result {
            self.is_tried_again_slowly(&subject, failure, now);
        }
        subject
    }

    fn modified(
        &mut self,
        key: &Key,
        class: &str,
        driver: &str,
        result: Result<(), Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        let subject = Subject::Claim(key.clone());
        let name = &key.name;
        let (event_type, reason, message) = match &result {
            Ok(()) => {
                let message = format!("external resizer modified volume {name} with vac {class} successfully");
                (Normal, "VolumeModifySuccessful", message)
            }
            Err(failure) => (Warning, "VolumeModifyFailed", failure.message.clone()),
        };
        if let Some(about) = self.claims.get(key).map(|it| about_claim(it)) {
            self.tell(driver, &about, event_type, reason, message, effects);
        }
        self.ended(&subject, result.is_ok(), now);
        if let Err(failure) = &result {
            self.is_tried_again_slowly(&subject, failure, now);
        }
        let kind = result.map_or_else(|it| it.kind, |()| FailureKind::Open);
        remember(&mut self.refused_changes, key, class.to_owned(), kind);
    }

    /// As the resizer's slow set: what is infeasible is asked once more, and not soon. Room may be made at any time.
    fn is_tried_again_slowly(&mut self, subject: &Subject, failure: &Failure, now: Time) {
        if failure.kind == FailureKind::Infeasible && !failure.is_exhausted {
            self.put_off(subject, PAUSE_MAX, now);
        }
    }

    fn expanded(
        &mut self,
        claim: Key,
        driver: &str,
        (event_type, reason, message): (EventType, &'static str, String),
        is_ok: bool,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        if let Some(about) = self.claims.get(&claim).map(|it| about_claim(it)) {
            self.tell(driver, &about, event_type, reason, message, effects);
        }
        let subject = Subject::Claim(claim);
        self.ended(&subject, is_ok, now);
        subject
    }

    fn expanded_on_node(
        &mut self,
        claim: Key,
        volume: &str,
        driver: &str,
        result: Result<(), Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let Err(why) = result else {
            let message = format!("MountVolume.NodeExpandVolume succeeded for volume {volume:?}");
            let told = (Normal, "FileSystemResizeSuccessful", message);
            return self.expanded(claim, driver, told, true, now, effects);
        };
        let about = self.claims.get(&claim).map(|it| about_claim(it));
        // Else the condition says what it waits for: that its Pod begins anew.
        if let Some(about) = about.filter(|_| !why.is_in_use) {
            let message = format!("NodeExpandVolume.NodeExpandVolume failed for volume {volume:?} : {}", why.message);
            self.tell(driver, &about, Warning, "VolumeResizeFailed", message, effects);
        }
        let subject = Subject::Claim(claim);
        self.failed_for(&subject, NODE_PAUSE_MAX, now);
        if why.kind == FailureKind::Infeasible {
            self.put_off(&subject, RESYNC_PERIOD, now);
        }
        subject
    }

    fn provisioned(
        &mut self,
        key: &Key,
        volume: &str,
        driver: &str,
        result: Result<(), Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        let subject = Subject::Claim(key.clone());
        let Some(claim) = self.claims.get(key).cloned() else { return };
        let about = about_claim(&claim);
        let failure = match result {
            Ok(()) => {
                let message = format!("Successfully provisioned volume {volume}");
                self.tell(driver, &about, Normal, "ProvisioningSucceeded", message, effects);
                return self.ended(&subject, true, now);
            }
            Err(failure) => failure,
        };
        let class =
            claim.spec.as_ref().and_then(|it| it.storage_class_name.as_ref()).and_then(|it| self.classes.get(it));
        let message = class.map(|it| not_provisioned(it, &failure.message)).unwrap_or(failure.message);
        self.tell(driver, &about, Warning, "ProvisioningFailed", message, effects);
        self.failed(&subject, now);
        // As external-provisioner: there may be room on another node, and here it is asked for again where the scheduler says so.
        let is_selected = provision::annotation(&claim, provision::SELECTED_NODE).is_some();
        if failure.is_exhausted
            && is_selected
            && let Some(work) = self.work.get_mut(&subject)
        {
            work.in_flight = true;
            let version = claim.metadata.resource_version.clone().unwrap_or_default();
            effects.push(Effect::Do(Box::new(Job::Reschedule { claim: key.clone(), version, source_node: None })));
            self.capacity.tell_at(now);
        }
    }
}

/// Keeps what a driver was asked for and did not do, until it was asked once more and that is open again.
fn remember<T>(refused: &mut BTreeMap<Key, T>, claim: &Key, asked: T, kind: FailureKind) {
    match kind {
        FailureKind::Open => {
            refused.remove(claim);
        }
        FailureKind::Unasked => {}
        FailureKind::Refused | FailureKind::Infeasible => {
            refused.insert(claim.clone(), asked);
        }
    }
}
