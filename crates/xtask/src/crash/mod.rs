//! `cargo xtask crash`: kills the server in the middle of its work, again and again, and looks for lies.
//!
//! ```text
//! round: start ── writers and watchers at work ── SIGKILL ── start again ── compare ── next round
//! ```
//! After each kill the store must hold every write that was answered, and nothing nobody asked for. Each watcher, at
//! whatever speed, across all kills, must have seen every such write once and in order, and none that is not there.

mod oracle;
mod watcher;
mod writer;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ControlPlane, Data, Launcher, Profile, program};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

pub(crate) use self::{
    oracle::{List, Object, Oracle, Version},
    watcher::{WatchedChanges, Watcher},
    writer::write,
};

pub(crate) const NAMESPACE: &str = "crash";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/crash/configmaps";
const WRITERS: usize = 8;
/// The slowest rests this many milliseconds after each batch, the first not at all.
const WATCHERS: u64 = 4;
const REST_MS_STEP: u64 = 5;
/// From the first request to the kill.
const LIFE_MS: std::ops::Range<u64> = 5..250;
const CATCH_UP: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the server is killed
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Of what is written and when the server is killed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kill this program instead of building one
    #[arg(long, value_name = "PROGRAM")]
    corten: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let program = program(args.corten.as_deref(), Profile::Release)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let launcher = Launcher::new(program)?;
    runtime.block_on(rounds(&launcher, args)).with_context(|| format!("with --seed {}", args.seed))
}

async fn rounds(launcher: &Launcher, args: &Args) -> Result<()> {
    let data = Data::new()?;
    let mut dice = StdRng::seed_from_u64(args.seed);
    let truth = Arc::new(Mutex::new(Oracle::default()));
    let mut watchers = Vec::new();
    let (mut server, _) = launcher.start(&data).await?;
    begin(&mut server.connect().await?).await?;
    for number in 0..WATCHERS {
        watchers.push(Watcher::new(list(&server).await?, Duration::from_millis(number * REST_MS_STEP)));
    }
    for round in 1..=args.rounds {
        let (mut watching, mut writing) = (JoinSet::new(), JoinSet::new());
        for watcher in &watchers {
            let connection = server.connect().await?;
            watching.spawn(watcher.clone().watch(connection));
        }
        for number in 0..WRITERS {
            let (connection, truth, seed) = (server.connect().await?, truth.clone(), dice.random());
            writing.spawn(write(number, connection, truth, StdRng::seed_from_u64(seed)));
        }
        tokio::time::sleep(Duration::from_millis(dice.random_range(LIFE_MS))).await;
        server.kill()?;
        while let Some(ended) = writing.join_next().await {
            ended?.with_context(|| format!("round {round}"))?;
        }
        while let Some(ended) = watching.try_join_next() {
            ended?.with_context(|| format!("round {round}"))?;
        }
        // The slow ones would read for long what still lies on the way: they die with the server, and go on from where
        // they had come to.
        watching.shutdown().await;
        (server, _) = launcher.start(&data).await?;
        compare(&server, &truth, &watchers).await.with_context(|| format!("after kill {round}"))?;
    }
    let (writes, relists) = (truth.lock().n_answered(), watchers.iter().map(Watcher::n_relists).sum::<usize>());
    println!(
        "{} kills, {writes} answered writes, none lost; {WATCHERS} watchers told the truth, {relists} listed again",
        args.rounds
    );
    server.stop()
}

/// The namespace, which needs its service account before it takes anything.
pub(crate) async fn begin(connection: &mut Connection) -> Result<()> {
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}"}}}}"#);
    connection.create("/api/v1/namespaces", body.into()).await?;
    Ok(())
}

/// What the server holds is what it said; and every watcher comes to see just that.
async fn compare(server: &ControlPlane, truth: &Mutex<Oracle>, watchers: &[Watcher]) -> Result<()> {
    let list = list(server).await?;
    truth.lock().settle(&list)?;
    for watcher in watchers {
        watcher.check_against(&list)?;
        let catching_up = watcher.clone().until(server.connect().await?, &list);
        match tokio::time::timeout(CATCH_UP, catching_up).await {
            Ok(caught_up) => caught_up?,
            Err(_) => bail!("a watcher did not come to see what is there: {}", watcher.difference(&list)),
        }
        truth.lock().check_seen(&watcher.seen())?;
    }
    Ok(())
}

async fn list(server: &ControlPlane) -> Result<List> {
    let body: Bytes = server.connect().await?.get(CONFIG_MAPS).await?;
    List::read(&body)
}
