//! A cluster's objects between the embedded store and an etcd, each with the revisions that it has.
//!
//! etcd takes no revision from a client, so what goes there goes as a snapshot, which `etcdutl` makes a member of.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_cli::Failure;
use corten_etcd::{EtcdStore, Options};
use corten_etcd_api::KeyValue;
use corten_etcd_snapshot::State;
use corten_store::{
    Entry, Limits, Range, Revision, Store as _,
    embedded::Archive,
    registry::{ENCRYPTED, ROOT},
};
use corten_stored_form::{KubernetesForm, as_kubernetes};

/// How many keys an error names.
const NAMED_MAX: usize = 5;

/// What was migrated.
pub(crate) struct Done {
    pub(crate) revision: Revision,
    pub(crate) keys: u64,
    pub(crate) hash: u32,
    /// Keys that are not the cluster's, or that a running server keeps for itself.
    pub(crate) left: usize,
}

/// # Errors
/// The store is open, an object cannot be converted, or the file is there already.
pub(crate) fn to_snapshot(store: &Path, prefix: &str, file: &Path) -> Result<Done> {
    let archive = Archive::of_closed_store(store)?;
    let revision = archive.revision();
    let (objects, others): (Vec<Entry>, Vec<Entry>) =
        archive.entries().cloned().partition(|it| it.key.starts_with(ROOT.as_bytes()));
    refuse_encrypted(&objects)?;
    let stored = as_kubernetes(objects).map_err(anyhow::Error::msg).context("converting to Kubernetes's form")?;
    let summary = Archive::of_entries(revision, stored.clone());
    let done = Done { revision, keys: summary.n_keys(), hash: summary.hash(), left: others.len() };
    let keys = stored.into_iter().map(|it| pair(it, prefix)).collect();
    write(file, keys, revision).with_context(|| format!("writing {}", file.display()))?;
    Ok(done)
}

fn pair(entry: Entry, prefix: &str) -> KeyValue {
    let below = entry.key.strip_prefix(ROOT.as_bytes()).unwrap_or(&entry.key);
    KeyValue {
        key: Bytes::from([b"/", prefix.trim_matches('/').as_bytes(), b"/", below].concat()),
        create_revision: entry.create_revision.cast_signed(),
        mod_revision: entry.mod_revision.cast_signed(),
        version: entry.version.cast_signed(),
        value: entry.value,
        lease: 0,
    }
}

/// Only its owner may read it: there are secrets in it. Under its name it is whole, or not there.
fn write(file: &Path, keys: Vec<KeyValue>, revision: Revision) -> Result<()> {
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".unfinished");
    if fs::exists(&unfinished)? {
        fs::remove_file(&unfinished)?;
    }
    let out = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unfinished)?;
    let mut out = BufWriter::new(out);
    let state = State { revision: revision.cast_signed(), leases: &[] };
    let written = corten_etcd_snapshot::write(keys, &state, &mut out)
        .and_then(|()| out.flush())
        .and_then(|()| out.get_ref().sync_all())
        // Fails where there is such a file.
        .and_then(|()| fs::hard_link(&unfinished, file));
    fs::remove_file(&unfinished)?;
    Ok(written?)
}

