//! What was promised of the disk to volumes and snapshots: their records, once read, so that a thousand volumes are not read
//! again for each new one. The disk is the truth: whoever looks closely compares names with it.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::volume::{SnapshotRecord, Volume};

/// `None`: the disk was not looked at yet.
#[derive(Debug, Default)]
pub(super) struct Promises(Mutex<Option<Records>>);

#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) volumes: BTreeMap<String, Volume>,
    /// Of snapshots: so much more the disk must have when the volumes they were taken of are written anew, in bytes.
    pub(super) shared: BTreeMap<String, u64>,
}

impl Promises {
    /// No more than this is promised, in bytes, whatever of it is taken already. `None`: that is not known yet.
    pub(super) fn at_most(&self) -> Option<u64> {
        self.0.lock().as_ref().map(|it| it.sum(|_| 0))
    }

    /// So many bytes are promised and not taken, of what was last looked at.
    pub(super) fn not_taken(&self, taken: impl Fn(&Volume) -> u64) -> u64 {
        self.0.lock().as_ref().map_or(0, |it| it.sum(taken))
    }

    /// Has `found` say what there is, told of what is known. Nobody changes what is known meanwhile.
    pub(super) fn look(&self, found: impl FnOnce(&Records) -> Records) {
        let mut records = self.0.lock();
        let known = records.take().unwrap_or_default();
        *records = Some(found(&known));
    }

    /// The volume is on the disk.
    pub(super) fn has(&self, volume: &Volume) {
        if let Some(records) = self.0.lock().as_mut() {
            records.volumes.insert(volume.handle.clone(), volume.clone());
        }
    }

    pub(super) fn has_no(&self, handle: &str) {
        if let Some(records) = self.0.lock().as_mut() {
            records.volumes.remove(handle);
        }
    }

    /// The snapshot is on the disk.
    pub(super) fn keeps(&self, kept: &SnapshotRecord) {
        if let Some(records) = self.0.lock().as_mut() {
            records.shared.insert(kept.handle.clone(), kept.shared);
        }
    }

    pub(super) fn keeps_no(&self, handle: &str) {
        if let Some(records) = self.0.lock().as_mut() {
            records.shared.remove(handle);
        }
    }
}

impl Records {
    fn sum(&self, taken: impl Fn(&Volume) -> u64) -> u64 {
        let volumes = self.volumes.values().map(|it| it.bytes.saturating_sub(taken(it)));
        volumes.chain(self.shared.values().copied()).fold(0, u64::saturating_add)
    }
}
