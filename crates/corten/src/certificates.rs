//! Keeps the cluster's certificates good while it runs, and takes up what `corten certs` does to the folder of keys.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use corten_apiserver::Server;
use corten_machine::WallClock;
use corten_pki::{Authority, RENEWAL_INTERVAL};
use corten_runner::SharedInformers;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How often the folder is looked at, by its time of change.
const LOOK: Duration = Duration::from_secs(1);
/// After a failure that goes on: what is half replaced when it is read changes the folder again.
const AGAIN: Duration = Duration::from_secs(60);
/// How often it is written down who still shows what the authority or the key of before signed.
const NOTE: Duration = Duration::from_secs(5);

pub(crate) struct Certificates {
    pub(crate) server: Server,
    pub(crate) authority: Arc<Authority>,
    /// The folder of keys.
    pub(crate) folder: PathBuf,
    /// The administrator's.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) url: String,
    /// Who waits for a time of day is told, too, that the clock was set.
    pub(crate) informers: Arc<Mutex<SharedInformers>>,
}

impl Certificates {
    /// Runs until `stopping` is ready.
    pub(crate) async fn keep(self, stopping: impl Future<Output = ()> + Send) {
        tokio::select! {
            biased;
            () = stopping => {}
            () = self.look() => {}
        }
    }

    async fn look(&self) {
        let clock = WallClock::watch().inspect_err(|error| tracing::warn!(%error, "the clock is not watched")).ok();
        let clock_is_set = async || match &clock {
            Some(clock) => clock.set().await,
            None => std::future::pending().await,
        };
        let (mut seen, mut is_published) = (None, true);
        let (mut due, mut noted) = (Instant::now() + RENEWAL_INTERVAL, None::<Instant>);
        loop {
            let is_set = tokio::select! {
                biased;
                () = clock_is_set() => true,
                () = self.authority.sighted() => {
                    noted = None;
                    false
                }
                () = tokio::time::sleep(LOOK) => false,
            };
            if is_set {
                tracing::info!("the machine's clock was set");
                self.informers.lock().clock_was_set();
            }
            let changed = self.changed().await;
            if is_set || Instant::now() >= due || changed != seen {
                seen = changed;
                let refreshed = self.refresh(&mut is_published).await;
                due = Instant::now() + if refreshed.is_ok() { RENEWAL_INTERVAL } else { AGAIN };
                if is_set {
                    // The kubelet's own may have ended by that, too.
                    self.authority.announce();
                }
                if let Err(error) = refreshed {
                    tracing::error!(error = format!("{error:#}"), "certificates cannot be renewed");
                }
            }
            if noted.is_none_or(|it| it.elapsed() >= NOTE) {
                noted = Some(Instant::now());
                if let Err(error) = self.authority.write_in_use() {
                    tracing::warn!(%error, "cannot write down which certificates are in use");
                }
            }
        }
    }

    async fn changed(&self) -> Option<SystemTime> {
        tokio::fs::metadata(&self.folder).await.ok()?.modified().ok()
    }

    /// Renews what is due and trusts what the folder says. Whom to trust is published before it is said to be in use.
    async fn refresh(&self, is_published: &mut bool) -> Result<()> {
        if self.authority.reload()? {
            tracing::info!("the cluster's authority or the key of its tokens was replaced");
            *is_published = false;
        }
        self.authority
            .write_admin_kubeconfig(&self.kubeconfig, &self.url)
            .context("writing the administrator's kubeconfig")?;
        if !*is_published {
            let publish = self.server.publish_authority().await;
            publish.map_err(|it| anyhow::anyhow!("telling clients whom to trust: {}", it.message))?;
            *is_published = true;
        }
        Ok(self.authority.write_in_use()?)
    }
}
