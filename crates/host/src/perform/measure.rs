//! Measures what the node and its Pods use, when somebody asks.

use std::{sync::Arc, time::Duration};

use crate::{
    CriError,
    perform::NodeHands,
    stats::{DiskUse, Measured, RuntimeList, measure_disks},
};

/// The kubelet's `volumeStatsAggPeriod`, and shorter: a measurement younger than this is good enough to be told.
const DISK_FRESH: Duration = Duration::from_secs(30);

/// The first to ask waits this long for the disks, then is told without them.
const DISK_PATIENCE: Duration = Duration::from_secs(3);

impl NodeHands {
    /// Reads all counters.
    ///
    /// # Errors
    /// The runtime does not say what runs.
    pub(crate) async fn measure(&self) -> Result<Measured, CriError> {
        let listed = RuntimeList::read(self.cri()).await?;
        let cgroups = self.cgroups().clone();
        let work = tokio::task::spawn_blocking(move || listed.measure(&cgroups));
        let mut measured = work.await.map_err(|it| CriError {
            call: "measure",
            code: tonic::Code::Internal,
            message: it.to_string(),
        })?;
        self.stats().rate(&mut measured);
        Ok(measured)
    }

    /// What Pods have on the disks: as it was measured less than `age` ago; else it is measured now, and whoever asks waits
    /// so long for it.
    pub(crate) async fn disk_use(&self, age: Duration, patience: Duration) -> Option<Arc<DiskUse>> {
        let (mut found, last) = {
            let mut disks = self.stats().disks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let last = disks.found.borrow().clone();
            if last.as_ref().is_some_and(|it| it.at.elapsed() < age) {
                return last;
            }
            if !disks.is_under_way {
                disks.is_under_way = true;
                self.begin_disks();
            }
            (disks.found.subscribe(), last)
        };
        let began = last.as_ref().map(|it| it.at);
        let newer = found.wait_for(|it| it.as_ref().map(|it| it.at) != began);
        match tokio::time::timeout(patience, newer).await {
            Ok(Ok(newer)) => newer.clone(),
            _ => last,
        }
    }

    pub(crate) async fn recent_disk_use(&self) -> Option<Arc<DiskUse>> {
        self.disk_use(DISK_FRESH, DISK_PATIENCE).await
    }

    /// One measurement at a time; it ends by its own bounds.
    fn begin_disks(&self) {
        let hands = self.clone();
        tokio::spawn(async move {
            let use_of_disk = measure_disks(hands.cri(), hands.layout(), &hands.mounts()).await;
            let mut disks = hands.stats().disks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            disks.is_under_way = false;
            disks.found.send_replace(Some(Arc::new(use_of_disk)));
        });
    }
}
