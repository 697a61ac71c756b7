//! What one client that takes all it can get costs another that asks for little: priority and fairness, measured. They are two
//! programs: each has a thread of its own, so that neither waits for what the other reads.
//!
//! The greedy one would be on another machine. Here it shares the cores with the server and the other client, so its thread runs where nobody
//! else wants to: what the other waits for is the server.

use std::{process::Command, thread};

use anyhow::{Context, Result, bail};
use corten_testbed::{Connection, ControlPlane, Data, Launcher, ServerAddress};
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    super::{
        load::{self, Load, millis, quantile},
        objects::{self, CONFIG_MAPS},
        report::{Row, Unit},
    },
    Scale,
};

/// Of the greedy one.
const CONNECTIONS: usize = 128;
/// That the greedy one lists again and again.
const OBJECTS: usize = 1_000;
const ONE: &str = "/api/v1/namespaces/default/configmaps/quiet";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
/// They are measured in turns, so that what a minute of the machine does to one it does to the other.
const TURNS: usize = 3;

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connection = server.connect().await?;
    // Rights by a role: whoever is of system:masters is exempt, and waits for nobody.
    let user = |name| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "bench" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit" },
        "subjects": [user("quiet"), user("greedy")],
    });
    connection.create(BINDINGS, binding.to_string().into()).await?;
    connection.create(CONFIG_MAPS, objects::config_map("quiet")).await?;
    let listed = |idx: usize| objects::config_map(&format!("listed-{idx}"));
    load::create(server.connect_many(16).await?, OBJECTS, CONFIG_MAPS, listed).await?;

    let (mut alone, mut beside, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.push(of_the_quiet(&server, scale).await?);
        let (began, has_begun) = oneshot::channel();
        let greedy = begin_greedy(server.target().clone(), scale, began);
        // Where it does not begin, it says why.
        let quiet = match has_begun.await {
            Ok(()) => of_the_quiet(&server, scale).await,
            Err(_) => Ok(Load::default()),
        };
        others.push(tokio::task::spawn_blocking(move || greedy.join()).await?.expect("it does not panic")?.per_second);
        beside.push(quiet?);
    }
    let (alone, beside) = (median(&alone), median(&beside));
    others.sort_by(f64::total_cmp);
    let note = format!(
        "p99 {} ms; alone {} ms, p99 {} ms; the other, a thread of the machine's lowest priority, lists {OBJECTS} ConfigMaps {:.0} times a second; median of {TURNS} turns",
        millis(beside[1]),
        millis(alone[0]),
        millis(alone[1]),
        others[TURNS / 2]
    );
    let what = format!("get a ConfigMap, while another user lists over {CONNECTIONS} connections");
    rows.push(Row::new(what, beside[0].as_secs_f64() * 1e3, Unit::Milliseconds).note(note));
    server.stop()
}

/// Lists without pause, and says when it does.
fn begin_greedy(server: ServerAddress, scale: Scale, began: oneshot::Sender<()>) -> thread::JoinHandle<Result<Load>> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("starting the greedy client")?.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                connections.push(Connection::open(&server).await?);
            }
            make_idle()?;
            let _is_awaited = began.send(());
            let lists = |mut connection: Connection, _, _| async move {
                connection.drain(CONFIG_MAPS).await?;
                Ok(connection)
            };
            load::for_a_time(as_user(connections, "greedy"), scale.time, lists).await
        })
    })
}

/// From now on this thread runs where a core has nothing else to do (`SCHED_IDLE`), and is interrupted at once where it has.
fn make_idle() -> Result<()> {
    let thread = rustix::thread::gettid().to_string();
    let status = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status().context("running chrt")?;
    if !status.success() {
        bail!("chrt ended with {status}");
    }
    Ok(())
}

/// Latencies of one who asks for one object after the other.
async fn of_the_quiet(server: &ControlPlane, scale: Scale) -> Result<Load> {
    let address = server.target().clone();
    let quiet = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("starting the quiet client")?.block_on(gets(&address, scale))
    });
    quiet.await?
}

async fn gets(server: &ServerAddress, scale: Scale) -> Result<Load> {
    let get = |mut connection: Connection, _, _| async move {
        connection.get(ONE).await?;
        Ok(connection)
    };
    load::for_a_time(as_user(vec![Connection::open(server).await?], "quiet"), scale.time, get).await
}

fn as_user(mut connections: Vec<Connection>, user: &'static str) -> Vec<Connection> {
    connections.iter_mut().for_each(|it| it.act_as(user));
    connections
}

/// The middle one's median and 99th percentile.
fn median(turns: &[Load]) -> [std::time::Duration; 2] {
    let mut all: Vec<_> = turns.iter().map(|it| [0.5, 0.99].map(|q| quantile(it.latencies(), q))).collect();
    all.sort();
    all[all.len() / 2]
}
