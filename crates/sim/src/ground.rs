//! What all of a simulated cluster stands on: one clock, one store, the weather, and who looks on.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    host_ports::HostPortRange,
};
use corten_apiserver::{Config, JournalSource, Limits};
use corten_client::Client;
use corten_meta::{Key, Resource};
use corten_pki::Authority;
use corten_reconcile::Decision;
use corten_runner::{Clock, JournalBook};
use corten_store::{Store, memory::Memory};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    extender::{self, FlakyExtender},
    line::Weather,
    one_revision::Views,
    oracle::Oracle,
    seeded_rng::SeededRng,
};

/// 2026-01-01, when every simulation begins.
pub(crate) const EPOCH_SECONDS: i64 = 1_767_225_600;

#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) seed: u64,
    pub(crate) weather: Arc<Weather>,
    pub(crate) truth: Arc<Mutex<Oracle>>,
    pub(crate) start: Instant,
    pub(crate) store: Arc<Memory>,
    pub(crate) clock: Clock,
    pub(crate) uids: SeededRng,
    pub(crate) views: Views,
}

impl Ground {
    /// Of each request: below the longest that a line takes, so that deadlines are met with too.
    pub(crate) const DEADLINE: Duration = Duration::from_secs(8);

    /// In every third history an extender is asked about all Pods.
    pub(crate) fn has_extender(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    pub(crate) fn scheduler_config(&self) -> corten_scheduler::Config {
        let extenders = self
            .has_extender()
            .then(|| extender::configured(&SeededRng::of(self.seed, "the extender's configuration")));
        corten_scheduler::Config { seed: self.seed, extenders: extenders.into_iter().collect(), ..Default::default() }
    }

    pub(crate) fn extender(&self, dice: SeededRng, api: Client) -> FlakyExtender {
        FlakyExtender { weather: self.weather.clone(), dice, api }
    }
}

/// The loops' journals, as the API server wants them.
struct Journals(Arc<JournalBook>);

impl JournalSource for Journals {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        self.0.decisions(resource, key)
    }

    fn waiting(&self, wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        self.0.waiting(wanted)
    }
}

/// An API server beyond whose cluster there is nobody.
pub(crate) fn server_config(
    store: Arc<dyn Store>,
    clock: &Clock,
    uids: SeededRng,
    journal: &Arc<JournalBook>,
) -> Config {
    static PKI: OnceLock<Arc<Authority>> = OnceLock::new();
    let pki = PKI.get_or_init(|| Arc::new(Authority::in_memory().expect("keys can be made")));
    Config {
        store,
        clock: clock.clone(),
        uids: Arc::new(move || uids.uuid()),
        journals: Arc::new(Journals(journal.clone())),
        pki: pki.clone(),
        audit: None,
        limits: Limits::default(),
        kubelet_dial: None,
        advertise: None,
        network: ClusterNetwork::default(),
        node_ports: NodePorts::default(),
        host_ports: HostPortRange::default(),
        name_servers: Default::default(),
        load_balancer_pool: Default::default(),
        is_network_settled: false,
        has_ipv6: false,
        encryption: None,
        webhook_dial: Some(Arc::new(|_| Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) }))),
        machine: corten_admission::Machine::default(),
        guard: corten_apiserver::Guard::default(),
    }
}
