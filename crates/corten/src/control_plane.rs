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
use corten_api::lease_times::LeaseTimes;
use corten_api::load_balancer::AddressPool;
use corten_apiserver::{
    AuditPolicy, Config, FileLog, Guard, JournalSource, KubeletClient, Limits, LogFilter, Rotation, Server, Sink,
};
use corten_cli::control_plane_record::ControlPlaneRecord;
use corten_client::RequestTallies;
use corten_encryption::{EncryptedStore, Encryption};
use corten_etcd::EtcdStore;
use corten_meta::{Key, Resource};
use corten_metrics::{
    loops::{LoopCounts, LoopQueue},
    scraped::Distribution,
};
use corten_pki::Authority;
use corten_reconcile::Decision;
use corten_runner::{CountedDurations, CountedMetric, JournalBook, Loops, QueueCounts, SharedInformers, Stopping};
use corten_store::Store;
use corten_stored_form::KubernetesForm;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::Instant};

use crate::{
    access_options::AccessOptions,
    certificates::Certificates,
    cluster_access::{ClusterAccess, ServerAccess},
    cluster_loops::{self, ClusterLoops},
    controller_loops::ControllerLoops,
    etcd_api::{self, EtcdApi},
    etcd_certificate,
    etcd_options::EtcdOptions,
    ha_options::HaOptions,
    in_process::{self, OwnServer},
    loop_access::LoopAccess,
    network_options::NetworkOptions,
    process::{self, Clock},
    server_presence::{self, ServerPresence},
    server_versions,
    signer::{AuthoritySigner, SigningKey},
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
    /// What keeps the cluster; `None`: the data folder does.
    pub(crate) etcd: Option<EtcdOptions>,
    /// Corten runs the etcd that keeps the cluster, and `etcd` says where once that answers.
    pub(crate) ha: Option<HaOptions>,
    /// Where etcd's API over the store of the data folder is served.
    pub(crate) etcd_listen: Option<SocketAddr>,
    pub(crate) encryption: Option<PathBuf>,
    /// The file of `encryption` is read again when it changes.
    pub(crate) reloads_encryption: bool,
    /// The addresses this machine has for its Pods alone, where there is a node. At the first they reach an API that is
    /// served at a loopback address.
    pub(crate) gateways: Vec<IpAddr>,
    /// Have Pods of the node beside it addresses of IPv6?
    pub(crate) has_ipv6: bool,
    /// The node in this process, where there is one.
    pub(crate) node: Option<String>,
    pub(crate) network: NetworkOptions,
    pub(crate) switches: Switches,
    /// What load balancers get their addresses from; empty: they have the nodes' own.
    pub(crate) load_balancer_pool: AddressPool,
    /// Of those who lead, where several share a store.
    pub(crate) lease_times: LeaseTimes,
    pub(crate) scheduler: corten_scheduler::Config,
    /// How long it goes on to serve once it was told to end.
    pub(crate) shutdown_delay: Duration,
    pub(crate) log: Arc<dyn LogFilter>,
}

/// A control plane that runs until [`ControlPlane::stop`].
pub(crate) struct ControlPlane {
    pub(crate) server: Server,
    /// What its loops ask of the server. The node beside it counts for itself.
    requests: RequestTallies,
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
    /// Of those who lead, where several share the store.
    pub(crate) lease_times: Option<LeaseTimes>,
    stopping: watch::Sender<bool>,
    /// True from the moment that others are told that this server will stop.
    leaving: watch::Sender<bool>,
    shutdown_delay: Duration,
}

/// How long loops and connections have to end.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

struct Journals {
    book: Arc<JournalBook>,
    requests: RequestTallies,
    /// The controllers that are off, and whose objects they are.
    unattended: Vec<(Resource, &'static str)>,
    /// The garbage collector, where it is off: it looks after the objects of all kinds.
    collector: Option<&'static str>,
}

impl Journals {
    fn new(book: &Arc<JournalBook>, requests: RequestTallies, switches: &Switches) -> Self {
        let collector = switches.off().into_iter().find(|it| *it == "garbage-collector-controller");
        Self { book: book.clone(), requests, unattended: switches.unattended(), collector }
    }
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

    fn counted(&self) -> Vec<LoopCounts> {
        let rows = |it: Vec<(Vec<String>, CountedDurations)>| it.into_iter().map(|it| (it.0, times(it.1))).collect();
        let requests = self.requests.tallies().into_iter().map(CountedMetric::from);
        let all = self.book.counted().into_iter().chain(requests);
        all.map(|it| LoopCounts { metric: it.metric, rows: rows(it.rows) }).collect()
    }

