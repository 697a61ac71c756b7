//! etcd's API over the embedded store (`corten etcd`), beside the etcd that Debian packages, where `cargo xtask etcd --fetch` has
//! fetched it: both on one disk, by turns, with TLS, asked by the client that `corten server --etcd-servers` has.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use corten_etcd::EtcdStore;
use corten_store::{Operation, Range, Store, Txn};
use corten_testbed::{Data, Launcher, etcd_programs};
use futures_util::future::join_all;

use super::{
    super::{
        load::middle,
        report::{Row, Unit},
    },
    etcd_server::EtcdServer,
};

const VALUE_BYTES: usize = 1_024;
const CLIENTS: [usize; 2] = [1, 64];
/// Those that a range finds, and what their names begin with.
const RANGES: [(usize, &str); 2] = [(100, "/registry/ranges/000"), (10_000, "/registry/ranges/")];
/// Of which the middle one is told: what else the machine does meanwhile falls on both alike.
const TURNS: usize = 3;

#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) time: Duration,
    pub(super) watchers: usize,
    pub(super) watched_writes: usize,
}

/// What was measured of one of the two in one turn, in the order of [`NAMES`].
type Figures = [f64; 5];

const NAMES: [(&str, Unit); 5] = [
    ("etcd's API: puts of 1 KiB, 1 client", Unit::PerSecond),
    ("etcd's API: puts of 1 KiB, 64 clients", Unit::PerSecond),
    ("etcd's API: ranges of 100 keys of 1 KiB, 1 client", Unit::PerSecond),
    ("etcd's API: ranges of 10,000 keys of 1 KiB, 1 client", Unit::PerSecond),
    ("etcd's API: a put until all watchers are told", Unit::Milliseconds),
];

pub(super) async fn measure(launcher: &Launcher, load: Load, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let own = EtcdServer::corten(launcher.program(), data.path())?;
    fill(&own).await.context("filling corten etcd")?;
    // It shows and trusts the same certificates, which are there now.
    let other = match etcd_programs()? {
        Some(programs) => {
            let other = EtcdServer::etcd(&programs, data.path(), own.files())?;
            fill(&other).await.context("filling etcd")?;
            Some(other)
        }
        None => None,
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        ours.push(figures(&own, turn, load).await.context("measuring corten etcd")?);
        if let Some(other) = &other {
            theirs.push(figures(other, turn, load).await.context("measuring etcd")?);
        }
    }
    for (at, (name, unit)) in NAMES.into_iter().enumerate() {
        let of =
            if at == NAMES.len() - 1 { format!("{} watchers of one prefix; ", load.watchers) } else { String::new() };
        let row = Row::new(name, middle(ours.iter().map(|it| it[at])), unit);
        rows.push(match theirs.is_empty() {
            false => {
                let note = format!("{of}median of {TURNS} turns with etcd on the same disk");
                row.note(note).kubernetes(middle(theirs.iter().map(|it| it[at])))
            }
            true => row.note(format!("{of}median of {TURNS}; `cargo xtask etcd --fetch` puts etcd beside it")),
        });
    }
    Ok(())
}

async fn figures(server: &EtcdServer, turn: usize, load: Load) -> Result<Figures> {
    let mut figures = [0.0; NAMES.len()];
    for (figure, n_clients) in figures.iter_mut().zip(CLIENTS) {
        *figure = puts_per_second(server, n_clients, load.time).await?;
    }
    for (figure, range) in figures[CLIENTS.len()..].iter_mut().zip(RANGES) {
        *figure = ranges_per_second(server, range, load.time).await?;
    }
    figures[NAMES.len() - 1] = told_in(server, turn, load).await?;
    Ok(figures)
}

/// Puts what ranges find.
async fn fill(server: &EtcdServer) -> Result<()> {
    let (n_clients, n_keys) = (CLIENTS[1], RANGES[1].0);
    let connected = join_all((0..n_clients).map(|_| server.connect())).await;
    let stores = connected.into_iter().collect::<Result<Vec<_>>>()?;
    let writing = stores.iter().enumerate().map(async |(client, store)| {
        for n in (client..n_keys).step_by(n_clients) {
            put(store, format!("{}{n:05}", RANGES[1].1)).await?;
        }
        Ok::<_, anyhow::Error>(())
    });
    join_all(writing).await.into_iter().collect()
}

async fn put(store: &EtcdStore, key: String) -> Result<u64> {
    let operations = vec![Operation::Put { key: key.into(), value: vec![b'x'; VALUE_BYTES].into() }];
    store.commit(Txn { compares: Vec::new(), operations }).await?;
    Ok(store.revision())
}

async fn puts_per_second(server: &EtcdServer, n_clients: usize, time: Duration) -> Result<f64> {
    let connected = join_all((0..n_clients).map(|_| server.connect())).await;
    let stores = connected.into_iter().collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    let writing = stores.iter().enumerate().map(async |(client, store)| {
        let mut n = 0_u64;
        while begun.elapsed() < time {
            put(store, format!("/registry/puts/{client}/{}", n % 1_000)).await?;
            n += 1;
        }
        Ok::<_, anyhow::Error>(n)
    });
    let written = join_all(writing).await.into_iter().sum::<Result<u64>>()?;
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

async fn ranges_per_second(
    server: &EtcdServer,
    (n_keys, prefix): (usize, &'static str),
    time: Duration,
) -> Result<f64> {
    let store = server.connect().await?;
    let (begun, mut n) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        let page = store.range(Range::prefix(prefix), None, n_keys).await?;
        anyhow::ensure!(page.entries.len() == n_keys, "a range is not whole");
        n += 1;
    }
    Ok(n as f64 / begun.elapsed().as_secs_f64())
}

/// Milliseconds, the middle of several puts.
async fn told_in(server: &EtcdServer, turn: usize, load: Load) -> Result<f64> {
    let store = server.connect().await?;
    let after = store.newest().await?;
    let range = || Range::prefix("/registry/watched/");
    let begun = join_all((0..load.watchers).map(|_| store.watch(range(), after))).await;
    let mut watches = begun.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut times = Vec::new();
    for n in 0..load.watched_writes {
        let begun = Instant::now();
        put(&store, format!("/registry/watched/{turn}-{n}")).await?;
        for told in join_all(watches.iter_mut().map(|it| it.next())).await {
            told?;
        }
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}
