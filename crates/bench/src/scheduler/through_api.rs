//! SchedulingBasic through the API of a server, with durable writes: from before the first create until a watcher has seen the last
//! Pod on its node.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_meta::Time;
use corten_testbed::{Connection, ControlPlane, Data, Launcher, expect, text_field};
use http_body_util::BodyExt;
use hyper::{Method, StatusCode, body::Incoming};
use serde_json::json;
use tokio::time::timeout;

use super::{
    super::{
        load,
        objects::PODS,
        report::{Row, Unit},
    },
    templates::{self, Template},
};

const NODES: &str = "/api/v1/nodes";
const TAINTED: &str = "\"taints\":";
const CONNECTIONS: usize = 64;
/// A Pod must be on its node after so long.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Nobody sends a second heartbeat of these nodes: the one that they have is ahead by less than what a node may be silent for.
const HEARTBEAT_AHEAD: Duration = Duration::from_secs(45);

/// Nodes, Pods that are there before, and Pods that are counted.
const RUNS: [(usize, usize, usize); 4] =
    [(100, 100, 3_000), (1_000, 1_000, 10_000), (5_000, 1_000, 10_000), (5_000, 5_000, 50_000)];
const NODES_OF_MANY: usize = 5_000;
const MANY_PODS: usize = 200_000;

pub(super) async fn measure(launcher: &Launcher, divisor: usize, rows: &mut Vec<Row>) -> Result<()> {
    for (n_nodes, n_before, n_pods) in RUNS.map(|it| (it.0 / divisor, it.1 / divisor, it.2 / divisor)) {
        rows.push(basic(launcher, n_nodes, n_before, n_pods).await?);
    }
    Ok(())
}

async fn basic(launcher: &Launcher, n_nodes: usize, n_before: usize, n_pods: usize) -> Result<Row> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    prepare(&server, n_nodes).await?;
    schedule(&server, "before", n_before).await?;
    let cpu = server.cpu()?;
    let took = schedule(&server, "counted", n_pods).await?.as_secs_f64();
    let each = (server.cpu()? - cpu).as_secs_f64() * 1e6 / n_pods as f64;
    server.stop()?;
    let what = format!("Pods created, bound, and seen so by a watcher, SchedulingBasic/{n_nodes}Nodes_{n_pods}Pods");
    let note = format!("{CONNECTIONS} connections, {each:.0} µs of the server's processor time each");
    Ok(Row::new(what, n_pods as f64 / took, Unit::PerSecond).note(note))
}

/// What the server has in memory when there are as many Pods as a cluster may have.
pub(super) async fn memory(launcher: &Launcher, divisor: usize) -> Result<Row> {
    let (n_nodes, n_pods) = (NODES_OF_MANY / divisor, MANY_PODS / divisor);
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    prepare(&server, n_nodes).await?;
    let took = schedule(&server, "many", n_pods).await?.as_secs_f64();
    let memory = server.memory()? as f64 / 1e6;
    server.stop()?;
    let note = format!("resident; {:.0} of them a second were created and bound", n_pods as f64 / took);
    Ok(Row::new(format!("memory, {n_pods} Pods on {n_nodes} nodes"), memory, Unit::Megabytes).note(note))
}

/// Creates the nodes, and waits until a Pod may be created, and may run on each of them.
async fn prepare(server: &ControlPlane, n_nodes: usize) -> Result<()> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)? + HEARTBEAT_AHEAD;
    let heard = Time::from_unix_seconds(i64::try_from(since_epoch.as_secs())?);
    let node = move |idx: usize| {
        let mut node = templates::node(&format!("node-{idx:05}"), "", 110);
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(heard);
        Bytes::from(node.to_string())
    };
    load::create(server.connect_many(16).await?, n_nodes, NODES, node).await?;
    let mut connection = server.connect().await?;
    let start = Instant::now();
    while String::from_utf8_lossy(&connection.get(NODES).await?).contains(TAINTED) {
        if start.elapsed() > PATIENCE {
            bail!("some of {n_nodes} nodes have taints after {PATIENCE:?}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    wait_for_service_account(&mut connection).await
}

/// Right after the start the service account that Pods run as may not be there yet.
async fn wait_for_service_account(connection: &mut Connection) -> Result<()> {
    let start = Instant::now();
    loop {
        let (status, answer) = connection.send(Method::POST, &format!("{PODS}?dryRun=All"), pod("first", 0)).await?;
        if status != StatusCode::FORBIDDEN || start.elapsed() > PATIENCE {
            return expect(status, StatusCode::CREATED, PODS, &answer);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn pod(name: &str, idx: usize) -> Bytes {
    Template::Default.pod("default", &format!("{name}-{idx:06}"), idx).to_string().into()
}

/// Creates so many Pods and answers how long it took until a watcher had seen them all on their nodes.
async fn schedule(server: &ControlPlane, name: &'static str, n_pods: usize) -> Result<Duration> {
    let mut watcher = server.connect().await?;
    let list = watcher.get(&format!("{PODS}?limit=1")).await?;
    let revision = text_field(&list, "resourceVersion")?;
    // A Pod comes into such a watch when it is bound.
    let path = format!("{PODS}?watch=true&fieldSelector=spec.nodeName%21%3D&resourceVersion={revision}");
    let (status, body) = watcher.begin(Method::GET, &path, Bytes::new()).await?;
    expect(status, StatusCode::OK, &path, b"")?;
    let watching = tokio::spawn(async move {
        let seen = see(body, n_pods).await;
        // The watch ends with its connection.
        drop(watcher);
        seen
    });
    let begin = Instant::now();
    load::create(server.connect_many(CONNECTIONS).await?, n_pods, PODS, move |idx| pod(name, idx)).await?;
    watching.await?.with_context(|| format!("watching {n_pods} Pods come to their nodes"))?;
    Ok(begin.elapsed())
}

/// Reads a watch until so many objects were added.
async fn see(mut body: Incoming, n_awaited: usize) -> Result<()> {
    const ADDED: &[u8] = b"{\"type\":\"ADDED\"";
    let (mut n_seen, mut line) = (0, Vec::<u8>::new());
    while n_seen < n_awaited {
        let frame =
            timeout(PATIENCE, body.frame()).await.with_context(|| format!("{n_seen} were seen, and no more"))?;
        let Some(frame) = frame else { bail!("the watch ended after {n_seen}") };
        let Ok(data) = frame?.into_data() else { continue };
        // Of each line its begin is kept: that says what has happened.
        for (idx, part) in data.split(|it| *it == b'\n').enumerate() {
            if idx > 0 {
                line.clear();
            }
            let had = line.len();
            line.extend(part.iter().take(ADDED.len().saturating_sub(had)));
            n_seen += usize::from(had < ADDED.len() && line == ADDED);
        }
    }
    Ok(())
}
