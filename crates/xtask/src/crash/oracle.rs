//! What was asked for and answered, and what must be there because of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// One state of an object: where it came from and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) revision: u64,
    pub(crate) value: String,
}

/// All objects at one revision.
pub(crate) struct List {
    pub(crate) revision: u64,
    pub(crate) objects: BTreeMap<String, Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Object {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) resource_version: String,
}

impl Object {
    pub(crate) fn read(json: &[u8]) -> Result<(String, Version)> {
        let object: Self = serde_json::from_slice(json).context("reading a ConfigMap")?;
        object.version()
    }

    pub(crate) fn version(mut self) -> Result<(String, Version)> {
        let revision = self.metadata.resource_version.parse().context("reading a resourceVersion")?;
        let value = self.data.remove("value").unwrap_or_default();
        Ok((self.metadata.name, Version { revision, value }))
    }
}

impl List {
    pub(crate) fn read(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: Metadata,
            items: Vec<Object>,
        }
        let raw: Raw = serde_json::from_slice(json).context("reading a list")?;
        let revision = raw.metadata.resource_version.parse().context("reading a resourceVersion")?;
        let ours = raw.items.into_iter().map(Object::version);
        // The cluster puts a ConfigMap of its own into every namespace.
        let objects = ours.filter(|it| it.as_ref().map_or(true, |it| is_ours(&it.0))).collect::<Result<_>>()?;
        Ok(Self { revision, objects })
    }
}

/// Was it made by a writer?
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with("w-")
}

/// What a writer wants of one object.
#[derive(Clone, Debug)]
pub(crate) enum KeyWrite {
    Put(String),
    Delete,
}

#[derive(Default)]
struct KeyState {
    /// As it was answered last; `None`: it was deleted, or never there.
    is: Option<Version>,
    /// Asked for and not answered.
    in_doubt: Option<KeyWrite>,
}

#[derive(Default)]
pub(crate) struct Oracle {
    known: BTreeMap<String, KeyState>,
    /// Every write that put something and was answered.
    answered: BTreeMap<u64, (String, String)>,
    n_deletes: usize,
}

impl Oracle {
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|it| it.is.is_some())
    }

    pub(crate) fn asked(&mut self, name: &str, key_write: KeyWrite) {
        self.known.entry(name.to_owned()).or_default().in_doubt = Some(key_write);
    }

    pub(crate) fn put(&mut self, name: &str, version: Version) -> Result<()> {
        if let Some((other, _)) = self.answered.insert(version.revision, (name.to_owned(), version.value.clone())) {
            bail!("revision {} was given to {other} and to {name}", version.revision);
        }
        *self.known.entry(name.to_owned()).or_default() = KeyState { is: Some(version), in_doubt: None };
        Ok(())
    }

    pub(crate) fn deleted(&mut self, name: &str) {
        self.n_deletes += 1;
        self.known.insert(name.to_owned(), KeyState::default());
    }

    pub(crate) fn n_answered(&self) -> usize {
        self.answered.len() + self.n_deletes
    }

    /// Compares with what is there, after which nothing is in doubt.
    pub(crate) fn settle(&mut self, list: &List) -> Result<()> {
        if let Some(stranger) = list.objects.keys().find(|it| !self.known.contains_key(*it)) {
            bail!("{stranger} is there, and nobody asked for it");
        }
        if let Some((newest, _)) = self.answered.last_key_value()
            && *newest > list.revision
        {
            bail!("revision {newest} was answered, and the store is at {} again", list.revision);
        }
        for (name, known) in &mut self.known {
            let found = list.objects.get(name);
            let is_as_answered = found == known.is.as_ref();
            let is_as_asked = match (&known.in_doubt, found) {
                (Some(KeyWrite::Put(value)), Some(found)) => found.value == *value,
                (Some(KeyWrite::Delete), None) => true,
                _ => false,
            };
            if !is_as_answered && !is_as_asked {
                bail!("{name} was answered as {:?}, {:?} in doubt, and is {found:?}", known.is, known.in_doubt);
            }
            if let (true, Some(found)) = (is_as_asked, found) {
                self.answered.insert(found.revision, (name.clone(), found.value.clone()));
            }
            *known = KeyState { is: found.cloned(), in_doubt: None };
        }
        Ok(())
    }

    /// Was a watcher told of every answered write?
    pub(super) fn check_seen(&self, seen: &super::watcher::WatchedChanges) -> Result<()> {
        seen.check(&self.answered)
    }
}
