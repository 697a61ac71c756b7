//! Keeps one table of the kernel right: what is new goes there, all that came meanwhile at once.
//!
//! A transaction that is refused leaves the kernel as it was, so the next one says everything: nothing is patched onto a state that
//! is not known. The same where somebody else has taken the table away.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::NODES;
use corten_client::{
    Backoff, BoxFuture, Client, Identity, Informer, InformerEvent, InformerParams, decode, decode_projection,
};
use corten_meta::{Key, ObjectMeta, ObjectReference, Resource};
use corten_reconcile::{Actor, Decision, EventType, Wait};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{Clock, EventRecorder, JournalBook, queue::QueueCounts};

/// How much is taken in of one resource before the kernel hears of it.
const BATCH: usize = 20_000;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
/// How often to look whether somebody has emptied the ruleset.
pub(crate) const LOOK: Duration = Duration::from_secs(10);

/// Sees a table of the kernel. Errors are told to people.
pub trait TableHands: Send + Sync + 'static {
    /// Is the table there still?
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>>;
    /// Becomes ready where somebody has just taken the table away. Without it that is seen at the next look.
    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// What a table is called.
pub(crate) struct Words {
    /// The loop's name in journals.
    pub(crate) by: &'static str,
    /// What its rules are made of.
    pub(crate) resource: Resource,
    /// `the packet rules of services`
    pub(crate) rules: &'static str,
    /// The reason of the event that they are gone.
    pub(crate) gone: &'static str,
    /// The reason of events and waits where they are refused.
    pub(crate) refused: &'static str,
    /// The longest time between two tries.
    pub(crate) backoff_max: Duration,
}

/// A mind whose rules are in a table, and what it is fed with.
pub(crate) trait TableLoop: Send {
    type Event: Send;
    type Step: Send;

    fn table(&mut self) -> &mut Table;
    /// Half a view would take away what an earlier run has made.
    fn is_synced(&self) -> bool;
    /// Takes in what has come. Is there something to do, whether or not there are events?
    fn poll_news(&mut self, context: &mut Context<'_>, events: &mut Vec<Self::Event>) -> bool;
    /// When there is something to do though nothing came.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// What is not told, and has to be looked at from time to time.
    fn look(&mut self) -> impl Future<Output = Vec<Self::Event>> + Send;
    fn step(&mut self, events: Vec<Self::Event>) -> Self::Step;
    /// The objects that the step has nothing to say of any more.
    fn forgotten(step: &Self::Step) -> &[Key];
    /// What may be taken in now that the step is done.
    fn released(&mut self) -> Vec<Self::Event> {
        Vec::new()
    }
    /// Says to the kernel what one step changes; gives what there is to say of it.
    fn change(&mut self, step: Self::Step) -> impl Future<Output = Result<Vec<(Key, Decision)>, String>> + Send;
    /// Says everything to the kernel, whatever it holds.
    fn whole(&mut self) -> impl Future<Output = Result<(), String>> + Send;
    /// How many objects there are, and how many elements the table holds: for logs.
    fn counts(&self) -> (usize, usize);
    /// What there is to say of all objects.
    fn decisions(&self) -> Vec<(Key, Decision)>;
    /// Why rules are refused; nothing once they are taken.
    fn tell_refused(&self, _why: Option<&str>) {}
    /// What is to be said beside a decision.
    fn remark(&self) -> Option<Wait> {
        None
    }
}

/// What is known of a table.
pub(crate) struct Table {
    words: Words,
    node_name: String,
    hands: Arc<dyn TableHands>,
    clock: Clock,
    journal: Arc<JournalBook>,
    counts: Arc<QueueCounts>,
    recorder: EventRecorder,
    backoff: Backoff,
    lost: BoxFuture<'static, ()>,
    /// The kernel is not known to hold what the mind thinks.
    is_unsure: bool,
    look_at: Instant,
    retry_at: Option<Instant>,
    /// Why the last transaction was refused.
    refused: Option<String>,
}

impl Table {
    pub(crate) fn new(
        words: Words,
        (node_name, client): (&str, &Client),
        hands: Arc<dyn TableHands>,
        clock: Clock,
        journal: Arc<JournalBook>,
    ) -> Self {
        Self {
            counts: journal.queue(words.by),
            recorder: EventRecorder::on_node(client.clone(), words.by, node_name),
            backoff: Backoff::new(BACKOFF_FIRST, words.backoff_max, 0),
            lost: lost(hands.clone()),
            is_unsure: true,
            look_at: Instant::now() + LOOK,
            retry_at: None,
            refused: None,
            node_name: node_name.to_owned(),
            words,
            hands,
            clock,
            journal,
        }
    }

