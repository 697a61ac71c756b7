//! `cargo xtask histories`: faults befall three servers on three members of one etcd while clients write and read, and what the
//! clients were answered is looked through for what no single, never failing server could have answered.
//!
//! ```text
//! round: clients and watchers at work ── a fault, or two ── at work ── all is undone ── every server lists ── check
//! ```
//! | fault | what it is |
//! |---|---|
//! | `kills` | `kill -9` of servers and members |
//! | `stops` | they are there, and do nothing |
//! | `partitions` | a machine, or etcd's leader, is cut off from the others, all three are, one is unplugged, or one does not hear another |
//! | `loss` | packets get lost |
//! | `clocks` | the clock of a server jumps by up to 50 minutes, while it runs or while it does not, and stays so |
//! | `full-disk` | the disk of a member, or of two, is full, of which a member ends |
//! | `lost-member` | a member loses all it had, and another comes in its place |
//!
//! Once a fault is undone, what was killed is started again, as a unit does it; a member that was lost is replaced, and etcd's alarm of a full disk
//! is taken back, as `corten up --ha` does it. Nobody helps beyond that: every server is to be ready again by itself. The members are started here
//! and not by Corten: that is played by `e2e/cluster/40-ha.e2e`.
//!
//! Revisions say in which order etcd has written, so that the check is exact and needs no search: an answer is right where the order
//! of revisions does not contradict the order of the clock, every value was asked for, and none came twice (linearizability of each
//! object, as porcupine looks for it in histories without such a witness).

mod check;
mod client;
mod cluster;
mod etcdctl;
mod faults;
mod machines;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use corten_testbed::{Profile, etcd_programs, program};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::Instant,
};

use self::{
    check::{Checker, Operation},
    client::{Clients, list_once, work},
    cluster::{Cluster, NAMES, PATIENCE, Part},
    faults::{Deck, Fault, Kind},
};
use crate::{
    crash::{CONFIG_MAPS, List, Watcher, begin},
    namespaces,
};

const CLIENTS: usize = 6;
/// The slowest rests this many milliseconds after each batch, the first not at all.
const WATCHERS: u64 = 3;
const REST_MS_STEP: u64 = 10;
/// Before the fault, and after it.
const WORK_MS: std::ops::Range<u64> = 200..900;
const CATCH_UP: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many faults are played
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Of what is asked for, and of the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What befalls it
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    faults: Vec<Kind>,
    /// Play with this program instead of building one
    #[arg(long, value_name = "PROGRAM")]
    corten: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(etcd) = etcd_programs()? else {
        println!("skipped: there is no etcd in target/etcd: `cargo xtask etcd` fetches it");
        return Ok(());
    };
    let has_clocks = args.faults.contains(&Kind::Clocks);
    if let Some(missing) = machines::missing(has_clocks).filter(|_| !namespaces::is_inside()) {
        bail!("machines cannot be made here: {missing}");
    }
    let program = program(args.corten.as_deref(), Profile::Release)?;
    let built = ["--corten".into(), program.clone().into()];
    namespaces::enter(if args.corten.is_none() { &built } else { &[] })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let playing = async { rounds(Cluster::start(program, etcd, has_clocks).await?, args).await };
    // What is started ends with the thread that starts it, which is this one.
    runtime.block_on(unless_ended(playing)).with_context(|| format!("with --seed {}", args.seed))
}

/// Whoever ends it finds nothing left of it.
async fn unless_ended(playing: impl Future<Output = Result<()>>) -> Result<()> {
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        played = playing => played,
        _ = interrupted.recv() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    }
}

async fn rounds(mut cluster: Cluster, args: &Args) -> Result<()> {
    let (mut dice, mut deck) = (StdRng::seed_from_u64(args.seed), Deck::new(&args.faults));
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
        let fault = Fault::drawn(&mut dice, &mut deck, &cluster).with_context(|| format!("before round {round}"))?;
        let played = play(&mut cluster, &fault, &watchers, start, &mut dice).await;
        let Round { history, ready_after, seen_after } = played.with_context(|| format!("round {round}: {fault}"))?;
        checker.take(history).with_context(|| format!("after round {round}: {fault}"))?;
        for watcher in &watchers {
            checker.check_seen(&watcher.seen()).with_context(|| format!("after round {round}: {fault}"))?;
        }
        println!("{round}: {fault}: ready after {ready_after:.1?}, all is seen after {seen_after:.1?}");
    }
    let relists: usize = watchers.iter().map(Watcher::n_relists).sum();
    println!(
        "{} rounds ({}), {}; {WATCHERS} watchers told the truth, {relists} listed again",
        args.rounds,
        deck.tally(),
        checker.tally()
    );
    Ok(())
}

struct Round {
    /// What was asked and answered.
    history: Vec<Operation>,
    /// Since the fault was undone. A member that led and was cut off for long takes up to half a minute, with servers ready at once.
    ready_after: Duration,
    seen_after: Duration,
}

async fn play(
    cluster: &mut Cluster,
    fault: &Fault,
    watchers: &[Watcher],
    start: Instant,
    dice: &mut StdRng,
) -> Result<Round> {
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
    let undone = Instant::now();
    cluster.heal().await?;
    let ready_after = undone.elapsed();
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
    Ok(Round { history, ready_after, seen_after: undone.elapsed() })
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
                cluster.last_words(Part::Server(server))
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
