//! `cargo xtask powercut`: pulls the plug of a machine in the middle of its work, again and again.
//!
//! ```text
//! round: work and writers ── the plug is pulled ── boot ── all Pods Ready, every answered write there ── next round
//! ```
//! Nobody helps after a boot. What was answered is recorded outside of the machine. A minute of a real machine is given until
//! all Pods are Ready; one that is slower, or shared with others' work, gets as many times longer as was measured after that
//! boot.

mod claims;
mod cluster;
mod emulated;
mod namespaces;
mod plug;
mod pods;
mod tally;
mod work;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, root};
use hyper::Method;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;
use tokio::task::JoinSet;

use self::{claims::Listener, cluster::Cluster, emulated::Emulation, namespaces::Bench, tally::Tally, work::Work};
use crate::{
    crash::{CONFIG_MAPS, write},
    machine::{Arch, Suite, base, remove_on_signals},
    machines::Payload,
};

const WRITERS: usize = 4;
/// Where anything may be done, one round in so many needs an image of its own; at the most it is one that was pulled long before.
const PULLS_EVERY: usize = 4;
const BULK_BYTES: usize = 700_000;
/// Whoever has not been answered by then never will be.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the plug is pulled
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Of what the machine does and when the plug is pulled
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program under test
    #[arg(long, default_value = "target/release/corten")]
    corten: PathBuf,
    /// What the machine does in each round, instead of anything
    #[arg(long, value_enum)]
    work: Option<Work>,
    /// Stop at the first round that fails, and leave the machine as it is
    #[arg(long)]
    keep: bool,
    /// Where the disks of machines of namespaces lie: a folder with 4 GiB of room
    #[arg(long, default_value = "/var/tmp", value_name = "DIR", conflicts_with = "machine")]
    disks: PathBuf,
    /// Emulate a whole machine: its kernel boots for real, and a round takes minutes
    #[arg(long)]
    machine: bool,
    /// The release of Debian on a whole machine
    #[arg(long, value_enum, default_value_t = Suite::Trixie, requires = "machine")]
    suite: Suite,
    /// MiB of memory of a whole machine
    #[arg(long, default_value_t = 2048, requires = "machine")]
    memory: u32,
}

/// What makes machines.
enum Maker {
    Emulation(Emulation),
    /// With the disk of one that has all that rounds play on, as soon as there is one.
    Namespaces(Arc<Bench>, Option<PathBuf>),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.machine {
        remove_on_signals()?;
    } else {
        if let Some(missing) = namespaces::missing() {
            println!("powercut: skipped {} rounds: {missing}", args.rounds);
            return Ok(());
        }
        crate::namespaces::enter(&[])?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // Machines end with the thread that starts them, which is this one.
    runtime.block_on(rounds(args)).with_context(|| format!("with --seed {}", args.seed))
}

impl Maker {
    fn new(args: &Args) -> Result<Self> {
        let corten = root()?.join(&args.corten);
        if !corten.is_file() {
            bail!("{} is not there: build it with `cargo build --release -p corten`", corten.display());
        }
        if !args.machine {
            return Ok(Self::Namespaces(Bench::new(&corten, &args.disks)?, None));
        }
        Ok(Self::Emulation(Emulation {
            base: base(args.suite, Arch::Amd64)?,
            payload: Payload::with_demo(&root()?, &corten, Arch::Amd64)?,
            memory_mib: args.memory,
            is_kept: args.keep,
        }))
    }

    /// One that is on, and on which Corten has never run.
    fn blank(&self, round: usize) -> Result<Cluster> {
        match self {
            Self::Emulation(emulation) => Cluster::new(Box::new(emulation.machine(round)?)),
            Self::Namespaces(bench, _) => Cluster::new(Box::new(bench.machine(None)?)),
        }
    }

