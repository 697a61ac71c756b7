//! Which server serves which group and version, kept up as APIServices come and go; a task for each.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use corten_api::resources::{API_SERVICES, ENDPOINT_SLICES, SERVICES};
use corten_cacher::watch_cache::{Caches, Events};
use corten_meta::{Key, Resource, Status};
use corten_metrics::Registry;
use corten_openapi::{Aggregated, AggregatedVersion};
use corten_pki::{Authority, DynamicCertificate};
use corten_webhook::Clients;
use futures_util::future::select_all;
use http::Method;
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use crate::{
    availability, backend::Backend, condition::Condition, discovery, host::Host, measures::Measures, patience,
    registration, server::Servers,
};

static API_SERVICES_AT: Resource = API_SERVICES;

/// How often a server is asked where nothing has changed.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often it is asked what it serves.
const HEARING_INTERVAL: Duration = Duration::from_secs(60);
/// Before one that failed is asked again; doubled each time, up to [`INTERVAL`].
const RETRY: Duration = Duration::from_millis(250);
/// However many requests fail, it is asked no sooner than so long after the last time.
const UNREACHED_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked whether others are still told whom to believe (`ClusterAuthenticationTrustController`).
const TRUST_INTERVAL: Duration = Duration::from_secs(60);
/// Before what could not be written is tried again.
const REGISTRATION_RETRY: Duration = Duration::from_secs(5);
/// Changes of endpoints that come closer together than this are looked at once.
const PAUSE: Duration = Duration::from_millis(100);

/// By group and version.
type Table = BTreeMap<(String, String), Arc<Backend>>;

pub struct Aggregator {
    caches: Arc<Caches>,
    clients: Arc<Clients>,
    pki: Arc<Authority>,
    /// What other servers are shown.
    certificate: Arc<DynamicCertificate>,
    table: ArcSwap<Table>,
    servers: Servers,
    /// Something else was heard of a server.
    heard: Notify,
    measures: Measures,
}

struct BackendTask {
    backend: Arc<Backend>,
    task: AbortHandle,
}

impl Aggregator {
    pub fn new(
        caches: Arc<Caches>,
        clients: Arc<Clients>,
        pki: Arc<Authority>,
        certificate: Arc<DynamicCertificate>,
        registry: &Registry,
    ) -> Self {
        let measures = Measures::new(registry);
        let (table, heard) = (ArcSwap::default(), Notify::new());
        let servers = Servers::default();
        let this = Self { caches, clients, pki, certificate, table, servers, heard, measures };
        this.look();
        this
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    pub(crate) fn backend(&self, group: &str, version: &str) -> Option<Arc<Backend>> {
        self.table.load().get(&(group.to_owned(), version.to_owned())).cloned()
    }

    /// What is served elsewhere, as far as it is known now.
    pub fn served(&self) -> Aggregated {
        Aggregated::of(self.versions().iter().map(|it| (**it).clone()))
    }

    fn versions(&self) -> Vec<Arc<AggregatedVersion>> {
        self.table.load().values().map(|it| it.heard.load_full()).collect()
    }

    /// Makes the table what the APIServices say. Who has not changed stays.
    fn look(&self) {
        let Some(cache) = self.caches.get(&API_SERVICES_AT) else { return };
        let (before, snapshot) = (self.table.load_full(), cache.snapshot());
        let credential = self.certificate.credential();
        let mut table = Table::new();
        for spec in snapshot.iter().filter_map(|it| crate::spec::Spec::of(&it.parse())) {
            let key = (spec.group.clone(), spec.version.clone());
            let known = before.get(&key);
            let is_same = |it: &&Arc<Backend>| it.spec == spec && it.certificate == credential.certificate;
            let backend = known.filter(is_same).cloned().unwrap_or_else(|| {
                let server = self.servers.of(&spec);
                let backend = Backend::new(spec, &self.clients, &credential, server);
                if let Some(known) = known {
                    backend.inherit(known);
                }
                Arc::new(backend)
            });
            table.insert(key, backend);
        }
        self.table.store(Arc::new(table));
    }

    /// Follows the APIServices until the server ends.
    pub async fn run(self: Arc<Self>, host: Arc<dyn Host>, mut ended: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {}
            () = self.clone().follow(host.clone()) => {}
            () = self.keep_registered(host) => {}
        }
    }

    /// Makes the APIServices of what this server itself serves what they should be now.
    ///
    /// # Errors
    /// What a write is refused with.
    pub async fn register(&self, host: &dyn Host) -> Result<(), Status> {
        registration::keep(&self.caches, host).await
    }

    async fn keep_registered(&self, host: Arc<dyn Host>) {
        let Some(events) = self.caches.get(&API_SERVICES_AT).map(|it| it.events()) else { return };
        let mut served = host.served_changes();
        loop {
            served.mark_unchanged();
            let count = events.count();
            let mut result = self.register(&*host).await;
            if result.is_ok() {
                result = host.publish_trust().await;
            }
            let changed = async {
                tokio::select! {
                    () = events.after(count) => {}
                    Ok(()) = served.changed() => {}
                }
            };
            match result {
                Ok(()) => drop(tokio::time::timeout(TRUST_INTERVAL, changed).await),
                Err(status) => {
                    tracing::warn!(%status, "APIServices cannot be kept up");
                    drop(tokio::time::timeout(REGISTRATION_RETRY, changed).await);
                }
            }
        }
    }

