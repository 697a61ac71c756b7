//! What the server holds: the caches, who may what, what is counted and bounded. It knows no request, and starts nothing.

use corten_kubelets::{KubeletClient, RemoteJournals, Tunnels, Usages};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use corten_access::{Access, AuthorizationSettings, Clock, Issuers, RightsChanged, tokens};
use corten_admission::{Cluster, HostPortPool, Machine, NamespaceLocks, NodeRoom, Policies, Ranges, Uids, Webhooks};
use corten_aggregation::Aggregator;
use corten_api::cluster_network::{ClusterNetwork, NodePorts};
use corten_api::{host_ports::HostPortRange, load_balancer::AddressPool};
use corten_cacher::watch_cache::{Caches, Feed, ResourceCache};
use corten_conversion::{Conversion, RefusedDefinitions};
use corten_encryption::EncryptedStore;
use corten_fairness::{Budget, Fairness, Limits};
use corten_kinds::{Kind, Kinds};
use corten_meta::Time;
use corten_metrics::Metrics;
use corten_openapi::{Aggregated, Documents};
use corten_pki::DynamicCertificate;
use corten_store::Store;
use corten_webhook::{Clients, Dial};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use crate::{journals::JournalSource, log_filter::LogFilter};

pub struct Config {
    pub store: Arc<dyn Store>,
    /// What encrypts values, where that is configured: then it is the store, too.
    pub encryption: Option<EncryptedStore>,
    pub clock: Clock,
    pub uids: Uids,
    pub journals: Arc<dyn JournalSource>,
    pub pki: Arc<corten_pki::Authority>,
    pub audit: Option<Arc<dyn corten_audit::Sink>>,
    pub kubelet_dial: Option<KubeletClient>,
    pub guard: Guard,
    pub limits: Limits,
    /// Where Pods and other machines reach this server: the endpoint of the Service `kubernetes`. `None` where none can.
    pub advertise: Option<SocketAddr>,
    pub machine: Machine,
    pub network: ClusterNetwork,
    /// Is that what this server's own record says? Then no object says otherwise.
    pub is_network_settled: bool,
    /// Which name servers machines that join are told to ask, by option.
    pub name_servers: BTreeMap<String, String>,
    pub node_ports: NodePorts,
    pub load_balancer_pool: AddressPool,
    pub host_ports: HostPortRange,
    /// Have Pods IPv6 addresses, too? Then Services can have them.
    pub has_ipv6: bool,
    /// How webhooks are reached; `None`: over the machine's network.
    pub webhook_dial: Option<Dial>,
}

/// What an administrator says of who may come and what is written down of it. By default: no tokens from a file, and a
/// record of every change.
#[derive(Default)]
pub struct Guard {
    pub static_tokens: tokens::StaticTokens,
    /// Who else issues tokens, and who may come without any.
    pub issuers: Arc<Issuers>,
    /// Who is asked about tokens that nobody here knows.
    pub token_webhook: Option<tokens::TokenWebhookSettings>,
    /// Who decides what somebody may do.
    pub authorization: AuthorizationSettings,
    pub audit_policy: corten_audit::Policy,
    /// What changes what the process logs; `None` where nothing does.
    pub log: Option<Arc<dyn LogFilter>>,
}

/// Clones are the same state.
#[derive(Clone)]
pub struct State(Arc<StateInner>);

struct StateInner {
    config: Config,
    cluster: Cluster,
    room: Budget,
    fairness: Arc<Fairness>,
    metrics: Metrics,
    usages: Usages,
    remote_journals: RemoteJournals,
    tunnels: Tunnels,
    started: Time,
    /// True from the moment others are told that the server will stop, and from the moment it begins to.
    leaving: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
    /// Which kinds are served, and what is said of them.
    served: ArcSwap<Documents>,
    served_changed: watch::Sender<()>,
    /// The ways to other API servers.
    aggregator: Arc<Aggregator>,
    refused_definitions: RefusedDefinitions,
    feed: Arc<Feed>,
    /// The task that keeps the caches up.
    fed: Mutex<Option<JoinHandle<()>>>,
    /// Why the caches did not catch up with a shared store when they were asked to last.
    lag: Mutex<Option<String>>,
}

