//! `cargo xtask histories`: three servers on three members of one etcd are killed and stopped while clients write and read, and what
//! the clients were answered is looked through for what no single, never failing server could have answered.
//!
//! ```text
//! round: clients and watchers at work ── a fault ── at work ── all is well again ── every server lists ── check
//! ```
//! Revisions say in which order etcd has written, so that the check is exact and needs no search: an answer is right where the order
//! of revisions does not contradict the order of the clock, every value was asked for, and none came twice (linearizability of each
//! object, as porcupine looks for it in histories without such a witness).

mod check;
mod client;
mod cluster;
mod faults;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{task::JoinSet, time::Instant};

use self::{
    check::{Checker, Operation},
    client::{Clients, list_once, work},
    cluster::{Cluster, NAMES},
    faults::Fault,
};
use crate::{
    crash::{CONFIG_MAPS, List, Watcher, begin},
    etcd,
    real::{Profile, program},
    tidy::root,
};

const CLIENTS: usize = 6;
/// The slowest rests this many milliseconds after each batch, the first not at all.
const WATCHERS: u64 = 3;
const REST_MS_STEP: u64 = 10;
/// Before the fault, and after it.
const WORK_MS: std::ops::Range<u64> = 200..900;
const PATIENCE: Duration = Duration::from_secs(60);
const CATCH_UP: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many faults are played
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Of what is asked for, and of the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Play with this program instead of building one
    #[arg(long, value_name = "PROGRAM")]
    corten: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let program = program(args.corten.as_deref(), Profile::Release)?;
    let Some(etcd) = etcd::fetched(&root()?) else {
        println!("skipped: there is no etcd in target/etcd: `cargo xtask etcd` fetches it");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime
        .block_on(async { rounds(Cluster::start(program, etcd.join("etcd")).await?, args).await })
        .with_context(|| format!("with --seed {}", args.seed))
}

async fn rounds(mut cluster: Cluster, args: &Args) -> Result<()> {
    let mut dice = StdRng::seed_from_u64(args.seed);
    begin(&mut cluster.connect(0).await?).await?;
    let start = Instant::now();
    let mut checker = Checker::default();
    checker.take(client::make_objects(&mut cluster.connect(0).await?, start).await?)?;
    let mut watchers = Vec::new();
    for number in 0..WATCHERS {
        let list = list_once(&mut cluster.connect(0).await?, start).await?.1;
        watchers.push(Watcher::tolerant(list, Duration::from_millis(number * REST_MS_STEP)));
    }
    for round in 1..=args.rounds {
        let fault = Fault::drawn(&mut dice);
        let played = play(&mut cluster, &fault, &watchers, start, &mut dice).await;
        let history = played.with_context(|| format!("round {round}: {fault}"))?;
        checker.take(history).with_context(|| format!("after round {round}: {fault}"))?;
        for watcher in &watchers {
            checker.check_seen(&watcher.seen()).with_context(|| format!("after round {round}: {fault}"))?;
        }
    }
    let relists: usize = watchers.iter().map(Watcher::n_relists).sum();
    println!("{} faults, {}; {WATCHERS} watchers told the truth, {relists} listed again", args.rounds, checker.tally());
    Ok(())
}

/// One round. Answers what was asked and answered.
async fn play(
    cluster: &mut Cluster,
    fault: &Fault,
    watchers: &[Watcher],
    start: Instant,
    dice: &mut StdRng,
) -> Result<Vec<Operation>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let (mut working, mut watching) = (JoinSet::new(), JoinSet::new());
    for number in 0..CLIENTS {
        let clients = Clients { servers: cluster.targets(), is_over: is_over.clone(), start };
        working.spawn(work(clients, number, StdRng::seed_from_u64(dice.random())));
    }
    for watcher in watchers {
        watching.spawn(client::watch(watcher.clone(), cluster.targets(), StdRng::seed_from_u64(dice.random())));
    }
    tokio::time::sleep(Duration::from_millis(dice.random_range(WORK_MS))).await;
    fault.play(cluster).await?;
    tokio::time::sleep(Duration::from_millis(dice.random_range(WORK_MS))).await;
    cluster.heal().await?;
    is_over.store(true, Ordering::Relaxed);
    let mut history = Vec::new();
    while let Some(ended) = working.join_next().await {
        history.extend(ended??);
    }
    while let Some(ended) = watching.try_join_next() {
        ended??;
    }
    watching.shutdown().await;
    for (server, name) in NAMES.iter().enumerate() {
        cluster.wait_until_ready(server, PATIENCE).await?;
        let (operation, list) = list_once(&mut cluster.connect(server).await?, start).await?;
        history.push(operation);
        if let Some(watcher) = watchers.get(server) {
            sees(cluster, server, watcher, &list).await.with_context(|| format!("a watcher of server {name}"))?;
        }
    }
    Ok(history)
}

/// What a server lists its watches tell, soon.
async fn sees(cluster: &Cluster, server: usize, watcher: &Watcher, list: &List) -> Result<()> {
    watcher.check_against(list)?;
    match tokio::time::timeout(CATCH_UP, catch_up(cluster, server, watcher, list)).await {
        Ok(caught_up) => caught_up,
        Err(_) => {
            let difference = watcher.difference(list);
            let cached = cached(cluster, server).await;
            let again = tokio::time::timeout(CATCH_UP, catch_up(cluster, server, watcher, list)).await.is_ok();
            bail!(
                "it did not come to see what is there: {difference}; the server's cache is at {cached:?}, and a later \
                 watch sees it: {again}\n{}",
                cluster.last_words(server)
            )
        }
    }
}

/// Has a watcher see, by watches of this server, what is there.
async fn catch_up(cluster: &Cluster, server: usize, watcher: &Watcher, list: &List) -> Result<()> {
    while !watcher.holds(list) {
        watcher.clone().until(cluster.connect(server).await?, list).await?;
    }
    Ok(())
}

/// The revision of what a server has at hand.
async fn cached(cluster: &Cluster, server: usize) -> Result<u64> {
    let list = cluster.connect(server).await?.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await?;
    Ok(List::read(&list)?.revision)
}
