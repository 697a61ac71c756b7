//! A whole cluster in one thread: virtual clock, seeded faults, rules that are checked at every commit.
//!
//! One seed is one history. It begins with faults and a script of users and crashes; then faults stop, and the cluster
//! must converge and fall silent.

mod again;
mod author;
mod contention;
mod control_plane;
mod extender;
mod fights;
mod freezer;
mod ground;
mod interruptions;
mod line;
mod link;
mod marks;
mod node;
mod one_revision;
mod oracle;
mod planes;
mod reads;
mod script;
mod seeded_rng;
mod settled;
mod signal;
mod storage;
mod successes;
mod terms;
mod wire;
mod witness;
mod workloads;
mod world;

use std::{fmt, sync::atomic::Ordering, time::Duration};

use corten_api::resources::{DEPLOYMENTS, JOBS, NAMESPACES, PODS, REPLICA_SETS, STATEFUL_SETS};
use corten_meta::Key;
use tokio::task::JoinSet;

pub use interruptions::Interruptions;
use seeded_rng::SeededRng;
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
    /// How often a lease of leaders came to somebody else.
    pub elections: u64,
    /// Writes of leaders that were judged by their terms.
    pub fenced: u64,
    /// How often a server had to read all again.
    pub forgotten: u64,
    /// How often clients went to another server.
    pub moves: u64,
    pub interruptions: Interruptions,
    /// From the end of faults to convergence.
    pub healing: Duration,
    pub virtual_time: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, revisions, requests, faults, evictions, elections, moves, forgotten, interruptions, .. } =
            self;
        write!(f, "seed {seed:#x} holds: {revisions} revisions, {requests} requests, {faults} faults, ")?;
        if *evictions > 0 {
            write!(f, "{evictions} evictions, ")?;
        }
        if *elections > 0 {
            let Interruptions { links, partitions, pauses, ends } = interruptions;
            write!(f, "{elections} elections ({links} links troubled, {partitions} servers out of reach, ")?;
            write!(f, "{pauses} pauses, {ends} ends), {moves} moves of clients, all read again {forgotten} times, ")?;
        }
        let (healing, time) = (self.healing.as_secs_f64(), self.virtual_time.as_secs_f64());
        write!(f, "healed in {healing:.1} s of {time:.0} s, trace {:016x}", self.trace_hash)
    }
}

/// A seed that broke a rule.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    /// How many control planes there were.
    pub planes: usize,
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
        write!(f, "again with: cargo xtask sim {:#x} --planes {}", self.seed, self.planes)
    }
}

/// Control planes of every second history.
const PLANES: usize = 3;

/// Plays one seed. In every second history there are several control planes over one store.
///
/// # Errors
/// A rule was broken, or the cluster did not converge.
pub fn run(seed: u64) -> Result<Report, Box<Failure>> {
    run_of(seed, planes_of(seed))
}

fn planes_of(seed: u64) -> usize {
    if seed.is_multiple_of(2) { 1 } else { PLANES }
}

/// Plays one seed with so many control planes.
///
/// # Errors
/// As of [`run`].
pub fn run_of(seed: u64, n_planes: usize) -> Result<Report, Box<Failure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let mut trail = Vec::new();
    let played = match runtime {
        Ok(runtime) => runtime.block_on(play(seed, n_planes, &mut trail)),
        Err(error) => Err(format!("no runtime: {error}")),
    };
    played.map_err(|reason| Box::new(Failure { seed, planes: n_planes, reason, trail }))
}

async fn play(seed: u64, n_planes: usize, trail: &mut Vec<String>) -> Result<Report, String> {
    let mut world = World::begin(seed, n_planes).await?;
    let (mut watches, mut witnessed) = (JoinSet::new(), Vec::new());
    for (server, resource) in (0..world.n_servers()).flat_map(|at| [PODS, REPLICA_SETS, DEPLOYMENTS].map(|it| (at, it)))
    {
        let segments = Segments::default();
        watches.spawn(witness::watch(world.observer_at(server), resource.clone(), segments.clone()));
        witnessed.push((resource, segments));
    }
    let mut marking = JoinSet::new();
    if world.has_several_planes() {
        let servers = (0..world.n_servers()).map(|at| world.observer_at(at)).collect();
        marking.spawn(marks::play(servers, SeededRng::of(seed, "marks"), world.weather.clone()));
    }
    world.set_weather(true);
    script::play(&mut world, trail).await?;
    world.set_weather(false);
    marking.shutdown().await;
    world.heal().await?;
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
    if world.has_several_planes() {
        world.truth.lock().terms.one_leads()?;
    }
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
            for it in world.journals().into_iter().flat_map(|it| it.decisions(&resource, &key)) {
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
        elections: truth.terms.n_elections,
        fenced: truth.terms.n_fenced,
        forgotten: world.planes.iter().map(|it| it.levers.n_forgotten()).sum(),
        moves: world.weather.n_moves.load(Ordering::Relaxed),
        interruptions: world.interruptions,
        healing,
        virtual_time: world.elapsed(),
    }
}

#[cfg(test)]
mod tests;