    /// One with all that rounds play on.
    async fn furnished(&mut self, round: usize, n_images: usize) -> Result<Cluster> {
        if let Self::Namespaces(bench, Some(disk)) = self {
            let cluster = Cluster::new(Box::new(bench.machine(Some(disk))?))?;
            cluster.wait_ready().await.context("a copy of a machine that was furnished")?;
            return Ok(cluster);
        }
        let cluster = self.blank(round)?;
        cluster.output(cluster.machine.up()).context("the first start, which nothing disturbs")?;
        cluster.furnish(n_images).await.context("making what the rounds play on")?;
        if let Self::Namespaces(bench, disk) = self {
            *disk = Some(bench.keep("furnished")?);
        }
        Ok(cluster)
    }
}

async fn rounds(args: &Args) -> Result<()> {
    let mut maker = Maker::new(args)?;
    let mut dice = StdRng::seed_from_u64(args.seed);
    let mut running: Option<Cluster> = None;
    let mut tally = Tally::default();
    let n_images = n_images(args.work, args.rounds);
    for round in 1..=args.rounds {
        let mut dice = StdRng::seed_from_u64(dice.random());
        let work = args.work.unwrap_or_else(|| Work::any(&mut dice));
        let mut cluster = match running.take() {
            Some(cluster) if work != Work::FirstUp => cluster,
            before => {
                if let Some(before) = before {
                    tally.ends(before)?;
                }
                match work {
                    Work::FirstUp => maker.blank(round)?,
                    _ => maker.furnished(round, n_images).await?,
                }
            }
        };
        match one_round(&mut cluster, work, round, n_images, &mut dice).await {
            Ok(said) => {
                println!("ok     round {round}: {work:?}, {said}");
                tally.count(work, true);
                running = Some(cluster);
            }
            Err(error) => {
                println!("FAILED round {round}: {work:?}: {error:#}");
                for line in cluster.state().lines() {
                    println!("  state: {line}");
                }
                tally.count(work, false);
                if args.keep {
                    println!("kept: {}", cluster.machine.name());
                    if !args.machine {
                        tokio::signal::ctrl_c().await?;
                    }
                    bail!("round {round} failed");
                }
                tally.ends(cluster)?;
            }
        }
    }
    if let Some(cluster) = running {
        tally.ends(cluster)?;
    }
    tally.verdict()
}

/// As many as are pulled, mostly: making them takes a while.
fn n_images(work: Option<Work>, n_rounds: usize) -> usize {
    if work == Some(Work::Pulls) { n_rounds } else { n_rounds.div_ceil(PULLS_EVERY) }
}

/// Which of them a round pulls.
fn image(round: usize, n_images: usize) -> usize {
    round % n_images + 1
}

/// What it says is for whoever looks on.
async fn one_round(
    cluster: &mut Cluster,
    work: Work,
    round: usize,
    n_images: usize,
    dice: &mut StdRng,
) -> Result<String> {
    let life = Duration::from_secs_f64(dice.random_range(0.1..work.seconds_max()) * cluster.slowness);
    let mut writing = JoinSet::new();
    let before = match work {
        Work::FirstUp => None,
        _ => Some(cluster.refresh().await.context("before the cut")?),
    };
    if work != Work::FirstUp {
        for number in 0..WRITERS {
            let (connection, truth, seed) = (cluster.connect().await?, cluster.truth.clone(), dice.random());
            writing.spawn(write(number, connection, truth, StdRng::seed_from_u64(seed)));
        }
    }
    let listening = (work != Work::FirstUp).then(|| Listener::begin(cluster)).transpose()?;
    if work == Work::Checkpoints {
        writing.spawn(fill(cluster.connect().await?));
    }
    let mut working = cluster.spawn(&work.script(round, image(round, n_images), cluster.machine.up()))?;
    tokio::time::sleep(life).await;
    cluster.machine.cut()?;
    working.wait()?;
    if let Some(listening) = listening {
        listening.end(&mut cluster.claim)?;
    }
    let answers = async {
        while let Some(ended) = writing.join_next().await {
            ended?.context("before the cut")?;
        }
        anyhow::Ok(())
    };
    if let Ok(ended) = tokio::time::timeout(LAST_ANSWERS, answers).await {
        ended?;
    }
    writing.shutdown().await;
    let mut cut = format!("cut after {:.1} s", life.as_secs_f64());
    let mut n_cuts = 1;
    for seconds in work.further_lives() {
        let life = Duration::from_secs_f64(dice.random_range(seconds) * cluster.slowness);
        cluster.boot().context("between two cuts")?;
        let starting = start(cluster)?;
        tokio::time::sleep(life).await;
        cluster.machine.cut()?;
        if let Some(mut starting) = starting {
            starting.wait()?;
        }
        cut += &format!(" and again {:.1} s after that boot", life.as_secs_f64());
        n_cuts += 1;
    }
    let booted = cluster.boot().context("after the cut")?;
    let started = start(cluster)?;
    let ready = cluster.wait_ready().await?;
    if let Some(mut started) = started {
        started.wait()?;
    }
    if let Some(before) = before {
        cluster.check_writes().await?;
        cluster.check_claim()?;
        if !work.restarts_by_itself() {
            cluster.check_pods(&before, n_cuts).await?;
        }
    } else {
        cluster.furnish(n_images).await?;
    }
    cluster.check_why()?;
    Ok(format!(
        "{cut}; reached {:.1} s after power-on, all Ready {:.1} s later; {}; limits {:.1} times longer",
        booted.as_secs_f64(),
        ready.as_secs_f64(),
        cluster.claim.told(),
        cluster.patience
    ))
}

/// Runs `corten up` where nothing starts the cluster at boot: as long as a first `corten up` was not at its end.
fn start(cluster: &Cluster) -> Result<Option<std::process::Child>> {
    if cluster.machine.starts_at_boot() { Ok(None) } else { cluster.spawn(cluster.machine.up()).map(Some) }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rounds_that_only_pull_never_pull_an_image_twice() {
        let n_images = n_images(Some(Work::Pulls), 7);
        let pulled: BTreeSet<usize> = (1..=7).map(|round| image(round, n_images)).collect();
        assert_eq!(pulled.len(), 7);
    }
}