    pub(crate) fn node_name(&self) -> &str {
        &self.node_name
    }

    pub(crate) fn tell(&mut self, event_type: EventType, reason: &str, message: &str) {
        // As kube-proxy does: the name stands for the uid, too.
        let about = ObjectReference {
            kind: "Node".into(),
            name: self.node_name.clone(),
            uid: self.node_name.clone(),
            ..ObjectReference::default()
        };
        self.recorder.record(&about, event_type, reason, message, (self.clock)());
    }

    /// A wait for the node.
    pub(crate) fn wait(&self, reason: &str, message: String) -> Wait {
        Wait::new(reason, message, Actor::Operator).on("Node", &self.node_name)
    }

    pub(crate) fn explain(&self, decisions: Vec<(Key, Decision)>, remark: Option<&Wait>) {
        let now = (self.clock)();
        for (key, mut decision) in decisions {
            decision.at = Some(now);
            if let Some(error) = &self.refused {
                let message = format!("node {} cannot change its packet rules: {error}", self.node_name);
                decision.effects.clear();
                decision.waits.push(self.wait(self.words.refused, message));
            }
            decision.waits.extend(remark.cloned());
            self.journal.record(&self.words.resource, &key, decision);
        }
    }
}

fn lost(hands: Arc<dyn TableHands>) -> BoxFuture<'static, ()> {
    Box::pin(async move { hands.lost().await })
}

/// Runs until `shutdown` is ready. The rules stay, and the next run goes on with them.
pub(crate) async fn run_table(mut running: impl TableLoop, shutdown: impl Future<Output = ()> + Send) {
    let mut shutdown = pin!(shutdown);
    tokio::select! {
        biased;
        () = &mut shutdown => {}
        () = follow(&mut running) => {}
    }
}

async fn follow<L: TableLoop>(running: &mut L) {
    let by = running.table().words.by;
    running.table().journal.begin(by);
    loop {
        let events = news(running).await;
        let step = think(running, events);
        if !running.is_synced() {
            continue;
        }
        put(running, step).await;
        let released = running.released();
        if !released.is_empty() {
            let step = think(running, released);
            put(running, step).await;
        }
    }
}

/// All there is, once there is something to do.
async fn news<L: TableLoop>(running: &mut L) -> Vec<L::Event> {
    let alarm = {
        let more = running.due();
        let table = running.table();
        let own = [table.retry_at, more].into_iter().flatten();
        tokio::time::sleep_until(own.fold(table.look_at, Instant::min))
    };
    let mut alarm = pin!(alarm);
    let was_synced = running.is_synced();
    let gather = std::future::poll_fn(|context| {
        let mut events = Vec::new();
        let mut is_ready = running.poll_news(context, &mut events) || running.is_synced() != was_synced;
        let table = running.table();
        let _: Poll<()> = table.recorder.poll(context);
        if table.lost.as_mut().poll(context).is_ready() {
            (table.lost, table.look_at, is_ready) = (lost(table.hands.clone()), Instant::now(), true);
        }
        is_ready |= !events.is_empty() || alarm.as_mut().poll(context).is_ready();
        if is_ready { Poll::Ready(events) } else { Poll::Pending }
    });
    let mut events = gather.await;
    if running.table().look_at <= Instant::now() {
        running.table().look_at = Instant::now() + LOOK;
        events.extend(running.look().await);
        look(running.table()).await;
    }
    events
}

fn think<L: TableLoop>(running: &mut L, events: Vec<L::Event>) -> L::Step {
    let counts = running.table().counts.clone();
    let node = Key::cluster(&*running.table().node_name);
    counts.count_adds(events.len());
    let begun = counts.thinking.begin(None);
    begun.about(Some(node.clone()), Some((NODES, node)));
    let step = running.step(events);
    drop(begun);
    let table = running.table();
    for key in L::forgotten(&step) {
        table.journal.retract(&table.words.resource, key, table.words.by);
    }
    step
}

