//! Deletes LeaseCandidates of who has not renewed itself for half an hour (`LeaseCandidateGCController`).

use corten_api::resources;
use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Controller, Effect, Plan, Propagation, Verb, View, Wake, Watch, Write};

use super::candidate::Candidate;

pub struct LeaseCandidateExpiry;

impl Controller for LeaseCandidateExpiry {
    fn name(&self) -> &'static str {
        "lease-candidate-expiry"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Candidate>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Delete, resource: resources::LEASE_CANDIDATES, fields: &[] }] }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::LEASE_CANDIDATES)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(candidate) = view.get::<Candidate>(key).filter(|it| !it.metadata.is_deleting()) else {
            return Plan::default();
        };
        if !candidate.is_expired(now) {
            let wake_at = candidate.expires().map(|it| it.after(std::time::Duration::from_millis(1)));
            return Plan { wake_at, ..Plan::default() };
        }
        let delete = Effect::Delete {
            resource: resources::LEASE_CANDIDATES,
            key: key.clone(),
            uid: candidate.metadata.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: None,
        };
        Plan { effects: vec![delete], ..Plan::default() }
    }
}