/// # Errors
/// etcd does not answer or goes on being written to, an object cannot be converted, or there is a store already.
pub(crate) async fn from_etcd(etcd: &Options, store: &Path) -> Result<Done> {
    let connected = EtcdStore::connect(etcd, Limits::default()).await.context("connecting to etcd")?;
    let above = KubernetesForm::new(std::sync::Arc::new(connected));
    // Encrypted or not is seen of what is stored alone.
    let page = above.range(Range::prefix(ROOT), None, 0).await.context("reading etcd")?;
    let revision = page.revision;
    let unreadable: Vec<String> = page.entries.iter().filter_map(unreadable).take(NAMED_MAX).collect();
    if !unreadable.is_empty() {
        let message = format!("what cannot be read is not migrated: {}", unreadable.join("; "));
        bail!(Failure::new(message).next("kubectl get OBJECT -o yaml, with the API server that wrote it; where it cannot read it either, delete it there"));
    }
    let n_all = page.entries.len();
    let entries: Vec<Entry> = page.entries.into_iter().filter(is_kept).map(|it| Entry { lease: 0, ..it }).collect();
    let left = n_all - entries.len();
    if above.newest().await.context("reading etcd")? != revision {
        bail!("somebody writes to etcd: stop all API servers, so that nothing is left behind, and begin again");
    }
    let archive = Archive::of_entries(revision, entries);
    let (keys, hash) = (archive.n_keys(), archive.hash());
    place(archive, store)?;
    Ok(Done { revision, keys, hash, left })
}

/// Under its name the store is whole, or not there: what an interrupted one has left is begun anew.
fn place(archive: Archive, store: &Path) -> Result<()> {
    let (keys, hash) = (archive.n_keys(), archive.hash());
    let unfinished = store.with_extension("unfinished");
    let failed = || format!("writing {}", unfinished.display());
    if fs::exists(&unfinished).with_context(failed)? {
        fs::remove_dir_all(&unfinished).with_context(failed)?;
    }
    archive.restore(&unfinished, 0)?;
    let written = Archive::of_closed_store(&unfinished)?;
    if (written.n_keys(), written.hash()) != (keys, hash) {
        let (path, n) = (unfinished.display(), written.n_keys());
        let message =
            format!("{path} holds {n} keys and not {keys}, or others: the disk does not keep what is written");
        bail!(Failure::new(message).next("look at the kernel's log (dmesg), and migrate to another disk"));
    }
    fs::rename(&unfinished, store).with_context(|| format!("naming {}", store.display()))?;
    let folder = store.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|it| it.sync_all()).with_context(|| format!("writing {}", folder.display()))
}

fn unreadable(entry: &Entry) -> Option<String> {
    let reason = entry.unreadable.as_ref()?;
    let is_encrypted = entry.value.starts_with(ENCRYPTED);
    let reason = if is_encrypted { "it is encrypted" } else { reason };
    Some(format!("{}: {reason}", String::from_utf8_lossy(&entry.key)))
}

/// Events are; all else that is bound to a lease says of a running API server where it is. For ports there are keys of their own
/// above.
fn is_kept(entry: &Entry) -> bool {
    let is_bound = entry.lease != 0 && !entry.key.starts_with(b"/registry/events/");
    !is_bound && &*entry.key != b"/registry/ranges/servicenodeports"
}

fn refuse_encrypted(entries: &[Entry]) -> Result<()> {
    let encrypted: Vec<_> = entries.iter().filter(|it| it.value.starts_with(ENCRYPTED)).collect();
    match encrypted.first() {
        Some(first) => bail!(
            "{} values are encrypted, the first is {}: name identity first in the file of --encryption-provider-config, write them anew \
             (`kubectl get secrets -A -o json | kubectl replace -f -`), and begin again",
            encrypted.len(),
            String::from_utf8_lossy(&first.key)
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupted_migration_has_left_is_begun_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, left) = (folder.path().join("store"), folder.path().join("store.unfinished"));
        fs::create_dir(&left).expect("made");
        fs::write(left.join("lock"), "begun").expect("written");
        fs::write(left.join("00000000000000000009.log"), "torn").expect("written");
        let entry = Entry {
            key: "/registry/pods/a/b".into(),
            value: "{}".into(),
            create_revision: 3,
            mod_revision: 7,
            version: 2,
            lease: 0,
            unreadable: None,
        };
        place(Archive::of_entries(9, vec![entry.clone()]), &store).expect("it is placed");
        assert!(!left.exists());
        let written = Archive::of_closed_store(&store).expect("it is a store");
        assert_eq!((written.revision(), written.entries().cloned().collect::<Vec<_>>()), (9, vec![entry]));
    }
}
