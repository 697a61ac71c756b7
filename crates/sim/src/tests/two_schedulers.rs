//! Two schedulers that place the same Pods, each as far behind as its line makes it: no node is overcommitted, every Pod is placed in
//! the end, and who was too late has counted it.

use std::{collections::BTreeMap, sync::Arc};

use corten_access::Identity;
use corten_api::resources::{NODES, PODS, SERVICE_ACCOUNTS};
use corten_apiserver::Server;
use corten_client::{Client, ListParams, PatchType};
use corten_meta::{Resource, Time};
use corten_runner::{Clock, JournalBook, run_scheduler};
use corten_scheduler::Scheduler;
use corten_store::memory::Memory;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::*;
use crate::{
    ground::{EPOCH_SECONDS, server_config},
    line::{Line, Switch, Weather},
    seeded_rng::SeededRng,
};

/// Together they have room for exactly as many Pods as there are.
const N_NODES: usize = 25;
const PODS_OF_NODE: usize = 20;
const N_PODS: usize = N_NODES * PODS_OF_NODE;
const POD_CPU_MILLIS: usize = 100;

#[test]
fn two_schedulers_lose_nothing_and_overcommit_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(race(0x0e6a)).expect("all goes well");
}

/// What the schedulers and those who look have in common.
struct Place {
    seed: u64,
    server: Switch,
    weather: Arc<Weather>,
}

impl Place {
    fn line(&self, who: Identity, name: &str) -> Client {
        let is_calm = name == "admin";
        let dice = SeededRng::of(self.seed, name);
        let line = Line {
            server: self.server.clone(),
            who,
            weather: self.weather.clone(),
            dice,
            is_calm,
            process: None,
            term: None,
        };
        line.client().with_deadline(Duration::from_secs(8))
    }
}

async fn race(seed: u64) -> Result<(), String> {
    let start = Instant::now();
    let clock: Clock = Arc::new(move || Time::from_unix_seconds(EPOCH_SECONDS).after(start.elapsed()));
    let journal = Arc::new(JournalBook::default());
    let config = server_config(Arc::new(Memory::new()), &clock, SeededRng::of(seed, "uids"), &journal);
    let server = Server::start(config).await.map_err(|it| it.to_string())?;
    let place = Place { seed, server: Switch::default(), weather: Arc::default() };
    *place.server.lock() = Some(server.clone());
    let admin = place.line(Identity::new("admin", &["system:masters", "system:authenticated"]), "admin");
    furnish(&admin).await?;

    let mut schedulers = JoinSet::new();
    for (at, name) in ["one", "another"].into_iter().enumerate() {
        let client = place.line(Identity::new("system:kube-scheduler", &["system:authenticated"]), name);
        // Of nodes that are equally good each chooses its own.
        let config = corten_scheduler::Config { seed: seed + at as u64, ..corten_scheduler::Config::default() };
        let never = std::future::pending();
        schedulers.spawn(run_scheduler(Scheduler::new(config), client, clock.clone(), journal.clone(), never));
    }
    // Both have seen the nodes before there is anything to place.
    tokio::time::sleep(Duration::from_secs(30)).await;
    place.weather.is_bad.store(true, Ordering::Relaxed);
    make_pods(&admin).await?;
    let mut n_placed = 0;
    while n_placed < N_PODS {
        if start.elapsed() > PATIENCE {
            return Err(format!("only {n_placed} of {N_PODS} pods were placed"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        if n_placed > N_PODS / 2 {
            place.weather.is_bad.store(false, Ordering::Relaxed);
        }
        let by_node = pods_by_node(&admin).await?;
        if let Some((node, n_pods)) = by_node.iter().find(|it| *it.1 > PODS_OF_NODE) {
            return Err(format!("{node} has room for {PODS_OF_NODE} pods, and has {n_pods}"));
        }
        n_placed = by_node.values().sum();
    }
    let counted = journal.counted();
    let conflicts = counted.iter().find(|it| it.metric.name == "corten_scheduler_binding_conflicts_total");
    let conflicts: Vec<_> = conflicts.into_iter().flat_map(|it| &it.rows).map(|it| (&it.0, it.1.n)).collect();
    if conflicts.is_empty() || conflicts.iter().any(|it| it.1 == 0) {
        return Err(format!("conflicts are not counted: {conflicts:?}"));
    }
    schedulers.shutdown().await;
    server.stop().await;
    Ok(())
}

/// Nodes that nobody takes for silent.
async fn furnish(admin: &Client) -> Result<(), String> {
    make(admin, SERVICE_ACCOUNTS, "default", "default", json!({})).await?;
    for at in 0..N_NODES {
        let key = Key::cluster(format!("n{at}"));
        make(admin, NODES, "", &key.name, json!({})).await?;
        let cpu = format!("{}m", PODS_OF_NODE * POD_CPU_MILLIS);
        let allocatable = json!({ "cpu": cpu, "memory": "64Gi", "pods": "110" });
        let status = json!({ "status": { "capacity": allocatable, "allocatable": allocatable } });
        for (part, patch) in [("status", status), ("", json!({ "spec": { "taints": null } }))] {
            let patched = admin.patch(&NODES, &key, part, &PatchType::Merge, &patch).await;
            patched.map_err(|it| format!("cannot change {key}: {it}"))?;
        }
    }
    Ok(())
}

async fn make_pods(admin: &Client) -> Result<(), String> {
    for at in 0..N_PODS {
        let requests = json!({ "cpu": format!("{POD_CPU_MILLIS}m") });
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": requests } });
        make(admin, PODS, "default", &format!("p{at}"), json!({ "spec": { "containers": [container] } })).await?;
    }
    Ok(())
}

async fn make(
    admin: &Client,
    resource: Resource,
    namespace: &str,
    name: &str,
    mut object: Value,
) -> Result<(), String> {
    object["metadata"]["name"] = name.into();
    let made = admin.create(&resource, namespace, &object).await;
    made.map(drop).map_err(|it| format!("cannot create {name}: {it}"))
}

async fn pods_by_node(admin: &Client) -> Result<BTreeMap<String, usize>, String> {
    let pods: Vec<Value> = admin.list_as(&PODS, &ListParams::default()).await.map_err(|it| it.to_string())?;
    let mut by_node = BTreeMap::new();
    for pod in &pods {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            *by_node.entry(node.to_owned()).or_default() += 1;
        }
    }
    Ok(by_node)
}
