//! Says which of several candidates holds a Lease (KEP-4355): the one that behaves like the oldest version, so that while a
//! component is being upgraded what leads understands all others.
//!
//! Who could hold it says so in a LeaseCandidate. Before an election each is asked whether it is still there (`pingTime`), and
//! answers by renewing itself; who does not answer in time is passed over.

mod candidate;
mod expiry;

use std::time::Duration;

use candidate::{Candidate, STRATEGY, best, strategy};
use corten_api::resources;
use corten_meta::{Key, MicroTime, ObjectMeta, Resource, Time};
use corten_reconcile::{Actor, Controller, Effect, Plan, Verb, View, Wait, Wake, Watch, Write, status::exact_patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::projections::projection;
pub use expiry::LeaseCandidateExpiry;

/// How long candidates have to answer, and how long what they answered counts (`electionDuration`).
const ELECTION: Duration = Duration::from_secs(5);
/// Who is elected has so long to take the Lease (`defaultLeaseDurationSeconds`).
const TERM_SECONDS: i64 = 5;

#[derive(Deserialize)]
struct Lease {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: LeaseSpec,
}
projection!(Lease, resources::LEASES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    preferred_holder: Option<String>,
    strategy: Option<String>,
    renew_time: Option<MicroTime>,
    lease_duration_seconds: Option<i64>,
}

impl Lease {
    /// The name of who holds it; empty where nobody does.
    fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }

    /// `None` for one that was never renewed: it is over.
    fn ends(&self) -> Option<Time> {
        Some(Time(self.spec.renew_time?.0).after_seconds(self.spec.lease_duration_seconds?))
    }

    fn is_expired(&self, now: Time) -> bool {
        self.ends().is_none_or(|it| it < now)
    }
}

pub struct LeaderElection;

impl Controller for LeaderElection {
    fn name(&self) -> &'static str {
        "leader-election"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Lease>(Wake::With(contended)), Watch::new::<Candidate>(Wake::With(its_lease))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::LEASES, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::LEASES,
                    fields: &[
                        "spec.holderIdentity",
                        "spec.preferredHolder",
                        "spec.strategy",
                        "spec.renewTime",
                        "spec.acquireTime",
                        "spec.leaseDurationSeconds",
                    ],
                },
                Write { verb: Verb::Patch, resource: resources::LEASE_CANDIDATES, fields: &["spec.pingTime"] },
            ]
        }
    }

    fn about(&self) -> Option<Resource> {
        None
    }

    /// The Lease; where there is none yet, the first of its candidates.
    fn subject(&self, view: &View, key: &Key) -> Option<(Resource, Key)> {
        if view.get::<Lease>(key).is_some() {
            return Some((resources::LEASES, key.clone()));
        }
        let first = candidates(view, key).map(|it| it.metadata.key()).min()?;
        Some((resources::LEASE_CANDIDATES, first))
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let candidates: Vec<&Candidate> = candidates(view, key).filter(|it| !it.is_expired(now)).collect();
        if candidates.is_empty() {
            return Plan::default();
        }
        let lease = view.get::<Lease>(key);
        if !is_election_due(lease, &candidates, now) {
            let wake_at = lease.and_then(Lease::ends).map(|it| it.after(Duration::from_millis(1)));
            return Plan { wake_at, ..Plan::default() };
        }
        let asked: Vec<Effect> = candidates.iter().filter_map(|it| ask(it, now)).collect();
        if !asked.is_empty() || candidates.iter().any(|it| it.may_answer(now)) {
            return Plan { effects: asked, wake_at: Some(now.after(ELECTION)), ..Plan::default() };
        }
        let present: Vec<&Candidate> = candidates.into_iter().filter(|it| it.is_present(now)).collect();
        elect(lease, key, &present, now)
    }
}

fn candidates<'a>(view: &'a View, lease: &'a Key) -> impl Iterator<Item = &'a Candidate> {
    view.in_namespace::<Candidate>(&lease.namespace).filter(|it| it.spec.lease_name == lease.name)
}

