//! Corten on an etcd, beside kube-apiserver on the same etcd: creates, and reads, which Corten also answers from its embedded store
//! here; and the etcd by itself. All run at once, and are asked by turns.
//!
//! kube-apiserver is the one that `cargo xtask upstream` builds from what Debian packages: v1.20.

mod certificates;
mod servers;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use corten_store::{Compare, Operation, Range, Store, Txn};
use corten_testbed::{Connection, Data, Launcher, etcd_programs, root};
use futures_util::future::join_all;

use self::{certificates::Certificates, servers::Server};
use super::{
    super::{
        load::{self, connections, middle, wait_for_admission},
        objects::{self, CONFIG_MAPS, PODS},
        report::{Row, Unit},
    },
    etcd_server::EtcdServer,
};

/// Of which the middle one is told: what else the machine does meanwhile falls on all alike.
const TURNS: usize = 5;
const LISTS: usize = 7;
const CONNECTIONS: [usize; 2] = [1, 64];
const PREFIX: &str = "/corten";
const UPSTREAM_PREFIX: &str = "/upstream";

#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) time: Duration,
    /// Pods that are listed: few, and many.
    pub(super) listed: [usize; 2],
}

/// What is asked of each server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Get { connections: usize },
    List { n: usize },
    Create { kind: Kind, connections: usize },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ConfigMaps,
    Pods,
}

impl Kind {
    const BOTH: [Self; 2] = [Self::ConfigMaps, Self::Pods];

    fn parts(self) -> (&'static str, &'static str, fn(&str) -> Bytes) {
        match self {
            Self::ConfigMaps => ("ConfigMaps", CONFIG_MAPS, objects::config_map),
            Self::Pods => ("Pods", PODS, objects::pod),
        }
    }

    /// Where the objects are in etcd.
    fn keys(self) -> &'static str {
        match self {
            Self::ConfigMaps => "/registry/configmaps/default/",
            Self::Pods => "/registry/pods/default/",
        }
    }
}

impl Task {
    fn name(self) -> String {
        match self {
            Self::Get { connections: n } => format!("on etcd: get a Pod, {}", connections(n)),
            Self::List { n } => format!("on etcd: list {n} Pods"),
            Self::Create { kind, connections: n } => format!("on etcd: create {}, {}", kind.parts().0, connections(n)),
        }
    }

    fn unit(self) -> Unit {
        if matches!(self, Self::List { .. }) { Unit::Milliseconds } else { Unit::PerSecond }
    }
}

/// What a server came to in one turn, and what each answer cost in microseconds of the processor.
#[derive(Clone, Copy)]
struct Figure {
    value: f64,
    of_server: f64,
    of_etcd: f64,
}

