//! Store, API server, controllers and scheduler in one process, each loop with a client and an identity of its own.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use corten_admission::Machine;
use corten_apiserver::{
    AuditPolicy, Config, FileLog, Guard, JournalSource, KubeletClient, Limits, LogFilter, LoopQueue, Rotation, Server,
    Sink,
};
use corten_encryption::{EncryptedStore, Encryption};
use corten_meta::{Key, Resource};
use corten_pki::Authority;
use corten_reconcile::Decision;
use corten_runner::{ControllerLoop, JournalBook, Loops, QueueCounts, SharedInformers, whole};
use corten_store::{Store, embedded};
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::Instant};

use crate::{
    access_options::AccessOptions,
    certificates::Certificates,
    in_process,
    process::{self, Clock},
    signer::AuthoritySigner,
    switches::Switches,
};

/// How long a port that another process holds is waited for, and how often it is tried.
const PORT_WAIT: Duration = Duration::from_secs(2);
const PORT_RETRY: Duration = Duration::from_millis(50);

/// What a control plane is told.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) bind: IpAddr,
    pub(crate) port: u16,
    pub(crate) audit_log: Option<PathBuf>,
    pub(crate) audit_policy: Option<PathBuf>,
    pub(crate) access: AccessOptions,
    pub(crate) encryption: Option<PathBuf>,
    /// The file of `encryption` is read again when it changes.
    pub(crate) reloads_encryption: bool,
    /// The addresses this machine has for its Pods alone, where there is a node. At the first they reach an API that is
    /// served at a loopback address.
    pub(crate) gateways: Vec<IpAddr>,
    /// The node in this process, where there is one.
    pub(crate) node: Option<String>,
    pub(crate) switches: Switches,
    pub(crate) log: Arc<dyn LogFilter>,
}

/// A control plane that runs until [`ControlPlane::stop`].
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    pub(crate) authority: Arc<Authority>,
    pub(crate) journal: Arc<JournalBook>,
    pub(crate) clock: Clock,
    /// What the API is served at.
    pub(crate) port: u16,
    /// Where the node is to serve the API in addition.
    pub(crate) for_pods: Option<SocketAddr>,
    store: Arc<dyn Store>,
    audit_log: Option<Arc<FileLog>>,
    tasks: JoinSet<()>,
    loops: Arc<Loops>,
    stopping: watch::Sender<bool>,
}

/// Tells when the control plane begins to stop.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub(crate) fn now(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.0.clone();
        async move {
            // An error says that the control plane is gone: that is a stop, too.
            let _ = stopping.wait_for(|it| *it).await;
        }
    }
}

/// How long loops and connections have to end.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

struct Journals {
    book: Arc<JournalBook>,
    /// The controllers that are off, and whose objects they are.
    unattended: Vec<(Resource, &'static str)>,
    /// The garbage collector, where it is off: it looks after the objects of all kinds.
    collector: Option<&'static str>,
}

impl JournalSource for Journals {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        self.book.decisions(resource, key)
    }

    fn off(&self, resource: &Resource) -> Vec<String> {
        let own = self.unattended.iter().filter(|it| it.0 == *resource).map(|it| it.1);
        own.chain(self.collector).map(str::to_owned).collect()
    }

    fn waiting(&self, wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        self.book.waiting(wanted)
    }

    fn queues(&self) -> Vec<LoopQueue> {
        let number = |(name, it): (String, Arc<QueueCounts>)| {
            let (longest, unfinished) = it.thinking();
            LoopQueue { name, depth: it.depth(), adds: it.adds(), retries: it.retries(), longest, unfinished }
        };
        self.book.queues().into_iter().map(number).collect()
    }
}

