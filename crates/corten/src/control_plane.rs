//! Store, API server, controllers and scheduler in one process, each loop with a client and an identity of its own.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use corten_apiserver::{Config, FileLog, JournalSource, KubeletClient, Rotation, Server, Sink, pki::Authority};
use corten_meta::{Key, Resource};
use corten_reconcile::Decision;
use corten_runner::JournalBook;
use corten_store::{Store, embedded};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{
    in_process,
    process::{self, Clock},
};

/// What a control plane is told.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) bind: IpAddr,
    pub(crate) port: u16,
    pub(crate) audit_log: Option<PathBuf>,
}

/// A control plane that runs until [`ControlPlane::stop`].
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    pub(crate) authority: Arc<Authority>,
    pub(crate) journal: Arc<JournalBook>,
    pub(crate) clock: Clock,
    store: Arc<dyn Store>,
    audit_log: Option<Arc<FileLog>>,
    tasks: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

/// How long loops and connections have to end.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

struct Journals(Arc<JournalBook>);

impl JournalSource for Journals {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        self.0.decisions(resource, key)
    }
}

impl ControlPlane {
    /// Opens the store, starts to serve, writes `admin.kubeconfig`, and starts the loops.
    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        let dir = &settings.data_dir;
        private_dir(dir)?;
        let listener = TcpListener::bind((settings.bind, settings.port))
            .await
            .with_context(|| format!("listening on {}:{}", settings.bind, settings.port))?;
        let address = listener.local_addr().context("asking for the listener's address")?;
        let store = open_store(&dir.join("store")).await?;
        let authority = Arc::new(Authority::load_or_create(dir.join("pki")).context("preparing the certificates")?);
        let clock = process::clock();
        let journal = Arc::new(JournalBook::default());
        let audit_log = open_audit_log(settings)?;
        let server = Server::start(Config {
            store: store.clone(),
            clock: clock.clone(),
            uids: process::uids(),
            journals: Arc::new(Journals(journal.clone())),
            pki: authority.clone(),
            audit: audit_log.clone().map(|it| it as Arc<dyn Sink>),
            kubelet_dial: Some(KubeletClient::new(&authority).context("preparing the way to kubelets")?),
        })
        .await
        .context("starting the API server")?;
        authority
            .write_admin_kubeconfig(&dir.join("admin.kubeconfig"), &url(address))
            .context("writing the administrator's kubeconfig")?;

        let (stopping, _) = watch::channel(false);
        let mut this = Self { server, authority, journal, clock, store, audit_log, tasks: JoinSet::new(), stopping };
        this.serve(listener);
        this.start_loops();
        tracing::info!(%address, data = %dir.display(), "the control plane is up");
        Ok(this)
    }

    /// Becomes ready when the control plane begins to stop.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stopping = self.stopping.subscribe();
        async move {
            // An error says that the control plane is gone: that is a stop, too.
            let _ = stopping.wait_for(|it| *it).await;
        }
    }

    fn serve(&mut self, listener: TcpListener) {
        let (server, stopping) = (self.server.clone(), self.stopping());
        self.tasks.spawn(async move {
            if let Err(error) = server.serve(listener, stopping).await {
                tracing::error!(%error, "the API server cannot serve");
            }
        });
    }

    fn start_loops(&mut self) {
        for make in corten_controllers::CONTROLLERS {
            let controller = make();
            let client = in_process::client(&self.server, in_process::controller(controller.name()));
            let (clock, journal) = (self.clock.clone(), self.journal.clone());
            self.tasks.spawn(corten_runner::run_controller(controller, client, clock, journal, self.stopping()));
        }
        let scheduler = corten_scheduler::Scheduler::new(corten_scheduler::Config::default());
        let client = in_process::client(&self.server, in_process::scheduler());
        let (clock, journal) = (self.clock.clone(), self.journal.clone());
        self.tasks.spawn(corten_runner::run_scheduler(scheduler, client, clock, journal, self.stopping()));
    }

    /// Tells everything that waits for [`ControlPlane::stopping`].
    pub(crate) fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Ends loops, connections and the store, in this order.
    pub(crate) async fn stop(mut self) {
        tracing::info!("stopping");
        self.begin_stop();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_DEADLINE, ended).await.is_err() {
            tracing::warn!("some tasks did not end in time");
            self.tasks.shutdown().await;
        }
        self.server.stop().await;
        if let Some(audit_log) = self.audit_log {
            audit_log.close().await;
        }
        self.store.close().await;
    }
}

/// The address clients of this machine reach the server at.
fn url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("https://127.0.0.1:{}", address.port());
    }
    format!("https://{address}")
}

async fn open_store(dir: &Path) -> Result<Arc<dyn Store>> {
    let dir = dir.to_owned();
    let open = move || embedded::Embedded::open(&dir, embedded::Options::default());
    let store = tokio::task::spawn_blocking(open).await.context("opening the store")?.context("opening the store")?;
    Ok(Arc::new(store))
}

fn open_audit_log(settings: &Settings) -> Result<Option<Arc<FileLog>>> {
    let Some(path) = &settings.audit_log else { return Ok(None) };
    let log = FileLog::open(path, Rotation::default()).with_context(|| format!("opening {}", path.display()))?;
    Ok(Some(Arc::new(log)))
}

/// Only the owner may look into it: it holds keys and secrets.
fn private_dir(dir: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("making {}", dir.display()))
}