/// By the server's name and the task.
type Figures = BTreeMap<(&'static str, Task), Vec<Figure>>;

pub(super) async fn measure(launcher: &Launcher, load: Load, rows: &mut Vec<Row>) -> Result<()> {
    let Some(programs) = etcd_programs()? else {
        eprintln!("skipped: there is no etcd in target/etcd: `cargo xtask etcd --fetch` fetches it");
        return Ok(());
    };
    let data = Data::new()?;
    let certificates = Certificates::new(data.path().join("certificates"))?;
    let etcd = EtcdServer::etcd(&programs, data.path(), &certificates.of_etcd()?)?;
    // Whoever is started before it answers gives up.
    etcd.connect().await.context("waiting for etcd")?;
    let ours = Server::corten("on-etcd", launcher, Some((&etcd, PREFIX))).await?;
    let mut on_etcd = vec![ours];
    on_etcd.extend(upstream(&etcd, &certificates).await?);
    let embedded = Server::corten("embedded", launcher, None).await?;
    let mut figures = Figures::new();

    let all: Vec<&Server> = on_etcd.iter().chain([&embedded]).collect();
    for server in &all {
        wait_for_admission(&server.plane).await.with_context(|| format!("creating a Pod at {}", server.name))?;
    }
    let [few, many] = load.listed;
    fill(&all, 1..few).await?;
    let reads = CONNECTIONS.map(|it| Task::Get { connections: it }).into_iter().chain([Task::List { n: few }]);
    by_turns(&etcd, &all, &reads.collect::<Vec<_>>(), load.time, &mut figures).await?;
    fill(&all, few..many).await?;
    by_turns(&etcd, &all, &[Task::List { n: many }], load.time, &mut figures).await?;

    let creates = CONNECTIONS.map(|it| Kind::BOTH.map(|kind| Task::Create { kind, connections: it })).concat();
    let all: Vec<&Server> = on_etcd.iter().collect();
    by_turns(&etcd, &all, &creates, load.time, &mut figures).await?;
    rows.extend(figures.keys().filter(|it| it.0 == on_etcd[0].name).map(|it| row(&figures, it.1)));
    for kind in Kind::BOTH {
        rows.push(by_itself(&etcd, kind, &figures, load.time).await.context("measuring etcd by itself")?);
    }
    Ok(())
}

async fn upstream(etcd: &EtcdServer, certificates: &Certificates) -> Result<Option<Server>> {
    let program = root()?.join("target/upstream/kube-apiserver");
    if !program.exists() {
        eprintln!("skipped: kube-apiserver is not in target/upstream: `cargo xtask upstream` builds it");
        return Ok(None);
    }
    Server::upstream(&program, (etcd, UPSTREAM_PREFIX), certificates).await.map(Some)
}

async fn by_turns(
    etcd: &EtcdServer,
    servers: &[&Server],
    tasks: &[Task],
    time: Duration,
    figures: &mut Figures,
) -> Result<()> {
    for turn in 0..TURNS {
        for task in tasks {
            // Who comes first has what the one before it left behind: by turns, too.
            for at in 0..servers.len() {
                let server = servers[(at + turn) % servers.len()];
                let figure = figure(etcd, server, *task, turn, time).await;
                let figure = figure.with_context(|| format!("asking {}: {}", server.name, task.name()))?;
                figures.entry((server.name, *task)).or_default().push(figure);
            }
        }
    }
    Ok(())
}

async fn figure(etcd: &EtcdServer, server: &Server, task: Task, turn: usize, time: Duration) -> Result<Figure> {
    let before = (server.plane.cpu()?, etcd.cpu()?);
    let (value, n) = match task {
        Task::Get { connections } => gets(server, connections, time).await?,
        Task::List { n } => lists(server, n).await?,
        Task::Create { kind, connections } => creates(server, kind, connections, turn, time).await?,
    };
    let each = |used: Duration| used.as_secs_f64() * 1e6 / n as f64;
    Ok(Figure { value, of_server: each(server.plane.cpu()? - before.0), of_etcd: each(etcd.cpu()? - before.1) })
}

async fn gets(server: &Server, n_connections: usize, time: Duration) -> Result<(f64, usize)> {
    let get = |mut connection: Connection, _, _| async move {
        connection.get("/api/v1/namespaces/default/pods/first").await?;
        Ok(connection)
    };
    let load = load::for_a_time(server.plane.connect_many(n_connections).await?, time, get).await?;
    Ok((load.per_second, load.requests()))
}

async fn lists(server: &Server, n: usize) -> Result<(f64, usize)> {
    let mut connection = server.plane.connect().await?;
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let begun = Instant::now();
        let (length, _) = connection.drain(PODS).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(length > n * 1_600, "a list of {n} Pods has {length} bytes");
    }
    Ok((middle(times.into_iter()), LISTS))
}

async fn creates(
    server: &Server,
    kind: Kind,
    n_connections: usize,
    turn: usize,
    time: Duration,
) -> Result<(f64, usize)> {
    let (_, path, body) = kind.parts();
    let create = move |mut connection: Connection, idx: usize, repetition: usize| async move {
        connection.create(path, body(&format!("of-{n_connections}-{turn}-{idx}-{repetition}"))).await?;
        Ok(connection)
    };
    let load = load::for_a_time(server.plane.connect_many(n_connections).await?, time, create).await?;
    Ok((load.per_second, load.requests()))
}