impl ControlPlane {
    /// Opens the store, starts to serve, writes `admin.kubeconfig`, and starts the loops.
    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        let dir = &settings.data_dir;
        // Only the owner may look into it: it holds keys and secrets.
        corten_machine::close_for_server(dir)?;
        let listener = listen(settings.bind, settings.port)
            .await
            .with_context(|| format!("listening on {}:{}", settings.bind, settings.port))?;
        let address = listener.local_addr().context("asking for the listener's address")?;
        let gateway = settings.gateways.first().map(|it| SocketAddr::new(*it, address.port()));
        let encryption = encryption(settings).await?;
        let store = open_store(&dir.join("store")).await?;
        let encryption = encryption.map(|it| EncryptedStore::new(store.clone(), it));
        let store = encryption.clone().map_or(store, |it| Arc::new(it));
        let authority = Arc::new(Authority::load_or_create(dir.join("pki")).context("preparing the certificates")?);
        let clock = process::clock();
        let journal = Arc::new(JournalBook::default());
        let audit_log = open_audit_log(settings)?;
        let server = Server::start(Config {
            store: store.clone(),
            encryption,
            clock: clock.clone(),
            uids: process::uids(),
            journals: Arc::new(Journals {
                book: journal.clone(),
                unattended: settings.switches.unattended(),
                collector: settings.switches.off().into_iter().find(|it| *it == "garbage-collector-controller"),
            }),
            pki: authority.clone(),
            audit: audit_log.clone().map(|it| it as Arc<dyn Sink>),
            limits: Limits::default(),
            kubelet_dial: Some(KubeletClient::new(&authority).context("preparing the way to kubelets")?),
            guard: guard(settings)?,
            advertise: advertised(address).or(gateway),
            machine: Machine { host_name: process::host_name(), node: settings.node.clone() },
            has_ipv6: settings.gateways.iter().any(IpAddr::is_ipv6),
            webhook_dial: None,
        })
        .await
        .context("starting the API server")?;
        authority
            .write_admin_kubeconfig(&dir.join("admin.kubeconfig"), &url(address))
            .context("writing the administrator's kubeconfig")?;

