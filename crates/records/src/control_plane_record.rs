//! What a control plane on etcd was told, kept beside the cluster's keys: another one is told the same, and one that joined goes on
//! with it.
//!
//! ```text
//! DATA/pki/control-plane.json                which etcd, and which files the server was given for it
//! DATA/pki/etcd-ca.crt                       of one that joined: the authority of etcd
//! DATA/pki/etcd-ca.key                       of one that joined with `--ha`, until its member is made: the authority's key
//! DATA/pki/apiserver-etcd-client.{crt,key}   of one that joined: what etcd is shown
//! DATA/pki/encryption-provider-config.yaml   of one that joined: what is encrypted, and by which keys
//! DATA/etcd-cluster                          the etcd that the folder belongs to
//! ```

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use corten_machine::write_whole;
use serde::{Deserialize, Serialize};

/// In the folder of the cluster's keys.
pub const FILE: &str = "control-plane.json";
/// In the data folder: which etcd the folder's keys and certificates belong to.
pub const ETCD_CLUSTER: &str = "etcd-cluster";

/// What the options of a control plane say that is the same for all of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlaneRecord {
    pub etcd_servers: Vec<String>,
    pub etcd_prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_ca_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_cert_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_key_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption_provider_config: Option<PathBuf>,
    /// Corten runs the etcd itself, a member on each machine.
    #[serde(skip_serializing_if = "is_false")]
    pub is_ha: bool,
    /// The control plane has all of this from another one, and goes on with it where the command line says nothing else.
    pub is_joined: bool,
    /// The addresses and the domain of the cluster, by their options; empty: the usual ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub network: BTreeMap<String, String>,
    /// Of one that joined: the hash of the authority that it was told to join, which another one may have followed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined_ca_hash: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(it: &bool) -> bool {
    !it
}

/// A file that the record names, under the name that it is handed over by.
pub type NamedFile<'a> = (&'static str, &'a mut Option<PathBuf>);

impl ControlPlaneRecord {
    /// `None`: the folder's cluster is in the folder itself, or it has none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(data: &Path) -> Result<Option<Self>> {
        let path = path(data);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        serde_json::from_slice(&text).map(Some).with_context(|| format!("reading {}", path.display()))
    }

    /// What a control plane goes on with that joined the cluster of another one.
    ///
    /// # Errors
    /// As of [`ControlPlaneRecord::load`].
    pub fn joined(data: &Path) -> Result<Option<Self>> {
        Ok(Self::load(data)?.filter(|it| it.is_joined))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, data: &Path) -> Result<()> {
        if Self::load(data).is_ok_and(|it| it.as_ref() == Some(self)) {
            return Ok(());
        }
        let path = path(data);
        let text = serde_json::to_vec_pretty(self).context("writing what the control plane was told")?;
        write_whole(&path, 0o600, &text).with_context(|| format!("writing {}", path.display()))
    }

    /// The cluster is in the folder itself.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(data: &Path) -> io::Result<()> {
        match fs::remove_file(path(data)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The files that it names.
    pub fn files(&mut self) -> [NamedFile<'_>; 4] {
        [
            ("etcd-ca.crt", &mut self.etcd_ca_file),
            ("apiserver-etcd-client.crt", &mut self.etcd_cert_file),
            ("apiserver-etcd-client.key", &mut self.etcd_key_file),
            ("encryption-provider-config.yaml", &mut self.encryption_provider_config),
        ]
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("pki").join(FILE)
}

/// The etcd that the folder belongs to, by its cluster's id.
///
/// # Errors
/// The file cannot be read.
pub fn etcd_cluster(data: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(data.join(ETCD_CLUSTER)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_joined_goes_on_by_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path();
        fs::create_dir(data.join("pki")).expect("made");
        assert_eq!(ControlPlaneRecord::load(data).expect("nothing"), None);
        let mut record = ControlPlaneRecord {
            etcd_servers: vec!["https://a:2379".into()],
            etcd_ca_file: Some("/a/ca.crt".into()),
            ..ControlPlaneRecord::default()
        };
        record.save(data).expect("written");
        assert_eq!(ControlPlaneRecord::load(data).expect("read"), Some(record.clone()));
        assert_eq!(ControlPlaneRecord::joined(data).expect("read"), None);
        record.is_joined = true;
        record.save(data).expect("written");
        assert_eq!(ControlPlaneRecord::joined(data).expect("read"), Some(record));
        ControlPlaneRecord::forget(data).expect("removed");
        ControlPlaneRecord::forget(data).expect("there is nothing to remove");
        assert_eq!(ControlPlaneRecord::joined(data).expect("nothing"), None);
        fs::write(data.join("pki").join(FILE), "{").expect("written");
        assert!(ControlPlaneRecord::load(data).is_err());
    }
}
