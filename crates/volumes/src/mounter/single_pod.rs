//! `ReadWriteOncePod`: no second Pod of this node is given the volume, whoever placed it here. The scheduler looks, too.

use corten_kubelet::CsiVolume;

use super::{MountError, Mounter, is_of, refused};
use crate::records::{self, Record};

impl Mounter {
    /// Has no other Pod of this node the driver's volume?
    pub(super) async fn is_alone(&self, uid: &str, volume: &CsiVolume) -> Result<(), MountError> {
        let (records, uid) = (self.records.clone(), uid.to_owned());
        let (driver, handle) = (volume.driver.clone(), volume.handle.clone());
        let work = move || Ok(records.published().iter().any(|it| is_of(it, &driver, &handle) && it.uid != uid));
        let is_taken = self.there("kubernetes.io/csi", work).await?;
        if is_taken { Err(in_use()) } else { Ok(()) }
    }

    /// Of a volume that no driver has: written down for the Pod, where no other has it. Upstream looks at what it attaches or
    /// stages alone; a folder of the machine, or of a server, is promised to one Pod no less.
    pub(super) async fn hold(&self, uid: &str, name: &str) -> Result<(), MountError> {
        let turn = self.turns.of("", name);
        let _turn = turn.lock().await;
        let folder = self.records.held_folder(uid, name).map_err(refused)?;
        let (records, uid, record) = (self.records.clone(), uid.to_owned(), name.to_owned());
        let is_held = move || {
            if records.holders(&record).iter().any(|it| *it != uid) {
                return Ok(false);
            }
            records::write(&folder, &Record { name: record, ..Record::default() })?;
            Ok(true)
        };
        if self.there("volume", is_held).await? { Ok(()) } else { Err(in_use()) }
    }

    /// The Pod has nothing any more that was its alone.
    pub(super) async fn let_go(&self, uid: &str) -> Result<(), MountError> {
        let (records, uid) = (self.records.clone(), uid.to_owned());
        self.there("volume", move || records.held(&uid)?.iter().try_for_each(|it| records::forget(it))).await
    }
}

fn in_use() -> MountError {
    MountError::Refused("volume uses the ReadWriteOncePod access mode and is already in use by another pod".into())
}
