//! A server over the memory store, with a clock that stands still and identifiers that count.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use corten_api::resources::{NODES, PODS, SECRETS};
use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    host_ports::HostPortRange,
};
use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Actor, Decision, Step, StepState, Wait};
use corten_store::backend::memory::Memory;

use corten_pki::Authority;

use crate::{Config, JournalSource, Limits, Server};

struct OneDecision;

impl JournalSource for OneDecision {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        if resource.plural == "pods" && key.name == "web.1" {
            return vec![decision()];
        }
        Vec::new()
    }

    fn waiting(&self, wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        let all =
            [(PODS, Key::new("default", "web.1")), (SECRETS, Key::new("default", "db")), (NODES, Key::cluster("n1"))];
        all.into_iter().filter(|(resource, key)| wanted(resource, key, &[decision()])).collect()
    }
}

/// One that names other objects.
fn decision() -> Decision {
    let on = |message: &str, kind: &str, name: &str| Wait::new("Waits", message, Actor::Cluster).on(kind, name);
    let step = Step {
        name: "container c".into(),
        state: StepState::Failed,
        started: None,
        finished: None,
        message: String::new(),
        log: vec!["the last words".into()],
        wait: Some(on("claim data is not bound", "PersistentVolumeClaim", "data")),
    };
    Decision {
        by: "scheduler".into(),
        effects: vec!["bind Pod default/web.1 to n1".into(), "delete Secret default/db".into(), "and 3 more".into()],
        waits: vec![
            on("1 secrets remain", "Secret", "db"),
            on("is led to service shop/web, which is older", "Service", "shop/web"),
            on("the nearest node is n1, which lacks the label disk=fast", "node", "n1"),
        ],
        steps: vec![step],
        error: Some("cannot patch Secret default/db {\"data\":null}: it was refused".into()),
        ..Decision::default()
    }
}

pub(crate) fn config() -> Config {
    over(Arc::new(Memory::new()))
}

pub(crate) fn over(store: Arc<Memory>) -> Config {
    let counter = AtomicU64::new(0);
    Config {
        store,
        clock: Arc::new(|| Time::from_unix_seconds(1_800_000_000)),
        uids: Arc::new(move || {
            let n = counter.fetch_add(1, Relaxed);
            format!("{:08x}-0000-4000-8000-{:012x}", n.wrapping_mul(0x9e37_79b1) & 0xffff_ffff, n)
        }),
        journals: Arc::new(OneDecision),
        pki: Arc::new(Authority::in_memory().expect("keys can be made")),
        audit: None,
        limits: Limits::default(),
        kubelet_dial: None,
        advertise: Some("192.0.2.10:6443".parse().expect("an address")),
        network: ClusterNetwork::default(),
        node_ports: NodePorts::default(),
        host_ports: HostPortRange::default(),
        name_servers: Default::default(),
        load_balancer_pool: Default::default(),
        is_network_settled: false,
        has_ipv6: false,
        encryption: None,
        webhook_dial: None,
        machine: corten_admission::Machine { host_name: "control.example.com".into(), node: Some("local".into()) },
        guard: crate::Guard {
            static_tokens: tokens(),
            log: Some(Arc::new(Directives::default())),
            ..crate::Guard::default()
        },
    }
}

/// Knows no directive `verbose`.
#[derive(Default)]
struct Directives(parking_lot::Mutex<String>);

impl crate::LogFilter for Directives {
    fn filter(&self) -> String {
        self.0.lock().clone()
    }

    fn set_filter(&self, directives: &str) -> Result<(), String> {
        if directives == "verbose" {
            return Err("no level: verbose".into());
        }
        directives.clone_into(&mut self.0.lock());
        Ok(())
    }
}

/// Who comes with `s3cret` is jane.
fn tokens() -> corten_access::tokens::StaticTokens {
    corten_access::tokens::StaticTokens::parse("s3cret,jane,u1,\"dev,ops\"").expect("a good file")
}

pub(crate) async fn started() -> Server {
    Server::start(config()).await.expect("a server over an empty store starts")
}
