//! How full the volumes of Pods are and whether they are well, as their drivers say: asked when somebody wants to know, of one
//! moment for a while. A driver that does not answer is passed over; what the others say is told. Of folders that the kernel alone
//! has mounted, its file system says it (`NewMetricsStatFS`).

use std::{
    collections::BTreeSet,
    future::ready,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use corten_machine::mounts;
use corten_meta::Key;
use futures_util::{
    StreamExt,
    future::{join, join_all},
    stream,
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::Mounter;
use crate::{Code, Driver, Fault, VolumeStats, file_system, records::Published};

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

/// So many file systems are asked side by side.
const AT_ONCE: usize = 8;

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    last: tokio::sync::Mutex<Option<(Instant, Arc<Vec<VolumeFigures>>)>>,
    being_asked: BeingAsked,
}

/// Where a file system is asked, for as long as it takes: a server that is away may hold a thread for hours, and holds no second one.
#[derive(Clone, Debug, Default)]
struct BeingAsked(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Mounter {
    /// What the drivers say of all volumes that Pods have here, at most ten seconds ago. Volumes of drivers that say nothing are
    /// left out.
    pub async fn figures(&self) -> Arc<Vec<VolumeFigures>> {
        let mut last = self.last_figures().last.lock().await;
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
        let (told, of_kernel) = join(join_all(asking), self.of_kernel()).await;
        let figures: Arc<Vec<VolumeFigures>> = Arc::new(told.into_iter().flatten().chain(of_kernel).collect());
        *last = Some((Instant::now(), figures.clone()));
        figures
    }

    /// Of what the kernel alone has mounted.
    async fn of_kernel(&self) -> Vec<VolumeFigures> {
        let records = self.records.clone();
        let found = self.there("nfs", move || Ok(records.kernel_mounts())).await.unwrap_or_default();
        let end = Instant::now() + ROUND;
        let asking = found.into_iter().map(|(published, place)| async move {
            if Instant::now() >= end {
                return None;
            }
            let mounts = self.mounts.clone();
            let stats = self.last_figures().being_asked.ask(place, move |place| {
                let work = move || match mounts::is_mount_point(&place) {
                    true => file_system::stats_of(&place).ok(),
                    // What was mounted there is gone, and the disk beneath is not what is asked for.
                    false => None,
                };
                mounts.run_blocking(work).ok().flatten()
            });
            Some(figures_of(published, stats.await?, false))
        });
        let mut told: Vec<_> = stream::iter(asking).buffer_unordered(AT_ONCE).filter_map(ready).collect().await;
        told.sort_by(|a, b| (&a.pod, &a.volume).cmp(&(&b.pod, &b.volume)));
        told
    }
}

impl BeingAsked {
    /// Asks in a thread of its own, which nobody waits for when it takes too long.
    async fn ask(
        &self,
        place: PathBuf,
        work: impl FnOnce(PathBuf) -> Option<VolumeStats> + Send + 'static,
    ) -> Option<VolumeStats> {
        if !self.0.lock().insert(place.clone()) {
            return None;
        }
        let ((answer, answered), being_asked) = (oneshot::channel(), self.0.clone());
        let thread = std::thread::Builder::new().name("volume-figures".to_owned());
        let asked = place.clone();
        let begun = thread.spawn(move || {
            let stats = work(asked.clone());
            being_asked.lock().remove(&asked);
            // Whoever asked may have gone on.
            let _ = answer.send(stats);
        });
        if begun.is_err() {
            self.0.lock().remove(&place);
            return None;
        }
        let stats = tokio::time::timeout(PATIENCE, answered).await;
        if stats.is_err() {
            tracing::debug!(place = %place.display(), "a file system takes too long to say how full it is");
        }
        stats.ok()?.ok()?
    }
}

fn figures_of(published: Published, stats: VolumeStats, tells_health: bool) -> VolumeFigures {
    let Published { uid, record, .. } = published;
    VolumeFigures {
        uid,
        pod: Key::new(record.pod_namespace.as_str(), record.pod_name.as_str()),
        volume: record.pod_volume,
        claim: (!record.claim_name.is_empty()).then(|| Key::new(record.pod_namespace, record.claim_name)),
        at: SystemTime::now(),
        stats,
        tells_health,
    }
}

async fn ask(driver: &dyn Driver, volumes: Vec<(Published, PathBuf)>) -> Vec<VolumeFigures> {
    let (mut told, tells_health) = (Vec::new(), driver.facts().tells_health);
    let end = Instant::now() + ROUND;
    for (published, place) in volumes {
        if Instant::now() >= end {
            tracing::debug!(driver = driver.name(), "a driver takes too long to say how full its volumes are");
            return told;
        }
        let handle = published.record.volume_handle.clone();
        let asked = driver.stats(handle.clone(), place);
        let late = || Fault::new(Code::DeadlineExceeded, format!("no answer within {PATIENCE:?}"));
        let answer = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(late()));
        match answer {
            Ok(stats) => told.push(figures_of(published, stats, tells_health)),
            Err(fault) => {
                tracing::debug!(%fault, volume = handle, "a driver does not say how full a volume is");
                if matches!(fault.code, Code::Unimplemented | Code::DeadlineExceeded | Code::Unavailable) {
                    return told;
                }
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_file_system_that_does_not_answer_is_asked_once() {
        let (being_asked, place) = (BeingAsked::default(), PathBuf::from("/srv/away"));
        let (let_go, held) = mpsc::channel::<()>();
        let hangs = move |_| {
            let _ = held.recv();
            Some(VolumeStats::default())
        };
        tokio::time::pause();
        assert_eq!(being_asked.ask(place.clone(), hangs).await, None, "it takes too long");
        tokio::time::resume();
        let never = |_| -> Option<VolumeStats> { panic!("a second thread is held") };
        assert_eq!(being_asked.ask(place.clone(), never).await, None);
        let other = being_asked.ask("/srv/here".into(), |_| Some(VolumeStats::default()));
        assert!(other.await.is_some(), "others are asked meanwhile");
        let_go.send(()).expect("it waits");
        while !being_asked.0.lock().is_empty() {
            std::thread::yield_now();
        }
        assert!(being_asked.ask(place, |_| Some(VolumeStats::default())).await.is_some(), "it is back");
    }
}