/// Who comes, and what they may do: takes the administrator's part of it out of the configuration.
fn access(config: &mut Config, caches: &Arc<Caches>, clients: &Arc<Clients>, metrics: &Metrics) -> Access {
    let guard = &mut config.guard;
    let static_tokens = std::mem::take(&mut guard.static_tokens);
    let authenticator = tokens::Authenticator::new(config.pki.clone(), static_tokens, guard.issuers.clone())
        .with_webhook(guard.token_webhook.take(), clients, metrics.registry());
    let authorization = std::mem::take(&mut guard.authorization);
    let clock = config.clock.clone();
    Access::new(caches.clone(), clock, authenticator, authorization, clients.clone(), metrics.registry())
}

/// What keeps the caches up.
pub(crate) struct Feeding {
    pub(crate) feed: Arc<Feed>,
    pub(crate) task: JoinHandle<()>,
}

impl State {
    pub(crate) fn new(
        mut config: Config,
        front_proxy: Arc<DynamicCertificate>,
        caches: Arc<Caches>,
        ranges: Ranges,
        feeding: Feeding,
    ) -> Self {
        let metrics = Metrics::default();
        let clients = Arc::new(match config.webhook_dial.take() {
            Some(dial) => Clients::dialling(caches.clone(), dial),
            None => Clients::new(caches.clone()),
        });
        let access = Arc::new(access(&mut config, &caches, &clients, &metrics));
        let aggregator =
            Aggregator::new(caches.clone(), clients.clone(), config.pki.clone(), front_proxy, metrics.registry());
        let conversion = Conversion::new(
            clients.clone(),
            config.uids.clone(),
            config.clock.clone(),
            metrics.registry(),
            config.limits.converted_list_bytes,
        );
        let cluster = Cluster {
            conversion,
            caches,
            access,
            pki: config.pki.clone(),
            clock: config.clock.clone(),
            uids: config.uids.clone(),
            machine: config.machine.clone(),
            advertise: config.advertise,
            network: config.network.clone(),
            node_ports: config.node_ports.clone(),
            load_balancer_pool: config.load_balancer_pool.clone(),
            host_ports: HostPortPool::new(config.host_ports.clone()),
            namespace_locks: NamespaceLocks::default(),
            node_room: NodeRoom::default(),
            ranges,
            webhooks: Webhooks::new(clients, &metrics),
            policies: Policies::new(&metrics),
            measures: corten_admission::Measures::new(
                &metrics,
                corten_admission::PLUGINS.iter().map(|it| it.plugin.name()),
            ),
        };
        // What makes uids is random in the world, and foretold in the simulator.
        let seed = corten_meta::stable_hash((config.uids)().as_bytes());
        Self(Arc::new(StateInner {
            room: Budget::new(config.limits),
            fairness: Arc::new(Fairness::new(config.limits.seats, seed, metrics.registry())),
            metrics,
            usages: Usages::default(),
            remote_journals: RemoteJournals::default(),
            tunnels: Tunnels::default(),
            started: (config.clock)(),
            config,
            cluster,
            leaving: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
            served: ArcSwap::default(),
            served_changed: watch::Sender::new(()),
            aggregator: Arc::new(aggregator),
            refused_definitions: RefusedDefinitions::default(),
            feed: feeding.feed,
            fed: Mutex::new(Some(feeding.task)),
            lag: Mutex::default(),
        }))
    }

    pub fn now(&self) -> Time {
        self.0.cluster.now()
    }

