//! What a process cannot mend and a new one does not meet: whoever looks after Corten starts it again, and Pods go on.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use corten_host::takes_writes;
use corten_network::PodNetwork;
use corten_store::Store;
use tokio::sync::watch;

/// How often a disk that failed is asked whether it takes writes again.
const TRY: Duration = Duration::from_secs(5);

/// Why the node must begin anew, once that is known.
#[derive(Clone, Default)]
pub(crate) struct Anew(Arc<OnceLock<String>>);

impl Anew {
    pub(crate) fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Waits for a reason, and has everything stopped for it.
    pub(crate) async fn watch(
        self,
        store: Option<(Arc<dyn Store>, PathBuf)>,
        network: PodNetwork,
        stop: watch::Sender<bool>,
    ) {
        let mut stopping = stop.subscribe();
        let reason = tokio::select! {
            _ = stopping.wait_for(|it| *it) => return,
            () = disk_is_back(store) => {
                "the store's disk takes writes again: Corten begins anew, to open the store as the disk has it".to_owned()
            }
            (before, now) = network.moved() => format!(
                "this machine's address is {now}, and no longer {before}: Corten begins anew, to listen there"
            ),
        };
        tracing::warn!("{reason}");
        // Only this task ever sets it.
        let _ = self.0.set(reason);
        stop.send_replace(true);
    }
}

/// After a write that failed half way the store takes none any more, however well the disk is by now.
pub(crate) async fn disk_is_back(store: Option<(Arc<dyn Store>, PathBuf)>) {
    let Some((store, folder)) = store else { return std::future::pending().await };
    loop {
        tokio::time::sleep(TRY).await;
        if !store.must_be_reopened() {
            continue;
        }
        let folder = folder.clone();
        if matches!(tokio::task::spawn_blocking(move || takes_writes(&folder)).await, Ok(Ok(()))) {
            return;
        }
    }
}