/// Somebody may have emptied the whole ruleset.
async fn look(table: &mut Table) {
    let rules = table.words.rules;
    match table.hands.is_there().await {
        Ok(true) => {}
        // It is still to be made.
        Ok(false) if table.is_unsure => {}
        Ok(false) => {
            tracing::warn!("{rules} are gone; they are made anew");
            let message = format!("{rules} were removed, they are made anew");
            table.tell(EventType::Warning, table.words.gone, &message);
            table.is_unsure = true;
        }
        Err(error) => tracing::warn!(error, "cannot look at {rules}"),
    }
}

/// Says to the kernel what one step changes; everything where it is not known what it holds.
async fn put<L: TableLoop>(running: &mut L, step: L::Step) {
    let begin = Instant::now();
    let rules = running.table().words.rules;
    let is_whole = running.table().is_unsure;
    let decisions = if is_whole {
        if running.table().retry_at.is_some_and(|it| it > begin) {
            return;
        }
        running.whole().await.map(|()| running.decisions())
    } else {
        running.change(step).await
    };
    let decisions = match decisions {
        Ok(it) => it,
        Err(error) => return failed(running, &error),
    };
    if is_whole {
        let table = running.table();
        (table.is_unsure, table.retry_at, table.refused) = (false, None, None);
        table.backoff.reset();
        running.tell_refused(None);
        let (objects, elements) = running.counts();
        tracing::info!(objects, elements, took = ?begin.elapsed(), "{rules} are in place");
    }
    let remark = running.remark();
    running.table().explain(decisions, remark.as_ref());
}

fn failed<L: TableLoop>(running: &mut L, error: &str) {
    let table = running.table();
    let rules = table.words.rules;
    table.is_unsure = true;
    table.counts.count_retry();
    table.retry_at = Some(Instant::now() + table.backoff.delay());
    if table.refused.as_deref() == Some(error) {
        return tracing::debug!(error, "{rules} cannot be changed");
    }
    tracing::error!(error, "{rules} cannot be changed");
    table.tell(EventType::Warning, table.words.refused, error);
    table.refused = Some(error.to_owned());
    running.tell_refused(Some(error));
    let (decisions, remark) = (running.decisions(), running.remark());
    running.table().explain(decisions, remark.as_ref());
}

/// What a loop needs to know of an object beside what its mind does.
#[derive(Deserialize)]
pub(crate) struct OnlyMeta {
    pub(crate) metadata: ObjectMeta,
}

pub(crate) fn informer<T: DeserializeOwned + 'static>(client: &Client, params: InformerParams) -> Informer<T> {
    Informer::decoding(client.clone(), params, |bytes| {
        let meta: OnlyMeta = decode_projection(&bytes)?;
        Ok((Identity::of(&meta.metadata), decode(&bytes)?))
    })
}

/// Takes in what an informer has, up to a batch.
pub(crate) fn poll_informer<T: DeserializeOwned, E>(
    informer: &mut Informer<T>,
    context: &mut Context<'_>,
    events: &mut Vec<E>,
    applied: impl Fn(T) -> E,
    gone: impl Fn(Key) -> Option<E>,
) {
    poll_events(|context| informer.poll_event(context), context, events, applied, gone);
}

/// As [`poll_informer`], of whatever gives events.
pub(crate) fn poll_events<T, E>(
    mut poll_event: impl FnMut(&mut Context<'_>) -> Poll<InformerEvent<T>>,
    context: &mut Context<'_>,
    events: &mut Vec<E>,
    applied: impl Fn(T) -> E,
    gone: impl Fn(Key) -> Option<E>,
) {
    let mut n_taken = 0;
    while n_taken < BATCH
        && let Poll::Ready(event) = poll_event(context)
    {
        n_taken += 1;
        match event {
            InformerEvent::Applied(object, _) => events.push(applied(object)),
            InformerEvent::Deleted(meta) => events.extend(gone(meta.key())),
            InformerEvent::Synced(_) => {}
        }
    }
}