    pub fn new_uid(&self) -> String {
        self.0.cluster.new_uid()
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The newest state of every resource.
    pub fn caches(&self) -> &Arc<Caches> {
        &self.0.cluster.caches
    }

    /// Which kinds are served now.
    pub(crate) fn served(&self) -> Arc<Documents> {
        self.0.served.load_full()
    }

    pub(crate) fn serve_kinds(&self, kinds: Kinds) {
        let kinds = Arc::new(kinds);
        self.0.served.rcu(|before| Arc::new(Documents::of(kinds.clone(), before.aggregated().clone(), before)));
        self.0.served_changed.send_replace(());
    }

    /// These groups and versions are served by others.
    pub(crate) fn serve_aggregated(&self, aggregated: Aggregated) {
        let aggregated = Arc::new(aggregated);
        self.0.served.rcu(|before| Arc::new(Documents::of(before.kinds().clone(), aggregated.clone(), before)));
        self.0.served_changed.send_replace(());
    }

    pub(crate) fn changes_of_served(&self) -> watch::Receiver<()> {
        self.0.served_changed.subscribe()
    }

    pub(crate) fn aggregator(&self) -> &Arc<Aggregator> {
        &self.0.aggregator
    }

    /// Definitions of custom resources that do not get on.
    pub(crate) fn refused_definitions(&self) -> &RefusedDefinitions {
        &self.0.refused_definitions
    }

    /// The newest state of a built-in kind.
    pub fn cache(&self, kind: &Kind) -> &ResourceCache {
        self.0.cluster.cache(kind)
    }

    /// What admission sees.
    pub fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    /// Who makes custom resources of one version out of those of another.
    pub(crate) fn conversion(&self) -> &Conversion {
        &self.0.cluster.conversion
    }

    /// Who asks, and whether they may.
    pub fn access(&self) -> &Arc<Access> {
        &self.0.cluster.access
    }

    /// Takes into the caches what the store has for them, so that nobody need be woken for it.
    pub(crate) fn help_caches(&self) {
        self.0.feed.help(self.caches());
    }

    /// What nodes in other processes say of their loops.
    pub(crate) fn remote_journals(&self) -> &RemoteJournals {
        &self.0.remote_journals
    }

    /// What nodes and pods use.
    pub(crate) fn usages(&self) -> &Usages {
        &self.0.usages
    }

    /// Connections that have left HTTP.
    pub(crate) fn tunnels(&self) -> &Tunnels {
        &self.0.tunnels
    }

    /// Tells what goes on that rights may have ended.
    pub(crate) fn rights_changed(&self) -> &Arc<RightsChanged> {
        self.access().rights_changed()
    }

    pub(crate) fn room(&self) -> &Budget {
        &self.0.room
    }

    /// Whose request is answered next.
    pub(crate) fn fairness(&self) -> &Arc<Fairness> {
        &self.0.fairness
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn started(&self) -> Time {
        self.0.started
    }

    /// From now on `readyz` fails, so that nobody is led here any more; all else goes on.
    pub fn announce_stop(&self) {
        self.0.leaving.send_replace(true);
    }

    /// From now on `readyz` fails and watches end; what was asked before is still answered.
    pub(crate) fn begin_stop(&self) {
        self.0.stopping.send_replace(true);
        self.caches().wake_watchers();
    }

    /// Are the caches kept up?
    pub(crate) fn is_fed(&self) -> bool {
        self.0.fed.lock().as_ref().is_some_and(|it| !it.is_finished())
    }

    pub(crate) fn note_lag(&self, lag: Option<String>) {
        *self.0.lag.lock() = lag;
    }

    /// Why the caches are behind a shared store; `None` where they are not.
    pub(crate) fn lag(&self) -> Option<String> {
        self.0.lag.lock().clone()
    }

    /// The task that keeps the caches up, for who ends it.
    pub(crate) fn take_fed(&self) -> Option<JoinHandle<()>> {
        self.0.fed.lock().take()
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }

    /// Is it about to stop, or does it?
    pub(crate) fn is_leaving(&self) -> bool {
        *self.0.leaving.borrow() || self.is_stopping()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }
}
