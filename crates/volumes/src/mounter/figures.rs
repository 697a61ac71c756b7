//! How full the volumes of Pods are and whether they are well, as their drivers say: asked when somebody wants to know, of one
//! moment for a while. A driver that does not answer is passed over; what the others say is told.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use corten_meta::Key;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::Mounter;
use crate::{Code, Driver, Fault, VolumeStats, records::Published};

/// So long an answer is good enough to be told. Upstream asks once a minute (`volumeStatsAggPeriod`).
const FRESH: Duration = Duration::from_secs(10);
/// A driver that takes longer for one volume is asked for no other one this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// And one that has taken so long for its volumes is asked for no more of them.
const ROUND: Duration = Duration::from_secs(5);

/// What is known of one volume of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFigures {
    /// The Pod's.
    pub uid: String,
    pub pod: Key,
    /// The Pod's own name for the volume.
    pub volume: String,
    /// `None`: it is in the Pod itself.
    pub claim: Option<Key>,
    pub at: SystemTime,
    pub stats: VolumeStats,
    /// Its driver says whether its volumes are well.
    pub tells_health: bool,
}

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct Figures(tokio::sync::Mutex<Option<(Instant, Arc<Vec<VolumeFigures>>)>>);

impl Mounter {
    /// What the drivers say of all volumes that Pods have here, at most ten seconds ago. Volumes of drivers that say nothing are
    /// left out.
    pub async fn figures(&self) -> Arc<Vec<VolumeFigures>> {
        let mut last = self.last_figures().0.lock().await;
        if let Some((at, figures)) = &*last
            && at.elapsed() < FRESH
        {
            return figures.clone();
        }
        let mut by_driver: std::collections::BTreeMap<String, Vec<(Published, PathBuf)>> = Default::default();
        for (published, place) in self.places().await {
            by_driver.entry(published.record.driver_name.clone()).or_default().push((published, place));
        }
        let asking = by_driver.into_iter().filter_map(|(name, volumes)| {
            let driver = self.drivers().get(&name)?;
            Some(async move { ask(&*driver, volumes).await })
        });
        let figures: Arc<Vec<VolumeFigures>> = Arc::new(join_all(asking).await.into_iter().flatten().collect());
        *last = Some((Instant::now(), figures.clone()));
        figures
    }
}

async fn ask(driver: &dyn Driver, volumes: Vec<(Published, PathBuf)>) -> Vec<VolumeFigures> {
    let (mut told, tells_health) = (Vec::new(), driver.facts().tells_health);
    let end = Instant::now() + ROUND;
    for (Published { uid, record, .. }, place) in volumes {
        if Instant::now() >= end {
            tracing::debug!(driver = driver.name(), "a driver takes too long to say how full its volumes are");
            return told;
        }
        let asked = driver.stats(record.volume_handle.clone(), place);
        let late = || Fault::new(Code::DeadlineExceeded, format!("no answer within {PATIENCE:?}"));
        let answer = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(late()));
        match answer {
            Ok(stats) => told.push(VolumeFigures {
                uid,
                pod: Key::new(record.pod_namespace.as_str(), record.pod_name.as_str()),
                volume: record.pod_volume,
                claim: (!record.claim_name.is_empty()).then(|| Key::new(record.pod_namespace, record.claim_name)),
                at: SystemTime::now(),
                stats,
                tells_health,
            }),
            Err(fault) => {
                tracing::debug!(%fault, volume = record.volume_handle, "a driver does not say how full a volume is");
                if matches!(fault.code, Code::Unimplemented | Code::DeadlineExceeded | Code::Unavailable) {
                    return told;
                }
            }
        }
    }
    told
}
