//! What no Pod has is unstaged: what a crash left, what a driver refused, and what one that was away could not be asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use tokio::sync::watch;

use super::{MountError, Mounter, csi_plugin, is_of};
use crate::{
    Driver, file_system,
    records::{self, Record},
};

/// How often what is staged is looked at, where nothing is known to be left.
const PERIOD: Duration = Duration::from_secs(120);
/// What was refused is asked for again after this pause, which doubles up to the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

impl Mounter {
    /// Runs for ever. A driver that comes is asked at once.
    pub async fn keep_unstaging(&self) {
        let [first, longest] = PAUSES;
        let (mut drivers, mut pause) = (self.drivers.follow(), first);
        loop {
            let is_left = !self.unstage_left().await;
            if is_left {
                // A kubelet that began anew hears of it, too.
                self.left.send_modify(|_| {});
            }
            let wait = if is_left { pause } else { PERIOD };
            pause = if is_left { (pause * 2).min(longest) } else { first };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                Ok(()) = drivers.changed() => pause = first,
                () = self.refused.notified() => {
                    pause = first;
                    tokio::time::sleep(first).await;
                }
            }
        }
    }

    /// Unstages what no Pod has, the drivers side by side. True where nothing of that is left.
    pub(super) async fn unstage_left(&self) -> bool {
        let records = self.records.clone();
        let staged = self.there("kubernetes.io/csi", move || Ok(records.staged())).await.unwrap_or_default();
        let mut by_driver: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        for (_, record) in staged {
            by_driver.entry(record.driver_name.clone()).or_default().push(record);
        }
        let all = by_driver.into_iter().map(|(name, volumes)| self.unstage_of(name, volumes));
        join_all(all).await.into_iter().all(|it| it)
    }

    async fn unstage_of(&self, name: String, volumes: Vec<Record>) -> bool {
        // One whose driver is not there waits for it.
        let driver = self.drivers.get(&name);
        let mut is_done = true;
        for record in volumes {
            let turn = self.turns.of(&name, &record.volume_handle);
            let _turn = turn.lock().await;
            if let Err(error) = self.unstage_unused(driver.as_ref(), &record).await {
                tracing::warn!(%error, volume = record.volume_handle, "a volume that no pod has stays staged");
                is_done = false;
            }
        }
        is_done
    }

    /// Unstages a volume that no Pod has. The volume is in the caller's hand.
    pub(super) async fn unstage_unused(
        &self,
        driver: Option<&Arc<dyn Driver>>,
        record: &Record,
    ) -> Result<(), MountError> {
        let Record { driver_name: name, volume_handle: handle, .. } = record;
        let (records, of, volume) = (self.records.clone(), name.clone(), handle.clone());
        let folder = self.records.staged_folder(name, handle);
        let looked = folder.clone();
        let work = move || {
            let is_used = records.published().iter().any(|it| is_of(it, &of, &volume));
            Ok(!is_used && looked.exists())
        };
        let is_left = self.there("kubernetes.io/csi", work).await?;
        self.note_left(name, handle, is_left);
        let Some(driver) = driver.filter(|_| is_left) else { return Ok(()) };
        let place = folder.join("globalmount");
        let begun = Instant::now();
        let unstaged = driver.unstage(handle.clone(), place.clone()).await;
        let operation = if record.is_block() { "unmap_device" } else { "unmount_device" };
        self.operations.note(&csi_plugin(name), operation, begun.elapsed(), unstaged.is_ok());
        unstaged.map_err(|fault| MountError::Driver { doing: "UnmountDevice failed", fault })?;
        self.there("kubernetes.io/csi", move || {
            file_system::remove_place(&place)?;
            records::forget(&folder)
        })
        .await?;
        self.note_left(name, handle, false);
        Ok(())
    }

    fn note_left(&self, driver: &str, handle: &str, is_left: bool) {
        let name = format!("kubernetes.io/csi/{driver}^{handle}");
        self.left.send_if_modified(|it| if is_left { it.insert(name) } else { it.remove(&name) });
    }

    /// Volumes that no Pod has and that are still staged, as `status.volumesInUse` names them, and news of that.
    pub fn left(&self) -> watch::Receiver<BTreeSet<String>> {
        self.left.subscribe()
    }
}