/// Most Leases have no candidates: those of nodes, and of whoever takes them without being elected.
fn contended(view: &View, lease: &ObjectMeta) -> Vec<Key> {
    let key = lease.key();
    let is_contended = candidates(view, &key).next().is_some();
    if is_contended { vec![key] } else { Vec::new() }
}

fn its_lease(view: &View, candidate: &ObjectMeta) -> Vec<Key> {
    let candidate = view.get::<Candidate>(&candidate.key());
    candidate.map(|it| Key::new(&*it.metadata.namespace, &*it.spec.lease_name)).into_iter().collect()
}

/// Nobody holds it, or another than who should.
fn is_election_due(lease: Option<&Lease>, candidates: &[&Candidate], now: Time) -> bool {
    let Some(lease) = lease.filter(|it| !it.is_expired(now) && !it.holder().is_empty()) else { return true };
    let is_ours = strategy(candidates).is_some_and(|it| it == STRATEGY);
    is_ours
        && best(candidates).is_some_and(|it| {
            let name = &it.metadata.name;
            name != lease.holder() && lease.spec.preferred_holder.as_ref() != Some(name)
        })
}

/// Is it still there? Asked again only once it has answered: who does not is not waited for again and again.
fn ask(candidate: &Candidate, now: Time) -> Option<Effect> {
    if candidate.is_present(now) || candidate.may_answer(now) || !candidate.has_answered() {
        return None;
    }
    let patch = json!({ "spec": { "pingTime": now.micro() } });
    Some(exact_patch(resources::LEASE_CANDIDATES, &candidate.metadata, patch))
}

fn elect(lease: Option<&Lease>, key: &Key, present: &[&Candidate], now: Time) -> Plan {
    let again = |plan: Plan| Plan { wake_at: Some(now.after(ELECTION)), ..plan };
    let wait =
        |reason, message: &str| Plan { waits: vec![Wait::new(reason, message, Actor::Author)], ..Plan::default() };
    if present.is_empty() {
        return again(wait("NoCandidateAnswers", "no candidate has renewed itself since it was asked to"));
    }
    let Some(strategy) = strategy(present) else {
        return wait("StrategiesDiffer", "candidates of the same version name different strategies");
    };
    // Who else has a strategy of its own elects by it.
    let elected = if strategy == STRATEGY { best(present) } else { None };
    let Some(lease) = lease else {
        return Plan { effects: vec![create(key, strategy, elected, now)], ..Plan::default() };
    };
    let changes = changes(lease, strategy, elected, now);
    let effects =
        (changes != json!({})).then(|| exact_patch(resources::LEASES, &lease.metadata, json!({ "spec": changes })));
    again(Plan { effects: effects.into_iter().collect(), ..Plan::default() })
}

fn create(key: &Key, strategy: &str, elected: Option<&Candidate>, now: Time) -> Effect {
    let mut spec = json!({ "strategy": strategy });
    if let Some(elected) = elected {
        spec["holderIdentity"] = json!(elected.metadata.name);
        spec["leaseDurationSeconds"] = json!(TERM_SECONDS);
        spec["renewTime"] = json!(now.micro());
    }
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": key.name, "namespace": key.namespace },
        "spec": spec,
    });
    Effect::Create { resource: resources::LEASES, object }
}

/// A Lease that nobody holds is given; one that somebody holds is not taken: its holder is told whom to leave it to.
fn changes(lease: &Lease, strategy: &str, elected: Option<&Candidate>, now: Time) -> Value {
    let mut changes = json!({});
    if lease.spec.strategy.as_deref() != Some(strategy) {
        changes["strategy"] = json!(strategy);
    }
    let Some(elected) = elected.map(|it| &it.metadata.name) else { return changes };
    if lease.holder().is_empty() || (lease.is_expired(now) && lease.holder() != elected) {
        changes["holderIdentity"] = json!(elected);
        changes["preferredHolder"] = Value::Null;
        changes["renewTime"] = json!(now.micro());
        changes["leaseDurationSeconds"] = json!(TERM_SECONDS);
        changes["acquireTime"] = Value::Null;
    } else if lease.holder() != elected && lease.spec.preferred_holder.as_ref() != Some(elected) {
        changes["preferredHolder"] = json!(elected);
    }
    changes
}
