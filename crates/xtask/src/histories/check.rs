//! What may not be in a history.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    time::Duration,
};

use anyhow::{Result, bail};

use crate::crash::{Version, WatchedChanges};

/// What a client asked, and what it was answered. Times are from one clock.
pub(super) struct Operation {
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) what: Request,
}

pub(super) enum Request {
    Read { key: String, found: Version },
    List { revision: u64, found: BTreeMap<String, Version> },
    Put { key: String, value: String, expected: Option<u64>, outcome: Outcome },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered with this revision.
    At(u64),
    /// It was refused, and may not have happened.
    Refused,
    /// Nobody knows: it may happen at any time from then on, once.
    InDoubt,
}

struct Asked {
    key: String,
    begun: Duration,
    is_refused: bool,
}

/// Everything that was answered so far.
#[derive(Default)]
pub(super) struct Checker {
    /// By value: each is asked for once.
    asked: BTreeMap<String, Asked>,
    /// By revision: the key, and its value from then on.
    known: BTreeMap<u64, (String, String)>,
    /// By value.
    revisions: BTreeMap<String, u64>,
    /// Of each key the revisions of its changes.
    changes: BTreeMap<String, BTreeMap<u64, ()>>,
    /// The newest revision of each key that somebody had been answered with before what is looked at began; and of all.
    floors: BTreeMap<String, u64>,
    floor: u64,
    n_writes: usize,
    n_reads: usize,
    n_doubts: usize,
}

impl Checker {
    pub(super) fn tally(&self) -> String {
        let Self { n_writes, n_reads, n_doubts, .. } = self;
        format!(
            "{n_writes} answered writes and {n_reads} reads in an order that one server could have given, {n_doubts} in doubt"
        )
    }

    /// Looks at what was answered since the last time.
    pub(super) fn take(&mut self, mut history: Vec<Operation>) -> Result<()> {
        for operation in &history {
            self.note_asked(operation);
        }
        for operation in &history {
            self.note_answered(operation)?;
        }
        for operation in &history {
            self.check_gaps(operation)?;
        }
        history.sort_by_key(|it| it.begun);
        let mut by_end: Vec<&Operation> = history.iter().collect();
        by_end.sort_by_key(|it| it.ended);
        let mut by_end = by_end.into_iter().peekable();
        for operation in &history {
            while let Some(before) = by_end.next_if(|it| it.ended < operation.begun) {
                self.raise_floors(before);
            }
            self.check_order(operation)?;
        }
        by_end.for_each(|it| self.raise_floors(it));
        Ok(())
    }

    /// What a watcher was told within a span of revisions is all that is known to have happened there, and nothing else.
    pub(super) fn check_seen(&self, seen: &WatchedChanges) -> Result<()> {
        seen.check(&self.known)?;
        for (revision, (key, value)) in &seen.puts {
            let known = self.asked.get(value).filter(|it| it.key == *key && !it.is_refused);
            if known.is_none() {
                bail!("a watcher was told that revision {revision} put {value} into {key}, and nobody asked for it");
            }
            if self.known.get(revision).is_some_and(|it| it != &(key.clone(), value.clone())) {
                bail!("a watcher was told that revision {revision} put {value} into {key}: {:?}", self.known[revision]);
            }
        }
        Ok(())
    }

    fn note_asked(&mut self, operation: &Operation) {
        let Request::Put { key, value, outcome, .. } = &operation.what else { return };
        let is_refused = *outcome == Outcome::Refused;
        self.asked.insert(value.clone(), Asked { key: key.clone(), begun: operation.begun, is_refused });
        self.n_writes += usize::from(matches!(outcome, Outcome::At(_)));
        self.n_doubts += usize::from(*outcome == Outcome::InDoubt);
    }

    fn note_answered(&mut self, operation: &Operation) -> Result<()> {
        match &operation.what {
            Request::Read { key, found } => {
                self.n_reads += 1;
                self.note(key, found, operation.ended)
            }
            Request::List { found, .. } => {
                self.n_reads += 1;
                found.iter().try_for_each(|(key, found)| self.note(key, found, operation.ended))
            }
            Request::Put { key, value, outcome: Outcome::At(revision), .. } => {
                self.note(key, &Version { revision: *revision, value: value.clone() }, operation.ended)
            }
            Request::Put { .. } => Ok(()),
        }
    }

