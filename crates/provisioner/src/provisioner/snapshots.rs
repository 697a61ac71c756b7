//! What snapshots have to do with claims, and what is to be done about contents of snapshots.

use std::time::Duration;

use corten_api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass};
use corten_meta::{Key, Time};
use corten_reconcile::EventType::{Normal, Warning};

use super::{Provisioner, Subject, about_claim, not_provisioned};
use crate::{
    provision, snapshots,
    sources::{self, NoSource, Sources},
    words::{DriverFacts, Effect, Event, Failure, Finding, Job, Source, Taking, Topology},
};

/// The longest pause before a driver is asked again how far a snapshot is.
const UNREADY_PAUSE_MAX: Duration = Duration::from_secs(60);
/// So many failures make the longest pause.
const LEFT_ALONE: u32 = 16;

impl Provisioner {
    pub(super) fn take_in_snapshot(&mut self, event: Event) -> Vec<Subject> {
        match event {
            Event::Snapshot(snapshot) => {
                let key = snapshot.metadata.key();
                self.snapshots.insert(key.clone(), snapshot);
                self.made_of("VolumeSnapshot", &key)
            }
            Event::SnapshotGone(key) => {
                self.snapshots.remove(&key);
                Vec::new()
            }
            Event::Content(content) => {
                let (name, of) = (content.metadata.name.clone(), &content.spec.volume_snapshot_ref);
                let claims = self.made_of("VolumeSnapshot", &Key::new(&*of.namespace, &*of.name));
                self.contents.insert(name.clone(), content);
                claims.into_iter().chain([self.heard_of(Subject::Content(name))]).collect()
            }
            Event::ContentGone(name) => {
                self.contents.remove(&name);
                self.removed_contents.forget(&name);
                self.forget(&Subject::Content(name));
                Vec::new()
            }
            Event::SnapshotClass(class) => {
                self.snapshot_classes.insert(class.metadata.name.clone(), class);
                self.contents.keys().cloned().map(Subject::Content).collect()
            }
            Event::SnapshotClassGone(name) => {
                self.snapshot_classes.remove(&name);
                Vec::new()
            }
            _ => {
                self.are_snapshots_synced = true;
                self.all()
            }
        }
    }

    /// The claims that are to begin with it: they are looked at now, not after their pause.
    pub(super) fn made_of(&mut self, kind: &str, key: &Key) -> Vec<Subject> {
        let found = self.claims.iter().filter(|it| sources::is_of(it.1, kind, key)).map(|it| it.0.clone());
        let subjects: Vec<Subject> = found.map(Subject::Claim).collect();
        subjects.iter().for_each(|it| self.forget(it));
        subjects
    }

    pub(super) fn source(
        &self,
        claim: &PersistentVolumeClaim,
        driver: &DriverFacts,
    ) -> Result<Option<Source>, NoSource> {
        let Self { claims, volumes, snapshots, contents, .. } = self;
        let bytes = provision::asked_bytes(claim)?;
        let is_anywhere = !driver.is_built_in() && provision::annotation(claim, provision::SELECTED_NODE).is_none();
        let acting = self.acting();
        Sources { claims, volumes, snapshots, contents, acting, is_anywhere }.of(claim, bytes, driver)
    }

    /// Where that is which the claim's volume begins with; `None`: nowhere, everywhere, or it is not known.
    pub(super) fn place_of_source(&self, claim: &PersistentVolumeClaim, driver: &DriverFacts) -> Option<Topology> {
        if let Some(source) = sources::source_of(claim, "PersistentVolumeClaim") {
            let volume = self.claims.get(&source)?.spec.as_ref()?.volume_name.as_ref()?;
            return self.acting().place_of_volume(self.volumes.get(volume)?, driver);
        }
        let snapshot = self.snapshots.get(&sources::source_of(claim, "VolumeSnapshot")?)?;
        let content = self.contents.get(&snapshot.status.bound_volume_snapshot_content_name)?;
        self.acting().place_of_content(content, driver)
    }