    fn queues(&self) -> Vec<LoopQueue> {
        let number = |(name, it): (String, Arc<QueueCounts>)| {
            let (longest, unfinished) = it.thinking();
            let (queued, worked) = (times(it.queued.counted()), times(it.worked.counted()));
            let (depth, adds, retries) = (it.depth(), it.adds(), it.retries());
            LoopQueue { name, depth, adds, retries, longest, unfinished, queued, worked }
        };
        self.book.queues().into_iter().map(number).collect()
    }
}

fn times(CountedDurations { up_to, n, seconds }: CountedDurations) -> Distribution {
    Distribution { up_to, n, sum: seconds }
}

/// The store, and whose it is.
struct Opened {
    /// As the server sees it.
    store: Arc<dyn Store>,
    /// What encrypts values, where that is configured.
    encryption: Option<EncryptedStore>,
    etcd: Option<Arc<EtcdStore>>,
    /// Over the store of the data folder.
    etcd_api: Option<EtcdApi>,
}

/// Opens the store, and writes down where it is for control planes that join.
async fn open(settings: &Settings, advertise: Option<SocketAddr>) -> Result<Opened> {
    let dir = &settings.data_dir;
    let encryption = encryption(settings).await?;
    if let Some(options) = &settings.etcd {
        let etcd = options.connect(dir).await?;
        options.record(dir, settings.encryption.as_deref(), &settings.network.network)?;
        let (store, encryption) = encrypted(etcd.clone(), encryption);
        // Others read what is in an etcd, and write to it: then they are of releases that fit to this one.
        let store: Arc<dyn Store> = Arc::new(KubernetesForm::new(store));
        server_versions::refuse_distant(&etcd, &*store, advertise).await?;
        return Ok(Opened { store, encryption, etcd: Some(etcd), etcd_api: None });
    }
    let store = etcd_api::open_store(&dir.join("store")).await?;
    let etcd_api = match settings.etcd_listen {
        Some(address) => Some(EtcdApi::beside_api_server(dir, address, store.clone()).await?),
        None => None,
    };
    ControlPlaneRecord::forget(dir).context("forgetting which etcd the cluster was in")?;
    let (store, encryption) = encrypted(store, encryption);
    Ok(Opened { store, encryption, etcd: None, etcd_api })
}

fn encrypted(store: Arc<dyn Store>, encryption: Option<Encryption>) -> (Arc<dyn Store>, Option<EncryptedStore>) {
    let encryption = encryption.map(|it| EncryptedStore::new(store.clone(), it));
    (encryption.clone().map_or(store, |it| Arc::new(it)), encryption)
}

/// What the server and the loops beside it work with, both.
struct Parts {
    authority: Arc<Authority>,
    clock: Clock,
    journal: Arc<JournalBook>,
    requests: RequestTallies,
    audit_log: Option<Arc<FileLog>>,
    machine: Machine,
}

impl Parts {
    fn prepare(settings: &Settings) -> Result<Self> {
        let authority =
            Authority::load_or_create(settings.data_dir.join("pki")).context("preparing the certificates")?;
        Ok(Self {
            authority: Arc::new(authority),
            clock: process::clock(),
            journal: Arc::new(JournalBook::default()),
            requests: RequestTallies::default(),
            audit_log: open_audit_log(settings)?,
            machine: Machine { host_name: process::host_name(), node: settings.node.clone() },
        })
    }

    fn server_config(&self, settings: &Settings, opened: &Opened, advertise: Option<SocketAddr>) -> Result<Config> {
        let NetworkOptions { network, node_ports, host_ports, dns, is_settled } = &settings.network;
        Ok(Config {
            store: opened.store.clone(),
            encryption: opened.encryption.clone(),
            clock: self.clock.clone(),
            uids: process::uids(),
            journals: Arc::new(Journals::new(&self.journal, self.requests.clone(), &settings.switches)),
            pki: self.authority.clone(),
            audit: self.audit_log.clone().map(|it| it as Arc<dyn Sink>),
            limits: Limits::default(),
            kubelet_dial: Some(KubeletClient::new(&self.authority).context("preparing the way to kubelets")?),
            guard: guard(settings)?,
            advertise,
            machine: self.machine.clone(),
            network: network.clone(),
            node_ports: node_ports.clone(),
            host_ports: host_ports.clone(),
            name_servers: dns.settings(),
            load_balancer_pool: settings.load_balancer_pool.clone(),
            is_network_settled: *is_settled,
            has_ipv6: settings.has_ipv6,
            webhook_dial: None,
        })
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
        let advertise = advertised(address).or(gateway);
        let opened = open(settings, advertise).await?;
        let parts = Parts::prepare(settings)?;
        let config = parts.server_config(settings, &opened, advertise)?;
        let server = Server::start(config).await.context("starting the API server")?;
        settings.network.keep(dir)?;
        parts
            .authority
            .write_admin_kubeconfig(&dir.join("admin.kubeconfig"), &url(address))
            .context("writing the administrator's kubeconfig")?;

        let (stopping, leaving) = (watch::Sender::new(false), watch::Sender::new(false));
        let Parts { authority, clock, journal, requests, audit_log, machine } = parts;
        let Opened { store, etcd, etcd_api, .. } = opened;
        let mut this = Self {
            server,
            requests,
            authority,
            loops: process::loops(journal.clone(), clock.clone())?,
            journal,
            clock,
            port: address.port(),
            for_pods: gateway.filter(|_| address.ip().is_loopback()),
            lease_times: store.is_shared().then_some(settings.lease_times),
            store,
            audit_log,
            tasks: JoinSet::new(),
            stopping,
            leaving,
            shutdown_delay: settings.shutdown_delay,
        };
        this.serve(listener);
        if let (Some(etcd), Some(options)) = (&etcd, &settings.etcd) {
            this.keep_etcd(etcd, options);
        }
        if let Some(api) = etcd_api {
            this.tasks.spawn(api.serve(this.stopping.subscribe()));
        }
        let ha = settings.ha.as_ref().map(|it| it.data.clone());
        this.keep_presence(etcd, advertise, machine, ha);
        let informers = Arc::new(Mutex::new(cluster_loops::informers(&this.own_server())));
        this.keep_certificates(dir, url(address), informers.clone());
        this.start_loops(settings, informers);
        tracing::info!(%address, data = %dir.display(), "the control plane is up");
        Ok(this)
    }

