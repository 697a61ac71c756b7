//! Stands for Leases: takes those that are nobody's, renews those that are held, and gives up what cannot be renewed in time.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::LEASES;
use corten_client::{Client, Error};
use corten_meta::Key;
use corten_provisioner::leases::{self, NAMESPACE};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Clock;

/// As external-provisioner's `--leader-election-retry-period` and `--leader-election-renew-deadline`.
const PERIOD: Duration = Duration::from_secs(5);
const RENEW_WITHIN: Duration = Duration::from_secs(10);

type Election = Pin<Box<dyn Stream<Item = bool> + Send>>;

/// All Leases that this node stands for.
pub(super) struct Elections {
    client: Client,
    me: String,
    clock: Clock,
    running: BTreeMap<String, Election>,
    held: BTreeSet<String>,
}

impl Elections {
    pub(super) fn new(client: Client, me: String, clock: Clock) -> Self {
        Self { client, me, clock, running: BTreeMap::new(), held: BTreeSet::new() }
    }

    /// Stands for these from now on. What is no longer among them is not renewed.
    pub(super) fn stand_for(&mut self, names: &BTreeSet<String>) {
        self.running.retain(|name, _| names.contains(name));
        for name in names {
            if !self.running.contains_key(name) {
                let candidate = Candidate {
                    client: self.client.clone(),
                    key: Key::new(NAMESPACE, name.as_str()),
                    me: self.me.clone(),
                    clock: self.clock.clone(),
                    seen: None,
                    renewed: None,
                    is_first: true,
                };
                self.running.insert(name.clone(), candidate.run());
            }
        }
    }

    /// Those that are held, whenever that has changed.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Option<BTreeSet<String>> {
        let mut held = self.held.clone();
        held.retain(|it| self.running.contains_key(it));
        for (name, election) in &mut self.running {
            while let Poll::Ready(Some(is_held)) = election.poll_next_unpin(context) {
                if is_held {
                    held.insert(name.clone());
                } else {
                    held.remove(name);
                }
            }
        }
        (held != self.held).then(|| {
            self.held.clone_from(&held);
            held
        })
    }
}

struct Candidate {
    client: Client,
    key: Key,
    me: String,
    clock: Clock,
    /// What the Lease said, and since when.
    seen: Option<(Value, Instant)>,
    renewed: Option<Instant>,
    is_first: bool,
}

impl Candidate {
    fn run(self) -> Election {
        Box::pin(stream::unfold(self, |mut it| async move {
            if !std::mem::replace(&mut it.is_first, false) {
                tokio::time::sleep(PERIOD).await;
            }
            Some((it.is_leader().await, it))
        }))
    }

    async fn is_leader(&mut self) -> bool {
        let began = Instant::now();
        match tokio::time::timeout(PERIOD, self.attempt()).await {
            Ok(Ok(is_held)) => {
                self.renewed = is_held.then_some(began);
                is_held
            }
            failed => {
                if let Ok(Err(error)) = failed {
                    tracing::debug!(%error, lease = %self.key, "a lease is not renewed");
                }
                self.renewed.is_some_and(|it| it.elapsed() < RENEW_WITHIN)
            }
        }
    }

    async fn attempt(&mut self) -> Result<bool, Error> {
        let now = (self.clock)();
        let mut found = match self.client.get_as::<Value>(&LEASES, &self.key).await {
            Err(error) if error.is_not_found() => {
                let lease = json!({
                    "kind": "Lease",
                    "apiVersion": "coordination.k8s.io/v1",
                    "metadata": { "name": self.key.name, "namespace": self.key.namespace },
                    "spec": leases::held(None, &self.me, false, now),
                });
                return match self.client.create(&LEASES, &self.key.namespace, &lease).await {
                    Err(error) if error.is_already_exists() => Ok(false),
                    other => other.map(|_| true),
                };
            }
            other => other?,
        };
        let spec = found["spec"].take();
        if self.seen.as_ref().is_none_or(|it| it.0 != spec) {
            self.seen = Some((spec.clone(), Instant::now()));
        }
        let lasts = Duration::from_secs(leases::duration_seconds(&spec));
        let is_stale = self.seen.as_ref().is_some_and(|it| it.1.elapsed() >= lasts);
        let Some(spec) = leases::held(Some(&spec), &self.me, is_stale, now) else { return Ok(false) };
        found["spec"] = spec;
        match self.client.replace(&LEASES, &self.key, "", &found).await {
            Err(error) if error.is_conflict() => Ok(false),
            other => other.map(|_| true),
        }
    }
}
