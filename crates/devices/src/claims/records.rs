//! For which Pods drivers were asked to prepare which claims: a file for each Pod.

use std::{fs, io, path::PathBuf};

use corten_kubelet::{PreparedClaim, ReservedClaim};
use corten_machine::{Layout, write_whole};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) namespace: String,
    /// The Pod's.
    pub(crate) name: String,
    pub(crate) claims: Vec<ReservedClaim>,
    /// What came of it.
    #[serde(default)]
    pub(crate) prepared: Option<Vec<PreparedClaim>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Records {
    folder: PathBuf,
}

impl Records {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { folder: layout.data.join("kubelet/devices/claims") }
    }

    fn path(&self, uid: &str) -> io::Result<PathBuf> {
        Ok(self.folder.join(crate::records::file_of(uid)?))
    }

    /// `None`: the Pod has no claims.
    pub(crate) fn read(&self, uid: &str) -> io::Result<Option<Record>> {
        match fs::read(self.path(uid)?) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Synced: a power cut takes nothing of it.
    pub(crate) fn write(&self, uid: &str, record: &Record) -> io::Result<()> {
        let path = self.path(uid)?;
        if self.read(uid).ok().flatten().as_ref() == Some(record) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        write_whole(&path, 0o600, &serde_json::to_vec(record)?)
    }

    pub(crate) fn forget(&self, uid: &str) -> io::Result<()> {
        match fs::remove_file(self.path(uid)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The Pods whose claims drivers may have prepared, with what is written down of each that can be read.
    pub(crate) fn all(&self) -> Vec<(String, Record)> {
        self.uids().filter_map(|uid| self.read(&uid).ok().flatten().map(|it| (uid, it))).collect()
    }

    fn uids(&self) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| it.file_name().into_string().ok());
        names.filter_map(|it| it.strip_suffix(".json").map(str::to_owned))
    }

    /// Does another Pod have the claim? One whose record cannot be read may.
    pub(crate) fn is_shared(&self, uid: &str, claim: &str) -> bool {
        self.uids()
            .filter(|it| it != uid)
            .any(|it| self.read(&it).map_or(true, |it| it.is_some_and(|it| it.has(claim))))
    }
}

impl Record {
    fn has(&self, claim: &str) -> bool {
        self.claims.iter().any(|it| it.uid == claim)
    }
}
