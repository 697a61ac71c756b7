//! Carries volumes from node to node: asks the mind what comes next for each that is to be moved, has the nodes' drivers do it, and
//! writes to the API how far it is. Whatever ends this process, the next one goes on from what volume and nodes say.

mod carrying;
mod move_informers;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_client::{BoxFuture, Client};
use corten_meta::Key;
use corten_provisioner::moves::VolumeTransfer;
use futures_util::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::{carrying::Carrier, move_informers::MoveInformers};
use crate::{Clock, EventRecorder, Refusal};

/// A volume that leaves a node: how large it is, and what the node where it arrives is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub bytes: u64,
    pub record: String,
}

/// Asks the drivers of nodes.
pub trait MoveHands: Send + Sync + 'static {
    /// Nobody mounts it any more on the node that it leaves.
    fn leave(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<Leaving, Refusal>>;
    fn stay(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>>;
    /// Up to where it is on the other node, and whether it is that one's already.
    fn arrive(&self, transfer: VolumeTransfer, record: String) -> BoxFuture<'_, Result<(u64, bool), Refusal>>;
    /// Copies a range, and compares both by their hash.
    fn copy(&self, transfer: VolumeTransfer, range: (u64, u64)) -> BoxFuture<'_, Result<(), Refusal>>;
    fn settle(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>>;
    fn give_up(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>>;
    /// What the node that it has left still has.
    fn remove_left(&self, transfer: VolumeTransfer) -> BoxFuture<'_, Result<(), Refusal>>;
}

/// What the loop is given.
pub struct VolumeMoveSettings {
    pub driver: &'static str,
    /// Who writes claims and volumes.
    pub client: Client,
    /// Who sees Pods and CSINodes.
    pub viewer: Client,
    pub hands: Arc<dyn MoveHands>,
    pub clock: Clock,
}

/// So many are carried at once: they share the network and the disks.
const AT_ONCE: usize = 2;
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Of one volume: never two are at work with one.
#[derive(Default)]
struct Work {
    is_running: bool,
    /// Something has changed meanwhile.
    is_stale: bool,
    failures: u32,
    retry_at: Option<Instant>,
}

/// Runs until `shutdown` is ready. What is under way is given up, and gone on with by the next run.
pub async fn run_volume_moves(settings: VolumeMoveSettings, shutdown: impl Future<Output = ()> + Send) {
    let VolumeMoveSettings { driver, client, viewer, hands, clock } = settings;
    let mut recorder = EventRecorder::new(client.clone(), "volume-mover");
    let mut informers = MoveInformers::new(&client, &viewer, driver);
    let used = informers.used.clone();
    let carrier = Arc::new(Carrier { driver, client: client.clone(), hands, clock, used, news: Mutex::default() });
    let mut moves = Moves::default();
    let run = poll_fn(|context| {
        for subject in informers.poll(context) {
            moves.changed(subject);
        }
        moves.poll(context, &carrier, &informers);
        for (about, event_type, reason, message) in carrier.news.lock().drain(..) {
            recorder.record(&about, event_type, reason, &message, (carrier.clock)());
        }
        let _: Poll<()> = recorder.poll(context);
        Poll::<()>::Pending
    });
    tokio::select! {
        () = shutdown => {}
        () = run => {}
    }
}

#[derive(Default)]
struct Moves {
    work: BTreeMap<Subject, Work>,
    running: FuturesUnordered<BoxFuture<'static, (Subject, bool)>>,
    alarm: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

/// A volume, whoever wishes something of it, or a claim that names none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Claim(Key),
    Volume(String),
}

impl Moves {
    fn changed(&mut self, subject: Subject) {
        let work = self.work.entry(subject).or_default();
        (work.is_stale, work.retry_at) = (true, None);
    }

    fn poll(&mut self, context: &mut Context<'_>, carrier: &Arc<Carrier>, informers: &MoveInformers) {
        loop {
            self.begin(carrier, informers);
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some((subject, is_done))) => {
                    self.ended(subject, is_done);
                    continue;
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
            let next = self.work.values().filter(|it| !it.is_running).filter_map(|it| it.retry_at).min();
            let Some(next) = next else { return };
            let mut alarm = Box::pin(tokio::time::sleep_until(next));
            if alarm.as_mut().poll(context).is_pending() {
                self.alarm = Some(alarm);
                return;
            }
            let now = Instant::now();
            for work in self.work.values_mut().filter(|it| it.retry_at.is_some_and(|it| it <= now)) {
                (work.is_stale, work.retry_at) = (true, None);
            }
        }
    }

    fn begin(&mut self, carrier: &Arc<Carrier>, informers: &MoveInformers) {
        for (subject, work) in &mut self.work {
            if self.running.len() >= AT_ONCE {
                return;
            }
            if !informers.is_whole() || work.is_running || !std::mem::take(&mut work.is_stale) {
                continue;
            }
            work.is_running = true;
            let (carrier, subject, about) = (carrier.clone(), subject.clone(), informers.about(subject));
            self.running.push(Box::pin(async move {
                let is_done = carrier.carry(about).await;
                (subject, is_done)
            }));
        }
        let is_over = |it: &Work| !it.is_running && !it.is_stale && it.retry_at.is_none();
        self.work.retain(|_, it| !is_over(&*it));
    }

    fn ended(&mut self, subject: Subject, is_done: bool) {
        let work = self.work.entry(subject).or_default();
        work.is_running = false;
        work.failures = if is_done { 0 } else { work.failures.saturating_add(1) };
        if !is_done {
            let pause = PAUSE.saturating_mul(1 << (work.failures - 1).min(6)).min(PAUSE_MAX);
            work.retry_at = Some(Instant::now() + pause);
        }
    }
}

/// What is known around a claim or volume.
#[derive(Clone, Debug, Default)]
struct About {
    /// Whose volume it is, as the volume says; where there is none: a claim with a wish.
    claim: Option<Key>,
    volume: Option<String>,
    /// Other claims with a wish that name it.
    strangers: Vec<Key>,
    pod: Option<String>,
    nodes: BTreeSet<String>,
}

#[cfg(test)]
mod tests;