    pub(super) fn without_source(
        &mut self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        (class, driver): (&StorageClass, &DriverFacts),
        why: NoSource,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<Job> {
        let subject = Subject::Claim(key.clone());
        let about = about_claim(claim);
        let is_selected = provision::annotation(claim, provision::SELECTED_NODE).is_some();
        match why {
            NoSource::OfPopulator => {
                let message = "Assuming an external populator will provision the volume".to_owned();
                self.tell(&driver.name, &about, Normal, "Provisioning", message, effects);
                // It is not ours: nothing is tried again, but told at times who it waits for.
                self.work.entry(subject.clone()).or_default().failures = LEFT_ALONE;
                self.failed(&subject, now);
                None
            }
            NoSource::Elsewhere { why, node } if is_selected => {
                let message = not_provisioned(class, &why);
                self.tell(&driver.name, &about, Warning, "ProvisioningFailed", message, effects);
                let version = claim.metadata.resource_version.clone().unwrap_or_default();
                Some(Job::Reschedule { claim: key.clone(), version, source_node: node })
            }
            // Another node has it, and makes the volume.
            NoSource::Elsewhere { .. } => None,
            NoSource::Refused(why) => {
                let message = not_provisioned(class, &why);
                self.tell(&driver.name, &about, Warning, "ProvisioningFailed", message, effects);
                self.failed(&subject, now);
                None
            }
        }
    }

    pub(super) fn job_of_content(&mut self, name: &str, now: Time, effects: &mut Vec<Effect>) -> Option<Job> {
        let content = self.contents.get(name)?;
        if self.removed_contents.is_known(name, &content.metadata.uid) {
            return None;
        }
        let driver = self.drivers.get(&content.spec.driver)?;
        let acting = self.acting();
        if self.waits_for_nodes(driver) || !acting.is(&acting.of_content(content, driver), driver) {
            return None;
        }
        let classes = (&self.snapshot_classes, self.are_snapshots_synced);
        match snapshots::job(content, driver, classes, now)? {
            Ok(job) => Some(self.with_snapshot_metadata(job)),
            Err(why) => {
                let (driver, about) = (driver.name.clone(), content.reference());
                self.tell(&driver, &about, Warning, "SnapshotContentCheckandUpdateFailed", why, effects);
                self.failed(&Subject::Content(name.to_owned()), now);
                None
            }
        }
    }

    pub(super) fn snapshot_taken(
        &mut self,
        taking: &Taking,
        result: Result<bool, Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let result = result.map_err(|it| snapshots::not_taken(&taking.volume, &it.message));
        self.content_looked_at(&taking.content, &taking.driver, result, now, effects)
    }

    pub(super) fn snapshot_found(
        &mut self,
        finding: &Finding,
        result: Result<bool, Failure>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let result = result.map_err(|it| snapshots::not_listed(&finding.content, &it.message));
        self.content_looked_at(&finding.content, &finding.driver, result, now, effects)
    }

    /// `Ok(false)`: it is not ready yet, and asked for again.
    fn content_looked_at(
        &mut self,
        content: &str,
        driver: &str,
        result: Result<bool, String>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let subject = Subject::Content(content.to_owned());
        match result {
            Ok(true) => self.ended(&subject, true, now),
            Ok(false) => self.failed_for(&subject, UNREADY_PAUSE_MAX, now),
            Err(message) => {
                if let Some(about) = self.contents.get(content).map(|it| it.reference()) {
                    let reason = "SnapshotContentCheckandUpdateFailed";
                    self.tell(driver, &about, Warning, reason, message, effects);
                }
                self.failed(&subject, now);
            }
        }
        subject
    }

    pub(super) fn snapshot_removed(
        &mut self,
        content: String,
        driver: &str,
        is_ok: bool,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Subject {
        let subject = Subject::Content(content.clone());
        self.ended(&subject, is_ok, now);
        if is_ok {
            if let Some(found) = self.contents.remove(&content) {
                self.removed_contents.note(content, &found.metadata.uid);
            }
        } else if let Some(about) = self.contents.get(&content).map(|it| it.reference()) {
            let message = "Failed to delete snapshot".to_owned();
            self.tell(driver, &about, Warning, "SnapshotDeleteError", message, effects);
        }
        subject
    }
}