    /// Becomes ready when the control plane begins to stop.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.when_stopping().now()
    }

    /// As [`ControlPlane::stopping`], for who begins more than once.
    pub(crate) fn when_stopping(&self) -> Stopping {
        Stopping::new(self.stopping.subscribe())
    }

    fn own_server(&self) -> OwnServer {
        OwnServer { server: self.server.clone(), requests: self.requests.clone() }
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

    fn keep_etcd(&mut self, etcd: &Arc<EtcdStore>, options: &EtcdOptions) {
        self.tasks.spawn(etcd.keep(self.stopping.subscribe()));
        if let Some(certificate) = options.certificate() {
            self.tasks.spawn(etcd_certificate::watch(certificate, self.stopping()));
        }
        let interval = options.compaction_interval;
        if !interval.is_zero() {
            self.tasks.spawn(corten_etcd::compact_every(etcd.clone(), interval, self.stopping.subscribe()));
        }
    }

    fn keep_presence(
        &mut self,
        etcd: Option<Arc<EtcdStore>>,
        advertise: Option<SocketAddr>,
        machine: Machine,
        ha: Option<PathBuf>,
    ) {
        let client = in_process::client(&self.own_server(), server_presence::identity());
        let uid = process::uids()();
        let presence = ServerPresence::new(client, etcd, advertise, (machine, &*uid), ha, self.clock.clone());
        self.tasks.spawn(presence.keep(Stopping::new(self.leaving.subscribe()).now()));
    }

    fn keep_certificates(&mut self, data: &Path, url: String, informers: Arc<Mutex<SharedInformers>>) {
        let (server, authority) = (self.server.clone(), self.authority.clone());
        let (folder, kubeconfig) = (data.join("pki"), data.join("admin.kubeconfig"));
        let certificates = Certificates { server, authority, folder, kubeconfig, url, informers };
        self.tasks.spawn(certificates.keep(self.stopping()));
    }

    fn start_loops(&mut self, settings: &Settings, informers: Arc<Mutex<SharedInformers>>) {
        let signer = AuthoritySigner { key: SigningKey::Cluster(self.authority.clone()), clock: self.clock.clone() };
        let controllers = ControllerLoops {
            access: LoopAccess::InProcess(self.own_server()),
            signer: Some(Arc::new(signer)),
            journal: self.journal.clone(),
            clock: self.clock.clone(),
            loops: self.loops.clone(),
            switches: settings.switches.clone(),
            settings: corten_controllers::Settings {
                network: settings.network.network.clone(),
                node_ports: settings.network.node_ports.clone(),
                load_balancer_pool: settings.load_balancer_pool.clone(),
                name_servers: settings.network.dns.settings(),
                ..corten_controllers::Settings::default()
            },
        };
        let loops =
            ClusterLoops { server: self.own_server(), controllers, scheduler: settings.scheduler.clone(), informers };
        let stopping = self.when_stopping();
        match self.lease_times {
            Some(times) => self.tasks.spawn(loops.run_elected(times, stopping)),
            None => self.tasks.spawn(loops.run(stopping)),
        };
        // Who stands still then is not waited for.
        let (loops, stopping) = (self.loops.clone(), self.stopping());
        self.tasks.spawn(async move {
            stopping.await;
            loops.begin_stop();
        });
    }

    /// What the node beside it has of it.
    pub(crate) fn access(&self) -> ClusterAccess {
        ClusterAccess {
            server: ServerAccess::InProcess(OwnServer { requests: RequestTallies::default(), ..self.own_server() }),
            trust: self.authority.clone(),
            clock: self.clock.clone(),
            journal: self.journal.clone(),
            stop: self.stopping.clone(),
        }
    }

    /// Has nobody led here any more, and goes on to serve for those who still come, for as long as `--shutdown-delay-duration` says.
    pub(crate) async fn leave(&self) {
        self.leaving.send_replace(true);
        self.server.announce_stop();
        if !self.shutdown_delay.is_zero() {
            tracing::info!(delay = ?self.shutdown_delay, "told to end: serving goes on for a while");
            tokio::time::sleep(self.shutdown_delay).await;
        }
    }

    /// Tells everything that waits for [`ControlPlane::stopping`].
    pub(crate) fn begin_stop(&self) {
        self.leaving.send_replace(true);
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