        let (stopping, _) = watch::channel(false);
        let loops = process::loops(journal.clone(), clock.clone())?;
        let for_pods = gateway.filter(|_| address.ip().is_loopback());
        let tasks = JoinSet::new();
        let port = address.port();
        let mut this =
            Self { server, authority, journal, clock, port, for_pods, store, audit_log, tasks, loops, stopping };
        this.serve(listener);
        // The loops read together, and each writes under an identity of its own, as with kube-controller-manager's
        // `--use-service-account-credentials`.
        let informers = SharedInformers::new(in_process::client(&this.server, in_process::controller_manager()));
        this.keep_certificates(dir, url(address), informers.clone());
        this.start_loops(&settings.switches, &informers);
        tracing::info!(%address, data = %dir.display(), "the control plane is up");
        Ok(this)
    }

    /// Becomes ready when the control plane begins to stop.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.when_stopping().now()
    }

    /// As [`ControlPlane::stopping`], for who begins more than once.
    pub(crate) fn when_stopping(&self) -> Stopping {
        Stopping(self.stopping.subscribe())
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn serve(&mut self, listener: TcpListener) {
        let (server, stopping) = (self.server.clone(), self.stopping());
        self.tasks.spawn(async move {
            if let Err(error) = server.serve(listener, stopping).await {
                tracing::error!(%error, "the API server cannot serve");
            }
        });
    }

    fn keep_certificates(&mut self, data: &Path, url: String, informers: SharedInformers) {
        let (server, authority) = (self.server.clone(), self.authority.clone());
        let (folder, kubeconfig) = (data.join("pki"), data.join("admin.kubeconfig"));
        let certificates = Certificates { server, authority, folder, kubeconfig, url, informers };
        self.tasks.spawn(certificates.keep(self.stopping()));
    }

    fn start_loops(&mut self, switches: &Switches, informers: &SharedInformers) {
        let off = switches.off();
        if !off.is_empty() {
            tracing::info!(off = off.join(", "), "left to other programs");
        }
        let (loops, stopping) = (self.loops.clone(), self.when_stopping());
        let (seen, told) = (informers.clone(), stopping.clone());
        self.tasks.spawn(loops.spawn("informers", move || whole(seen.clone().run(told.now()))));
        for make in corten_controllers::CONTROLLERS {
            let controller = make();
            if !switches.runs(controller.name()) {
                continue;
            }
            let client = in_process::client(&self.server, in_process::controller(controller.name()));
            let (clock, journal) = (self.clock.clone(), self.journal.clone());
            let (informers, told) = (informers.clone(), stopping.clone());
            self.tasks.spawn(loops.spawn(controller.name(), move || {
                let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
                Arc::new(ControllerLoop::new(make(), client, &informers, clock, journal, told.now()))
            }));
        }
        if switches.runs_signing() {
            self.start_signing(&stopping);
        }
        if switches.scheduler {
            self.start_scheduler(stopping);
        }
        // Who stands still then is not waited for.
        let stopping = self.stopping();
        self.tasks.spawn(async move {
            stopping.await;
            loops.begin_stop();
        });
    }

    fn start_signing(&mut self, stopping: &Stopping) {
        let client = in_process::client(&self.server, in_process::controller("certificate"));
        let signer = AuthoritySigner { authority: self.authority.clone(), clock: self.clock.clone() };
        let (signer, clock, told) = (Arc::new(signer), self.clock.clone(), stopping.clone());
        self.tasks.spawn(self.loops.spawn("certificate-signing", move || {
            whole(corten_runner::run_signing(client.clone(), signer.clone(), clock.clone(), told.now()))
        }));
    }

    fn start_scheduler(&mut self, stopping: Stopping) {
        let client = in_process::client(&self.server, in_process::scheduler());
        let (clock, journal) = (self.clock.clone(), self.journal.clone());
        self.tasks.spawn(self.loops.spawn("scheduler", move || {
            let scheduler = corten_scheduler::Scheduler::new(corten_scheduler::Config::default());
            let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
            whole(corten_runner::run_scheduler(scheduler, client, clock, journal, stopping.now()))
        }));
    }

    /// What tells everything that waits for [`ControlPlane::stopping`], for who cannot hold on to this.
    pub(crate) fn begin_stop_later(&self) -> watch::Sender<bool> {
        self.stopping.clone()
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
        // They end as soon as they have nothing to do, and those that stand still are left behind.
        self.loops.stop();
        self.server.stop().await;
        if let Some(audit_log) = self.audit_log {
            audit_log.close().await;
        }
        self.store.close().await;
    }
}

/// A process that was killed holds its port until the kernel has ended it: whoever starts again at once waits for that.
async fn listen(bind: IpAddr, port: u16) -> io::Result<TcpListener> {
    let end = Instant::now() + PORT_WAIT;
    loop {
        match TcpListener::bind((bind, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                tokio::time::sleep(PORT_RETRY).await;
            }
            listening => return listening,
        }
    }
}

/// Where others reach the server; `None` where it listens to this machine alone.
fn advertised(address: SocketAddr) -> Option<SocketAddr> {
    let ip = if address.ip().is_unspecified() { corten_network::addresses().first().copied()? } else { address.ip() };
    (!ip.is_loopback()).then(|| SocketAddr::new(ip, address.port()))
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

async fn encryption(settings: &Settings) -> Result<Option<Encryption>> {
    let Some(path) = &settings.encryption else { return Ok(None) };
    let encryption = Encryption::load(path, settings.reloads_encryption).await;
    encryption.map(Some).with_context(|| format!("reading {}", path.display()))
}

fn open_audit_log(settings: &Settings) -> Result<Option<Arc<FileLog>>> {
    let Some(path) = &settings.audit_log else { return Ok(None) };
    let log = FileLog::open(path, Rotation::default()).with_context(|| format!("opening {}", path.display()))?;
    Ok(Some(Arc::new(log)))
}

fn guard(settings: &Settings) -> Result<Guard> {
    let mut guard = Guard { log: Some(settings.log.clone()), ..Guard::default() };
    settings.access.apply(&mut guard)?;
    if let Some(path) = &settings.audit_policy {
        guard.audit_policy = AuditPolicy::load(path).with_context(|| format!("reading {}", path.display()))?;
    }
    Ok(guard)
}
