//! Leases (coordination.k8s.io): "I am still here", for nodes and for elected leaders.
//!
//! Times are the holder's own; a rival waits the lease's duration from when it last *saw* the lease change, so that
//! clocks on different machines need not agree.

use std::time::Duration;

use corten_api::resources::LEASES;
use corten_meta::{Key, MicroTime, ObjectMeta, ObjectReference, OwnerReference, Time};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{Client, Error, decode};

/// One holder's view of one lease.
pub struct Lease {
    client: Client,
    key: Key,
    holder: String,
    duration: Duration,
    owner: Option<OwnerReference>,
    /// What the server last said, and when its version was first seen here.
    seen: Option<(Object, Time)>,
}

/// Who has the lease now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Me,
    /// Somebody else; worth another try when its time is over.
    Other {
        holder: String,
        until: Time,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_transitions: Option<u32>,
}

impl Lease {
    pub fn new(client: Client, key: Key, holder: impl Into<String>, duration: Duration) -> Self {
        Self { client, key, holder: holder.into(), duration, owner: None, seen: None }
    }

    /// A node's lease: `kube-node-lease/<node>`, held by the node, gone with its Node object.
    pub fn of_node(client: Client, node: &str, node_uid: &str, duration: Duration) -> Self {
        let owner = OwnerReference {
            api_version: "v1".into(),
            kind: "Node".into(),
            name: node.into(),
            uid: node_uid.into(),
            ..OwnerReference::default()
        };
        Self { owner: Some(owner), ..Self::new(client, Key::new("kube-node-lease", node), node, duration) }
    }

    /// Takes the lease where it is free or mine, and says who has it. One request where nothing has changed.
    ///
    /// # Errors
    /// The lease could not be read or written; being late for it is not an error.
    pub async fn renew(&mut self, now: Time) -> Result<Holder, Error> {
        let asked = Instant::now();
        // Two tries: the remembered version may be old, the one read next is not.
        for _ in 0..2 {
            let is_fresh = self.seen.is_none();
            if is_fresh {
                match self.look(now, asked).await {
                    Ok(()) => {}
                    Err(error) if error.is_not_found() => match self.create(now).await {
                        Err(error) if error.is_already_exists() => continue,
                        created => return created,
                    },
                    Err(error) => return Err(error),
                }
            }
            if let Some(other) = self.other(now) {
                if !is_fresh {
                    self.look(now, asked).await?;
                }
                if self.other(now).is_some() {
                    return Ok(other);
                }
            }
            match self.update(now).await {
                Err(error) if error.is_conflict() || error.is_not_found() => self.seen = None,
                updated => return updated,
            }
        }
        self.look(now, asked).await?;
        let holder = self.seen.as_ref().and_then(|it| it.0.spec.holder_identity.clone()).unwrap_or_default();
        Ok(Holder::Other { holder, until: now.after(self.duration) })
    }

    /// The revision of the lease as it was last written or read; 0 where it was not.
    pub fn revision(&self) -> u64 {
        self.seen.as_ref().and_then(|it| it.0.metadata.resource_version.parse().ok()).unwrap_or(0)
    }

    /// What an event about the lease points at.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference {
            kind: LEASES.kind.to_string(),
            api_version: LEASES.api_version(),
            namespace: self.key.namespace.to_string(),
            name: self.key.name.to_string(),
            uid: self.seen.as_ref().map(|it| it.0.metadata.uid.clone()).unwrap_or_default(),
            ..ObjectReference::default()
        }
    }

    /// Gives the lease back early, if it is mine.
    ///
    /// # Errors
    /// The lease could not be written.
    pub async fn release(&mut self) -> Result<(), Error> {
        let Some((object, _)) = self.seen.take() else { return Ok(()) };
        match self.give_back(object).await {
            // A renewal that nobody waited for any more was written meanwhile.
            Err(error) if error.is_conflict() => {
                let newest: Object = self.client.get_as(&LEASES, &self.key).await?;
                self.give_back(newest).await
            }
            given => given,
        }
    }

    async fn give_back(&self, mut object: Object) -> Result<(), Error> {
        if object.spec.holder_identity.as_deref() != Some(&*self.holder) {
            return Ok(());
        }
        object.spec.holder_identity = None;
        object.spec.lease_duration_seconds = Some(1);
        match self.client.replace(&LEASES, &self.key, "", &object).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// `now` it was at `asked`. A version is seen when its answer is here: its holder may have written it since it was asked for.
    async fn look(&mut self, now: Time, asked: Instant) -> Result<(), Error> {
        let object: Object = self.client.get_as(&LEASES, &self.key).await?;
        let since = match &self.seen {
            Some((seen, since)) if seen.metadata.resource_version == object.metadata.resource_version => *since,
            _ => now.after(asked.elapsed()),
        };
        self.seen = Some((object, since));
        Ok(())
    }

    /// Somebody else's claim that has not run out.
    fn other(&self, now: Time) -> Option<Holder> {
        let (object, since) = self.seen.as_ref()?;
        let holder = object.spec.holder_identity.as_deref().filter(|it| !it.is_empty() && *it != self.holder)?;
        let until = since.after(Duration::from_secs(object.spec.lease_duration_seconds.unwrap_or(0).into()));
        (now < until).then(|| Holder::Other { holder: holder.to_owned(), until })
    }

    async fn create(&mut self, now: Time) -> Result<Holder, Error> {
        let metadata = ObjectMeta {
            name: self.key.name.clone(),
            namespace: self.key.namespace.clone(),
            owner_references: self.owner.clone().into_iter().collect(),
            ..ObjectMeta::default()
        };
        let mut spec = self.claim(now);
        spec.acquire_time = Some(now.micro());
        let object = Object { api_version: LEASES.api_version(), kind: LEASES.kind.to_string(), metadata, spec };
        let created = self.client.create(&LEASES, &self.key.namespace, &object).await?;
        self.seen = Some((decode(&created)?, now));
        Ok(Holder::Me)
    }

    async fn update(&mut self, now: Time) -> Result<Holder, Error> {
        let Some((seen, _)) = &self.seen else { return self.create(now).await };
        let is_mine = seen.spec.holder_identity.as_deref() == Some(&*self.holder);
        let transitions = seen.spec.lease_transitions;
        let mut object = Object {
            api_version: LEASES.api_version(),
            kind: LEASES.kind.to_string(),
            metadata: seen.metadata.clone(),
            spec: self.claim(now),
        };
        object.spec.acquire_time = if is_mine { seen.spec.acquire_time } else { Some(now.micro()) };
        object.spec.lease_transitions =
            if is_mine { transitions } else { Some(transitions.unwrap_or(0).saturating_add(1)) };
        let updated = self.client.replace(&LEASES, &self.key, "", &object).await?;
        self.seen = Some((decode(&updated)?, now));
        Ok(Holder::Me)
    }

    fn claim(&self, now: Time) -> Spec {
        Spec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(u32::try_from(self.duration.as_secs()).unwrap_or(u32::MAX)),
            renew_time: Some(now.micro()),
            ..Spec::default()
        }
    }
}

#[cfg(test)]
mod tests;
