//! Volumes that a driver may be making, where its last answer left that open: external-provisioner's `claimsInProgress`. When the claim
//! goes meanwhile, the driver is asked on until it says how it ended. A volume that is there then gets its PersistentVolume, which is
//! released at once and treated as its class says. It is kept in memory alone, as there: a restart forgets it.

use corten_api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass};
use corten_meta::{Key, Time};

use super::{Provisioner, Subject, key_of};
use crate::{
    cloning,
    words::{Failure, FailureKind, Job, Outcome, Request},
};

/// What a driver was asked for.
#[derive(Debug)]
pub(super) struct Unfinished {
    claim: Box<PersistentVolumeClaim>,
    class: Box<StorageClass>,
    request: Box<Request>,
    /// It may be there, or be under way.
    is_open: bool,
    /// Its claim is gone.
    is_abandoned: bool,
}

impl Provisioner {
    pub(super) fn abandoned(&self) -> impl Iterator<Item = Subject> {
        self.unfinished.iter().filter(|it| it.1.is_abandoned).map(|it| Subject::Abandoned(it.0.clone()))
    }

    /// A driver is about to be asked.
    pub(super) fn begins(&mut self, job: &Job) {
        let Job::Provision { claim, class, request, .. } = job else { return };
        let (is_open, is_abandoned) =
            self.unfinished.get(&request.name).map_or((false, false), |it| (it.is_open, it.is_abandoned));
        let (claim, class) = (claim.clone(), class.clone());
        let unfinished = Unfinished { claim, class, request: request.clone(), is_open, is_abandoned };
        self.unfinished.insert(request.name.clone(), unfinished);
    }

    /// Claims that are gone, and whose volume a driver may still be making.
    pub(super) fn abandoned_claims(&self) -> impl Iterator<Item = &PersistentVolumeClaim> {
        self.unfinished.values().filter(|it| it.is_abandoned).map(|it| &*it.claim)
    }

    /// The claim that is held for the volume this tells of, whose own claim is gone.
    pub(super) fn source_of_abandoned(&self, outcome: &Outcome) -> Option<Key> {
        let Outcome::Provisioned { volume, .. } = outcome else { return None };
        let unfinished = self.unfinished.get(volume).filter(|it| it.is_abandoned)?;
        cloning::deleted_source(&unfinished.claim, &self.claims)
    }

    /// The claim is gone: what may be there of it is looked at by itself from now on.
    pub(super) fn abandon(&mut self, key: &Key) -> Vec<Subject> {
        let of_claim = Subject::Claim(key.clone());
        let is_in_flight = self.work.get(&of_claim).is_some_and(|it| it.in_flight);
        let mut abandoned = Vec::new();
        for (volume, unfinished) in &mut self.unfinished {
            if !unfinished.is_abandoned && key_of(&unfinished.claim) == *key {
                unfinished.is_abandoned = true;
                abandoned.push(Subject::Abandoned(volume.clone()));
            }
        }
        if is_in_flight {
            // Its answer is waited for.
            return Vec::new();
        }
        if let (Some(work), Some(subject)) = (self.work.remove(&of_claim), abandoned.first()) {
            self.work.insert(subject.clone(), work);
        }
        abandoned
    }

    pub(super) fn job_of_abandoned(&mut self, volume: &str) -> Option<Job> {
        if self.volumes.contains_key(volume) {
            // Its object was made, and says what becomes of it.
            self.unfinished.remove(volume);
            return None;
        }
        let Unfinished { claim, class, request, .. } = self.unfinished.get(volume)?;
        let driver = self.drivers.get(&request.driver).filter(|it| it.provisions)?;
        let acting = self.acting();
        if acting.of_claim(claim, self.place_of_source(claim, driver), driver).is_ok_and(|it| !acting.is(&it, driver))
            && !self.leads(driver)
        {
            return None;
        }
        let others = self.handles(driver, &request.name);
        let (claim, class, request) = (claim.clone(), class.clone(), request.clone());
        Some(Job::Provision { claim, class, request, others, source: None })
    }

    /// What is known of the volume, now that the driver was asked. True: it may be there, or be under way.
    pub(super) fn is_left_open(&mut self, volume: &str, result: &Result<(), Failure>) -> bool {
        let was_open = self.unfinished.get(volume).is_some_and(|it| it.is_open);
        let is_open = match result.as_ref().map_err(|it| it.kind) {
            Ok(()) => false,
            Err(FailureKind::Unasked) => was_open,
            // That there is no room is a final answer to who makes volumes, as for external-provisioner.
            Err(FailureKind::Open) => result.as_ref().is_err_and(|it| !it.is_exhausted),
            Err(FailureKind::Refused | FailureKind::Infeasible) => false,
        };
        match self.unfinished.get_mut(volume) {
            Some(it) if is_open => it.is_open = true,
            _ => {
                self.unfinished.remove(volume);
            }
        }
        is_open
    }

    /// What was asked for a claim that is gone has ended.
    pub(super) fn abandoned_ended(&mut self, volume: String, is_open: bool, now: Time) -> Subject {
        let subject = Subject::Abandoned(volume);
        if is_open {
            self.failed(&subject, now);
        } else {
            self.work.remove(&subject);
        }
        subject
    }
}
