//! `cargo xtask powercut`: pulls the plug of a machine in the middle of its work, again and again.
//!
//! ```text
//! round: work and writers ── the plug is pulled ── boot ── all Pods Ready, every answered write there ── next round
//! ```
//! Nobody helps after a boot. What was answered is recorded outside of the machine. A minute of a real machine is given until
//! all Pods are Ready; the emulated one gets as many times longer as it was measured to be slower after that boot.

mod cluster;
mod work;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use hyper::Method;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;
use tokio::task::JoinSet;

use self::{cluster::Cluster, work::Work};
use crate::{
    crash::{CONFIG_MAPS, write},
    machine::{Arch, Guest, Suite, Wanted, base, remove_on_signals},
    machines::Payload,
    real::Connection,
    tidy::root,
};

/// How the cluster is started in the machine: reachable from outside, for the writers.
const UP: &str = "corten up --bind 0.0.0.0 --timeout 900";
const WRITERS: usize = 4;
const BULK_BYTES: usize = 700_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the plug is pulled
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Of what the machine does and when the plug is pulled
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The release of Debian
    #[arg(long, value_enum, default_value_t = Suite::Trixie)]
    suite: Suite,
    /// The program under test
    #[arg(long, default_value = "target/release/corten")]
    corten: PathBuf,
    /// MiB of memory of the machine
    #[arg(long, default_value_t = 2048)]
    memory: u32,
    /// What the machine does in each round, instead of anything
    #[arg(long, value_enum)]
    work: Option<Work>,
    /// Stop at the first round that fails, and leave the machine as it is: `cargo xtask guest` goes on
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    remove_on_signals()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // QEMU ends with the thread that starts it, which is this one.
    runtime.block_on(rounds(args)).with_context(|| format!("with --seed {}", args.seed))
}

async fn rounds(args: &Args) -> Result<()> {
    let root = root()?;
    let payload = Payload::with_demo(&root, &root.join(&args.corten))?;
    let base = base(args.suite, Arch::Amd64)?;
    let mut dice = StdRng::seed_from_u64(args.seed);
    let mut running: Option<Cluster> = None;
    let mut tally: BTreeMap<Work, (usize, usize)> = BTreeMap::new();
    let mut n_writes = 0;
    for round in 1..=args.rounds {
        let mut dice = StdRng::seed_from_u64(dice.random());
        let work = args.work.unwrap_or_else(|| Work::any(&mut dice));
        let mut cluster = match running.take() {
            Some(cluster) if work != Work::FirstUp => cluster,
            before => {
                if let Some(before) = before {
                    n_writes += before.truth.lock().n_answered();
                    before.remove()?;
                }
                let cluster = new_machine(args, round, &base, &payload)?;
                if work != Work::FirstUp {
                    cluster.output(UP).context("the first start, which nothing disturbs")?;
                    furnish(&cluster, args.rounds).await?;
                }
                cluster
            }
        };
        let counts = tally.entry(work).or_default();
        counts.0 += 1;
        match one_round(&mut cluster, work, round, args.rounds, &mut dice).await {
            Ok(said) => {
                println!("ok     round {round}: {work:?}, {said}");
                running = Some(cluster);
            }
            Err(error) => {
                counts.1 += 1;
                println!("FAILED round {round}: {work:?}: {error:#}");
                for line in cluster.state().lines() {
                    println!("  state: {line}");
                }
                n_writes += cluster.truth.lock().n_answered();
                if args.keep {
                    bail!("kept: {}; `cargo xtask guest rm` removes it", cluster.name());
                }
                cluster.remove()?;
            }
        }
    }
    if let Some(cluster) = running {
        n_writes += cluster.truth.lock().n_answered();
        cluster.remove()?;
    }
    for (work, (n_rounds, n_failed)) in &tally {
        println!("{work:?}: {n_rounds} cuts, {n_failed} that the machine did not come back from by itself");
    }
    println!("{} cuts, {n_writes} answered writes", args.rounds);
    let n_failed: usize = tally.values().map(|it| it.1).sum();
    if n_failed > 0 {
        bail!("{n_failed} rounds failed");
    }
    Ok(())
}

fn new_machine(args: &Args, round: usize, base: &Path, payload: &Payload) -> Result<Cluster> {
    let wanted = Wanted {
        name: &format!("powercut-{}-{round}", std::process::id()),
        host_name: "machine-1",
        base,
        arch: Arch::Amd64,
        memory_mib: args.memory,
        payload: Some(&payload.path()),
        ports: &[cluster::PORT],
        is_kept: args.keep,
    };
    Cluster::new(Guest::make(&wanted)?)
}

/// What the rounds play on. Once it is there it lies safely on the disk: what is lost was lost by what a round did.
async fn furnish(cluster: &Cluster, rounds: usize) -> Result<()> {
    cluster.furnish(rounds).await.context("making what the rounds play on")?;
    cluster.wait_ready().await.context("the first Pods")?;
    cluster.output("sync")?;
    Ok(())
}

/// What it says is for whoever looks on.
async fn one_round(
    cluster: &mut Cluster,
    work: Work,
    round: usize,
    rounds: usize,
    dice: &mut StdRng,
) -> Result<String> {
    let life = Duration::from_secs_f64(dice.random_range(0.1..work.seconds_max()) * cluster.slowness);
    let mut writing = JoinSet::new();
    if work != Work::FirstUp {
        for number in 0..WRITERS {
            let (connection, truth, seed) = (cluster.connect().await?, cluster.truth.clone(), dice.random());
            writing.spawn(write(number, connection, truth, StdRng::seed_from_u64(seed)));
        }
    }
    if work == Work::Checkpoints {
        writing.spawn(fill(cluster.connect().await?));
    }
    let mut working = cluster.spawn(&work.script(round))?;
    tokio::time::sleep(life).await;
    cluster.cut()?;
    working.wait()?;
    while let Some(ended) = writing.join_next().await {
        ended?.context("before the cut")?;
    }
    let booted = cluster.boot().context("after the cut")?;
    let has_started_itself = cluster.starts_at_boot();
    if !has_started_itself {
        cluster.output(UP).context("after the cut")?;
    }
    let ready = cluster.wait_ready().await?;
    if work == Work::FirstUp {
        furnish(cluster, rounds).await?;
    } else {
        cluster.check_writes().await?;
    }
    Ok(format!(
        "cut after {:.1} s; reached {:.1} s after power-on, all Ready {:.1} s later{}; {:.1} times slower than this machine",
        life.as_secs_f64(),
        booted.as_secs_f64(),
        ready.as_secs_f64(),
        if has_started_itself { "" } else { " and after `corten up`" },
        cluster.slowness
    ))
}

/// Writes much until the server is gone, so that the store's log grows.
async fn fill(mut connection: Connection) -> Result<()> {
    for number in 0_u32.. {
        let data = json!({"number": number.to_string(), "rest": "x".repeat(BULK_BYTES)});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bulk"}, "data": data});
        let body = Bytes::from(object.to_string());
        let path = format!("{CONFIG_MAPS}/bulk");
        let Ok((status, _)) = connection.send(Method::PUT, &path, body.clone()).await else { return Ok(()) };
        if status == hyper::StatusCode::NOT_FOUND && connection.send(Method::POST, CONFIG_MAPS, body).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
