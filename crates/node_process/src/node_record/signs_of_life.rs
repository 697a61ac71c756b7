//! When a process that ended unseen last wrote, by the files that it writes while it lives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use corten_meta::MicroTime;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Folders below the data folder that a process writes to: a store of its own, in which the lease of its node is renewed every few
/// seconds; what a node keeps of a cluster that it has joined.
const FOLDERS: [&str; 2] = ["store", "kubelet/kept"];
/// Where the cluster is in an etcd that Corten runs: how the members are is written anew while it looks after them.
const HEALTH: &str = "etcd/health.json";
/// Every write of the cluster comes into this log of etcd's own.
const ETCD_LOG: &str = "etcd/data/member/wal";
/// Held by etcd while it runs.
const ETCD_LOCK: &str = "etcd/lock";

/// The latest of all.
pub(super) fn last(data: &Path, log: &Path) -> Option<MicroTime> {
    let files = FOLDERS.iter().flat_map(|it| files_in(data.join(it)));
    let files = files.chain(of_etcd(data)).chain([log.to_owned(), data.join(HEALTH)]);
    let times = files.filter_map(|it| fs::metadata(it).and_then(|it| it.modified()).ok());
    times.max().and_then(|it| jiff::Timestamp::try_from(it).ok()).map(MicroTime)
}

/// A member of etcd goes on without Corten: then what it writes says nothing of that.
fn of_etcd(data: &Path) -> Vec<PathBuf> {
    let lock = fs::File::open(data.join(ETCD_LOCK));
    let goes_on = lock.is_ok_and(|it| flock(it, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK));
    if goes_on { Vec::new() } else { files_in(data.join(ETCD_LOG)).collect() }
}

fn files_in(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path())
}

#[cfg(test)]
mod tests;