    /// Somebody was answered that the key has held this from this revision on.
    fn note(&mut self, key: &str, version: &Version, ended: Duration) -> Result<()> {
        let Version { revision, value } = version;
        let Some(asked) = self.asked.get(value).filter(|it| it.key == key) else {
            bail!("{key} holds {value}, and nobody asked for it");
        };
        if asked.is_refused {
            bail!("{key} holds {value} at {revision}, and that was refused");
        }
        if asked.begun > ended {
            bail!("{key} held {value} before anybody asked for it");
        }
        match self.known.entry(*revision) {
            Entry::Occupied(known) if *known.get() != (key.to_owned(), value.clone()) => {
                bail!("revision {revision} put {value} into {key}, and also {:?}", known.get());
            }
            Entry::Occupied(_) => return Ok(()),
            Entry::Vacant(place) => place.insert((key.to_owned(), value.clone())),
        };
        if let Some(other) = self.revisions.insert(value.clone(), *revision) {
            bail!("{value} was put into {key} twice, at {other} and at {revision}");
        }
        self.changes.entry(key.to_owned()).or_default().insert(*revision, ());
        Ok(())
    }

    /// Between what a write expected and what it became, and between what a list holds and the list, nothing has happened.
    fn check_gaps(&self, operation: &Operation) -> Result<()> {
        let between = |key: &str, from: u64, to: u64| {
            let changes = self.changes.get(key).map(|it| it.range(from + 1..to.max(from + 1)));
            changes.and_then(|mut it| it.next()).map(|it| *it.0)
        };
        match &operation.what {
            Request::Put { key, value, expected: Some(expected), outcome: Outcome::At(revision) } => {
                if let Some(other) = between(key, *expected, *revision) {
                    bail!(
                        "{value} was put into {key} at {revision} because it was of {expected}, and it was of {other}"
                    );
                }
            }
            Request::List { revision, found } => {
                for key in self.changes.keys() {
                    let held = found.get(key).map_or(0, |it| it.revision);
                    if let Some(other) = between(key, held, revision + 1) {
                        bail!("a list at {revision} holds {key} as of {held}, and it was of {other}");
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Who asks later is not answered with less.
    fn check_order(&self, operation: &Operation) -> Result<()> {
        let floor = |key: &str| self.floors.get(key).copied().unwrap_or_default();
        match &operation.what {
            Request::Read { key, found } if found.revision < floor(key) => {
                bail!("{key} was read as of {}, after it had been of {}", found.revision, floor(key));
            }
            Request::Put { key, outcome: Outcome::At(revision), .. } if *revision <= floor(key) => {
                bail!("{key} was written at {revision}, after it had been of {}", floor(key));
            }
            Request::List { revision, .. } if *revision < self.floor => {
                bail!("a list is of {revision}, after somebody had been answered with {}", self.floor);
            }
            Request::List { found, .. } => {
                let stale = self.floors.iter().find(|it| found.get(it.0).is_none_or(|found| found.revision < *it.1));
                if let Some((key, floor)) = stale {
                    bail!("a list holds {key} as {:?}, after it had been of {floor}", found.get(key));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn raise_floors(&mut self, operation: &Operation) {
        let mut raise = |key: &String, revision: u64| {
            let floor = self.floors.entry(key.clone()).or_default();
            *floor = revision.max(*floor);
            self.floor = self.floor.max(revision);
        };
        match &operation.what {
            Request::Read { key, found } => raise(key, found.revision),
            Request::List { found, revision } => {
                found.iter().for_each(|(key, found)| raise(key, found.revision));
                self.floor = self.floor.max(*revision);
            }
            Request::Put { key, outcome: Outcome::At(revision), .. } => raise(key, *revision),
            Request::Put { .. } => {}
        }
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}..{:?}", self.begun, self.ended)
    }
}

#[cfg(test)]
mod tests;