async fn fill(servers: &[&Server], names: std::ops::Range<usize>) -> Result<()> {
    for server in servers {
        let first = names.start;
        let body = move |n: usize| objects::pod(&format!("listed-{}", first + n));
        let filled = load::create(server.plane.connect_many(16).await?, names.len(), PODS, body).await;
        filled.with_context(|| format!("filling {}", server.name))?;
    }
    Ok(())
}

/// The turn whose value is the middle one.
fn typical(turns: &[Figure]) -> Figure {
    let mut turns = turns.to_vec();
    turns.sort_by(|a, b| a.value.total_cmp(&b.value));
    turns[turns.len() / 2]
}

fn row(figures: &Figures, task: Task) -> Row {
    let of = |name: &'static str| figures.get(&(name, task)).map(|it| typical(it));
    let turns = figures.get(&("on-etcd", task)).map(Vec::as_slice).unwrap_or_default();
    let ours = typical(turns);
    let mut values: Vec<f64> = turns.iter().map(|it| it.value).collect();
    values.sort_by(f64::total_cmp);
    let cost =
        |it: Figure| format!("{:.0} µs of the server's processor time and {:.0} of etcd's", it.of_server, it.of_etcd);
    let mut note = format!(
        "median of {TURNS} turns, {} to {}; {} each",
        rounded(values[0]),
        rounded(values[values.len() - 1]),
        cost(ours)
    );
    let row = Row::new(task.name(), ours.value, task.unit());
    let row = match of("kube-apiserver") {
        Some(theirs) => {
            note += &format!(", with kube-apiserver v1.20 {}", cost(theirs));
            row.kubernetes(theirs.value)
        }
        None => row,
    };
    if let Some(embedded) = of("embedded") {
        let times = ours.value / embedded.value;
        note += &format!("; {times:.2} times what it is on the embedded store ({})", rounded(embedded.value));
    }
    row.note(note)
}

fn rounded(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// What etcd can do where nobody is between it and 64 clients, who put what Corten has put for the same objects.
async fn by_itself(etcd: &EtcdServer, kind: Kind, figures: &Figures, time: Duration) -> Result<Row> {
    let n_clients = CONNECTIONS[1];
    let of_corten = etcd.connect_below(PREFIX).await?.range(Range::prefix(kind.keys()), None, 1).await?;
    let value = of_corten.entries.into_iter().next().context("nothing of Corten's is in etcd")?.value;
    let connected = join_all((0..n_clients).map(|_| etcd.connect_below("/nobody"))).await;
    let stores = connected.into_iter().collect::<Result<Vec<_>>>()?;
    let mut turns = Vec::new();
    for turn in 0..TURNS {
        let (begun, cpu) = (Instant::now(), etcd.cpu()?);
        let (value, stores) = (&value, &stores);
        let writing = stores.iter().enumerate().map(async |(client, store)| {
            let mut n = 0_u64;
            while begun.elapsed() < time {
                let key = Bytes::from(format!("{}{turn}-{client}-{n}", kind.keys()));
                let operations = vec![Operation::Put { key: key.clone(), value: value.clone() }];
                store.commit(Txn { compares: vec![Compare { key, mod_revision: 0 }], operations }).await?;
                n += 1;
            }
            Ok::<_, anyhow::Error>(n)
        });
        let n = join_all(writing).await.into_iter().sum::<Result<u64>>()? as f64;
        let used = (etcd.cpu()? - cpu).as_secs_f64() * 1e6 / n;
        turns.push(Figure { value: n / begun.elapsed().as_secs_f64(), of_server: 0.0, of_etcd: used });
    }
    let figure = typical(&turns);
    let mut note = format!(
        "median of {TURNS}; what Corten stores of one, {} bytes; {:.0} µs of etcd's processor time each",
        value.len(),
        figure.of_etcd
    );
    for (name, shown) in [("on-etcd", "Corten"), ("kube-apiserver", "kube-apiserver")] {
        if let Some(it) = figures.get(&(name, Task::Create { kind, connections: n_clients })) {
            let share = typical(it).value / figure.value * 100.0;
            note += &format!("; creates through {shown} are {share:.0} % of them");
        }
    }
    let what = format!("etcd by itself: puts of {}, {n_clients} clients", kind.parts().0);
    Ok(Row::new(what, figure.value, Unit::PerSecond).note(note))
}
