//! Who leads, by what is stored: whose term it is at each commit, and the rules of terms.
//!
//! What the program promises of several control planes (`runner/leader_election.rs`, `cacher/fence.rs`):
//!
//! - What a loop writes in a term is committed while the lease is as the holder of that term wrote it, or not at all. However late a
//!   request arrives, whoever stood still meanwhile: at the commit the term in the store is the one it was asked in.
//! - A holder that could not renew in time ends its term before anybody else may begin one. One that stands still cannot; it writes nothing.
//! - A lease is taken when it was given back or has run out, as it says itself, and each taking counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::{
    author::{Author, Authors},
    freezer::Freezer,
};

pub(crate) const CONTROLLERS: &str = "kube-controller-manager";
pub(crate) const SCHEDULER: &str = "kube-scheduler";

const PREFIX: &str = "/registry/leases/kube-system/";

#[derive(Default)]
pub(crate) struct Terms {
    /// By the names of leases.
    held: BTreeMap<String, Held>,
    pub(crate) authors: Authors,
    pub(crate) beliefs: Beliefs,
    /// How often a lease came to a holder that was not the one before.
    pub(crate) n_elections: u64,
    /// Writes that were found to be made in the term of the moment.
    pub(crate) n_fenced: u64,
}

/// A lease as it is stored.
struct Held {
    /// Nobody where it was given back.
    holder: String,
    /// The revision at which the holder took it.
    begun: Revision,
    transitions: u64,
    written: Instant,
    duration: Duration,
}

impl Terms {
    /// A key was changed.
    pub(crate) fn stored(&mut self, key: &str, revision: Revision, new: Option<&Value>) -> Result<(), String> {
        if let Some(lease) = key.strip_prefix(PREFIX) {
            match new {
                Some(new) => self.lease(lease, revision, new)?,
                None => drop(self.held.remove(lease)),
            }
        }
        match self.authors.take(revision) {
            Some(author) => self.written(key, revision, &author),
            None => Ok(()),
        }
    }

    fn lease(&mut self, lease: &str, revision: Revision, new: &Value) -> Result<(), String> {
        let spec = &new["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| spec[name].as_u64().unwrap_or(0);
        let (transitions, duration) = (number("leaseTransitions"), Duration::from_secs(number("leaseDurationSeconds")));
        let written = Instant::now();
        let mut now = Held { holder, begun: revision, transitions, written, duration };
        let before = self.held.get(lease);
        if let Some(before) = before {
            let is_taken = !now.holder.is_empty() && now.holder != before.holder;
            if transitions != before.transitions + u64::from(is_taken) {
                let (from, to) = (&before.holder, &now.holder);
                return Err(format!(
                    "{lease} counts {} transitions and then {transitions}, from {from:?} to {to:?}",
                    before.transitions
                ));
            }
            let left = before.duration.saturating_sub(written - before.written);
            if is_taken && !before.holder.is_empty() && !left.is_zero() {
                return Err(format!(
                    "{} takes {lease} from {}, whose it is for another {left:?}",
                    now.holder, before.holder
                ));
            }
            if !is_taken {
                now.begun = before.begun;
            }
        }
        let is_elected = !now.holder.is_empty() && before.is_none_or(|it| it.holder != now.holder);
        let holder = now.holder.clone();
        self.held.insert(lease.to_owned(), now);
        self.n_elections += u64::from(is_elected);
        if is_elected { self.beliefs.nobody_but(lease, &holder) } else { Ok(()) }
    }

    fn written(&mut self, key: &str, revision: Revision, author: &Author) -> Result<(), String> {
        let Author { lease, holder, begun } = author;
        let now = self.held.get(*lease);
        let is_of_term = now.is_some_and(|it| *it.holder == **holder && it.begun <= *begun);
        if is_of_term {
            self.n_fenced += 1;
            return Ok(());
        }
        let whose = now.map_or("nobody's".into(), |it| format!("that of {:?} since {}", it.holder, it.begun));
        Err(format!(
            "{key} was written at {revision} by {holder} as {lease} in its term of {begun}, and the term is {whose}"
        ))
    }

    pub(crate) fn holder(&self, lease: &str) -> Option<&str> {
        self.held.get(lease).map(|it| &*it.holder).filter(|it| !it.is_empty())
    }

    /// At the end each lease is somebody's, who knows it, and nobody else's.
    pub(crate) fn one_leads(&self) -> Result<(), String> {
        for lease in [CONTROLLERS, SCHEDULER] {
            let believing = self.beliefs.of(lease);
            let holder = self.holder(lease).unwrap_or_default();
            if believing.len() != 1 || *believing[0] != *holder {
                return Err(format!("{lease} is {holder:?}'s, and these lead: {believing:?}"));
            }
        }
        Ok(())
    }
}

/// Who thinks that it leads.
#[derive(Clone, Default)]
pub(crate) struct Beliefs(Arc<Mutex<Vec<Belief>>>);

struct Belief {
    author: Author,
    /// 0 once the term is over; closed where the process has ended.
    revision: watch::Receiver<u64>,
    freezer: Freezer,
}

impl Beliefs {
    pub(crate) fn add(&self, author: Author, revision: watch::Receiver<u64>, freezer: Freezer) {
        self.0.lock().push(Belief { author, revision, freezer });
    }

    /// Those who lead as far as they know, and could act on it.
    fn of(&self, lease: &str) -> Vec<Arc<str>> {
        let mut all = self.0.lock();
        all.retain(|it| it.revision.has_changed().is_ok() && *it.revision.borrow() != 0);
        let acting = all.iter().filter(|it| it.author.lease == lease && !it.freezer.is_frozen());
        acting.map(|it| it.author.holder.clone()).collect()
    }

    fn nobody_but(&self, lease: &str, holder: &str) -> Result<(), String> {
        match self.of(lease).into_iter().find(|it| **it != *holder) {
            Some(other) => Err(format!("{lease} is {holder}'s now, and {other} still thinks that it leads")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