    async fn follow(self: Arc<Self>, host: Arc<dyn Host>) {
        let Some(events) = self.caches.get(&API_SERVICES_AT).map(|it| it.events()) else { return };
        let mut authority = self.pki.changes();
        // Dropped with this: then they end.
        let mut tasks = JoinSet::new();
        let mut running: BTreeMap<(String, String), BackendTask> = BTreeMap::new();
        let mut published: Vec<Arc<AggregatedVersion>> = Vec::new();
        loop {
            let count = events.count();
            self.look();
            self.start(&host, &mut tasks, &mut running);
            let versions = self.versions();
            let is_same =
                versions.len() == published.len() && versions.iter().zip(&published).all(|(a, b)| Arc::ptr_eq(a, b));
            if !is_same {
                host.serve(self.served());
                published = versions;
            }
            tokio::select! {
                () = events.after(count) => running.values().for_each(|it| it.backend.written.notify_one()),
                () = self.heard.notified() => {}
                Ok(()) = authority.changed() => {}
                // A certificate may have been renewed.
                () = tokio::time::sleep(HEARING_INTERVAL) => {}
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        host: &Arc<dyn Host>,
        tasks: &mut JoinSet<()>,
        running: &mut BTreeMap<(String, String), BackendTask>,
    ) {
        let table = self.table.load_full();
        running.retain(|key, it| {
            let stays = table.get(key).is_some_and(|backend| Arc::ptr_eq(backend, &it.backend));
            if !stays {
                it.task.abort();
                self.measures.forget(&it.backend.spec.name);
            }
            stays
        });
        for (key, backend) in table.iter() {
            running.entry(key.clone()).or_insert_with(|| {
                let (this, backend, host) = (self.clone(), backend.clone(), host.clone());
                let task = tasks.spawn(async move { this.keep(&backend, &*host).await });
                BackendTask { backend: table[key].clone(), task }
            });
        }
        while tasks.try_join_next().is_some() {}
    }

    /// Asks one server again and again whether it answers, and what it serves.
    async fn keep(&self, backend: &Backend, host: &dyn Host) {
        let sources: Vec<Events> =
            [SERVICES, ENDPOINT_SLICES].iter().filter_map(|it| self.caches.get(it)).map(|it| it.events()).collect();
        let (mut hearing_due, mut retry) = (Instant::now(), RETRY);
        loop {
            let counts = counts(&sources);
            let endpoints = backend.endpoints(&self.caches);
            let check = || availability::check(backend, &self.caches);
            let condition = patience::found(backend.is_available(), check).await;
            let is_available = condition.is_available;
            let before = backend.found(condition.clone());
            self.measures.found(&backend.spec.name, before.as_ref(), &condition);
            if before.as_ref() != Some(&condition) {
                tracing::info!(
                    api_service = backend.spec.name,
                    condition.reason,
                    condition.message,
                    "another API server"
                );
                self.heard.notify_one();
            }
            let is_told = self.tell(backend, &condition, host).await;
            let is_back = before.is_none_or(|it| !it.is_available);
            if is_available && (is_back || Instant::now() >= hearing_due) {
                discovery::hear(backend).await;
                hearing_due = Instant::now() + HEARING_INTERVAL;
                self.heard.notify_one();
            }
            retry = if is_available && is_told { RETRY } else { (retry * 2).min(INTERVAL) };
            let next = Instant::now() + if is_available && is_told { INTERVAL } else { retry };
            self.wait(backend, host, next, (&sources[..], counts), &endpoints).await;
        }
    }

    /// Until it is time to ask again, the endpoints are others, or a request did not come there.
    async fn wait(
        &self,
        backend: &Backend,
        host: &dyn Host,
        until: Instant,
        (sources, mut counted): (&[Events], Vec<u64>),
        endpoints: &Result<Vec<std::net::SocketAddr>, corten_webhook::NoEndpoint>,
    ) {
        let asked = Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                () = backend.unreached.notified() => {
                    return tokio::time::sleep_until(until.min(asked + UNREACHED_INTERVAL)).await;
                }
                () = backend.written.notified() => {
                    if let Some(condition) = backend.condition() {
                        self.tell(backend, &condition, host).await;
                    }
                }
                () = changed(sources, &counted) => {
                    tokio::time::sleep(PAUSE).await;
                    counted = counts(sources);
                    if backend.endpoints(&self.caches) != *endpoints {
                        return;
                    }
                }
            }
        }
    }

    /// Writes the condition down where the APIService does not say it. False where that did not succeed.
    async fn tell(&self, backend: &Backend, condition: &Condition, host: &dyn Host) -> bool {
        let name = &*backend.spec.name;
        let stored = self.caches.get(&API_SERVICES_AT).and_then(|it| it.get("", name));
        let Some(new) = stored.and_then(|it| condition.put_into(&it.parse(), host.now())) else { return true };
        let path = format!("{}/status", API_SERVICES_AT.path(&Key::cluster(name)));
        match host.send(Method::PUT, path, new).await {
            Ok(()) => true,
            // It was changed or is gone: that wakes who looks again.
            Err(status) if matches!(status.code, 404 | 409) => true,
            Err(status) => {
                tracing::warn!(api_service = name, %status, "the condition of an APIService cannot be written");
                false
            }
        }
    }
}

fn counts(sources: &[Events]) -> Vec<u64> {
    sources.iter().map(Events::count).collect()
}

async fn changed(sources: &[Events], counted: &[u64]) {
    if sources.is_empty() {
        return std::future::pending().await;
    }
    select_all(sources.iter().zip(counted).map(|(it, count)| Box::pin(it.after(*count)))).await;
}
