//! A whole cluster in one thread: virtual clock, seeded faults, rules that are checked at every commit.
//!
//! One seed is one history. It begins with faults and a script of users and crashes; then faults stop, and the cluster
//! must converge and fall silent.

mod again;
mod contention;
mod extender;
mod fights;
mod line;
mod node;
mod one_revision;
mod oracle;
mod script;
mod seeded_rng;
mod settled;
mod storage;
mod successes;
mod witness;
mod workloads;
mod world;

use std::{fmt, sync::atomic::Ordering, time::Duration};

use corten_api::resources::{DEPLOYMENTS, JOBS, NAMESPACES, PODS, REPLICA_SETS, STATEFUL_SETS};
use corten_meta::Key;
use tokio::task::JoinSet;

use witness::Segments;
use world::World;

/// How long a healed cluster may take.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How long a converged one must stay silent: longer than every loop's resync.
const SILENCE: Duration = Duration::from_secs(12 * 60);

/// What a seed led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    /// Of every commit and its time: two runs of one seed have the same.
    pub trace_hash: u64,
    pub revisions: u64,
    pub requests: u64,
    pub faults: u64,
    /// Pods that the scheduler evicted for others.
    pub evictions: u64,
    /// From the end of faults to convergence.
    pub healing: Duration,
    pub virtual_time: Duration,
}

/// A seed that broke a rule.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub reason: String,
    /// What was done until then, a line each.
    pub trail: Vec<String>,
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trail {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "{}", self.reason)?;
        write!(f, "again with: cargo xtask sim {:#x}", self.seed)
    }
}

/// Plays one seed.
///
/// # Errors
/// A rule was broken, or the cluster did not converge.
pub fn run(seed: u64) -> Result<Report, Box<Failure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let mut trail = Vec::new();
    let played = match runtime {
        Ok(runtime) => runtime.block_on(play(seed, &mut trail)),
        Err(error) => Err(format!("no runtime: {error}")),
    };
    played.map_err(|reason| Box::new(Failure { seed, reason, trail }))
}

async fn play(seed: u64, trail: &mut Vec<String>) -> Result<Report, String> {
    let mut world = World::begin(seed).await?;
    let mut watches = JoinSet::new();
    let witnessed = [PODS, REPLICA_SETS, DEPLOYMENTS].map(|it| {
        let segments = Segments::default();
        watches.spawn(witness::watch(world.observer(), it.clone(), segments.clone()));
        (it, segments)
    });
    world.set_weather(true);
    script::play(&mut world, trail).await?;
    world.set_weather(false);
    world.heal_the_store();
    contention::end(&world.observer(), world.has_extender()).await?;
    let healing_since = world.elapsed();
    converge(&world).await?;
    let healing = world.elapsed().saturating_sub(healing_since);
    stay_silent(&world).await?;
    {
        let truth = world.truth.lock();
        for (resource, segments) in &witnessed {
            witness::compare(&truth, &resource.plural, segments)?;
        }
    }
    nothing_was_lost(&world)?;
    nothing_was_refused(&world)?;
    let report = report(&world, healing);
    watches.shutdown().await;
    world.end().await;
    Ok(report)
}

async fn converge(world: &World) -> Result<(), String> {
    let deadline = world.elapsed() + PATIENCE;
    loop {
        world.check()?;
        let unsettled = settled::unsettled(&world.truth.lock());
        if unsettled.is_empty() {
            return Ok(());
        }
        if world.elapsed() > deadline {
            let list = unsettled.join("\n  ");
            let errors = journalled(world).join("\n  ");
            return Err(format!(
                "{PATIENCE:?} after the last fault the cluster has not converged:\n  {list}\n  {errors}"
            ));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// A converged cluster writes nothing but leases.
async fn stay_silent(world: &World) -> Result<(), String> {
    // What was decided just before may still be written: events, a last status.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = world.truth.lock().revision;
    tokio::time::sleep(SILENCE).await;
    world.check()?;
    let truth = world.truth.lock();
    let is_news = |it: &(&u64, &Vec<String>)| it.1.iter().any(|key| !key.starts_with("/registry/leases/"));
    let mut writes = truth.log.range(before + 1..).filter(is_news).peekable();
    match writes.peek().copied() {
        None => Ok(()),
        Some((revision, keys)) => {
            let n = writes.count();
            Err(format!("a converged cluster made {n} writes in {SILENCE:?}, the first at {revision}: {keys:?}"))
        }
    }
}

/// Every write that was answered with success is in the store's history.
fn nothing_was_lost(world: &World) -> Result<(), String> {
    let truth = world.truth.lock();
    let acknowledged = world.weather.acknowledged.lock();
    match acknowledged.iter().find(|it| !truth.log.contains_key(&it.revision)) {
        Some(lost) => Err(format!("{} was answered with version {}, which was never stored", lost.what, lost.revision)),
        None => Ok(()),
    }
}

/// No loop wanted to write what it has not declared, and none fails without end.
fn nothing_was_refused(world: &World) -> Result<(), String> {
    match journalled(world).first() {
        Some(error) => Err(format!("a converged cluster still has errors: {error}")),
        None => Ok(()),
    }
}

/// The errors and waits in the journals of all objects.
fn journalled(world: &World) -> Vec<String> {
    let truth = world.truth.lock();
    let mut lines = Vec::new();
    for resource in [DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, PODS, NAMESPACES] {
        let prefix = format!("/registry/{}/", resource.plural);
        for (key, _) in truth.of(&resource.plural) {
            let key = Key::parse(key.trim_start_matches(&*prefix));
            for it in world.journal.decisions(&resource, &key) {
                if it.error.is_some() || !it.waits.is_empty() {
                    let waits: Vec<&str> = it.waits.iter().map(|it| &*it.message).collect();
                    let error = it.error.as_deref().unwrap_or("no error");
                    lines.push(format!("{} says of {resource} {key}: {error}, waits: {}", it.by, waits.join("; ")));
                }
            }
        }
    }
    lines
}

fn report(world: &World, healing: Duration) -> Report {
    let truth = world.truth.lock();
    Report {
        seed: world.seed,
        trace_hash: truth.hash,
        revisions: truth.revision,
        requests: world.weather.n_requests.load(Ordering::Relaxed),
        faults: world.weather.n_faults.load(Ordering::Relaxed),
        evictions: truth.fights.n_evictions,
        healing,
        virtual_time: world.elapsed(),
    }
}

#[cfg(test)]
mod tests;
