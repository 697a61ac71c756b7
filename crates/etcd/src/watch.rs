//! A watch: a task reads etcd's stream into a queue, and goes on at another member where one is lost.
//!
//! What etcd sends says up to which revision everything has been told. Where this process knows of a newer one that no change
//! of the range brings, as of a key outside it, the member is asked to say so (`WatchProgressRequest`).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use corten_etcd_api::{Event, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchRequestKind, WatchResponse};
use corten_store::{BoxFuture, Change, Changes, Entry, Error, Limits, Range, Revision};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::{
    client::{Shared, WatchStream},
    failure::Failure,
    forgotten::Forgotten,
    keys::Keys,
    pause::Pause,
};

/// Most often the change itself is on its way.
const FIRST_PROGRESS_AFTER: Duration = Duration::from_millis(20);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// A member that tells nothing though there is something to tell is left after so long.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const CLOSE_WAIT: Duration = Duration::from_secs(2);
const DELETE: i32 = 1;

struct Queue {
    waiting: Mutex<Waiting>,
    wake: Arc<Notify>,
    forgotten: Arc<Forgotten>,
    limits: Limits,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Vec<Change>>,
    n_changes: usize,
    bytes: usize,
    /// Up to here all changes have been taken.
    taken: Revision,
    /// Up to here all changes are in the queue or have been taken.
    reached: Revision,
    end: Option<Error>,
}

impl Queue {
    /// False where nobody takes what comes: the watch is over.
    fn push(&self, batch: Vec<Change>, reached: Revision) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.n_changes += batch.len();
        waiting.bytes += size(&batch);
        waiting.reached = reached;
        if !batch.is_empty() {
            waiting.batches.push_back(batch);
        }
        // One batch is always taken.
        let is_behind = waiting.n_changes > self.limits.changes || waiting.bytes > self.limits.bytes;
        if is_behind && waiting.batches.len() > 1 {
            waiting.end = Some(Error::Compacted { asked: waiting.taken, oldest: reached });
            waiting.batches.clear();
        }
        self.wake.notify_one();
        waiting.end.is_none()
    }

    fn end(&self, error: Error) {
        self.waiting.lock().end.get_or_insert(error);
        self.wake.notify_one();
    }

    fn take(&self) -> Option<Result<Vec<Change>, Error>> {
        let mut waiting = self.waiting.lock();
        let first = waiting.batches.front().and_then(|it| it.first()).map(|it| it.revision);
        if first.is_some_and(|it| it <= self.forgotten.oldest()) && waiting.end.is_none() {
            waiting.end = Some(self.forgotten.error(waiting.taken));
        }
        match &waiting.end {
            Some(error @ Error::Compacted { .. }) => return Some(Err(error.clone())),
            Some(error) if first.is_none() => return Some(Err(error.clone())),
            _ => {}
        }
        let batch = waiting.batches.pop_front()?;
        waiting.n_changes -= batch.len();
        waiting.bytes -= size(&batch);
        waiting.taken = batch.last().map_or(waiting.taken, |it| it.revision);
        Some(Ok(batch))
    }
}

fn size(batch: &[Change]) -> usize {
    let of = |it: &Option<Entry>| it.as_ref().map_or(0, |it| it.key.len() + it.value.len());
    batch.iter().map(|it| it.key.len() + of(&it.entry) + of(&it.previous)).sum()
}

pub(crate) struct EtcdChanges {
    queue: Arc<Queue>,
    /// Dropped with the watch, which ends the task.
    _follower: JoinSet<()>,
}

impl EtcdChanges {
    pub(crate) fn begin(follower: Follower, limits: Limits) -> Self {
        let waiting = Waiting { taken: follower.position, reached: follower.position, ..Waiting::default() };
        let (wake, forgotten) = (Arc::default(), follower.forgotten.clone());
        let queue = Arc::new(Queue { waiting: Mutex::new(waiting), wake, forgotten, limits });
        let mut task = JoinSet::new();
        task.spawn(follower.run(queue.clone()));
        Self { queue, _follower: task }
    }
}

impl Changes for EtcdChanges {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Change>, Error>> {
        Box::pin(async move {
            loop {
                if let Some(ready) = self.ready() {
                    return ready;
                }
                self.queue.wake.notified().await;
            }
        })
    }

    fn ready(&mut self) -> Option<Result<Vec<Change>, Error>> {
        self.queue.take()
    }

    fn woken(&self) -> BoxFuture<'static, ()> {
        let wake = self.queue.wake.clone();
        Box::pin(async move { wake.notified().await })
    }

    fn progress(&self) -> Option<Revision> {
        let waiting = self.queue.waiting.lock();
        (waiting.end.is_none() && waiting.batches.is_empty()).then_some(waiting.reached)
    }
}

/// Reads the stream of one watch.
pub(crate) struct Follower {
    pub(crate) client: Shared,
    pub(crate) keys: Keys,
    pub(crate) forgotten: Arc<Forgotten>,
    pub(crate) range: Range,
    /// Up to here all changes are known.
    pub(crate) position: Revision,
    pub(crate) closing: watch::Receiver<bool>,
}

/// Why a stream has ended.
enum End {
    /// The watch cannot go on at all: its reader gets the error.
    Of(Error),
    /// The connection broke: the watch goes on in another stream.
    Lost(Failure),
    /// The watch's reader is gone.
    Left,
}

impl Follower {
    async fn run(mut self, queue: Arc<Queue>) {
        let mut pause = Pause::default();
        loop {
            let position = self.position;
            let failure = match self.follow(&queue).await {
                End::Of(error) => return queue.end(error),
                End::Left => return,
                End::Lost(failure) => failure,
            };
            self.client.leave(&failure.member);
            if self.position > position {
                pause.begin_anew();
            }
            tracing::debug!(error = %failure, after = self.position, "a watch goes on in another stream");
            tokio::select! {
                biased;
                _ = self.closing.wait_for(|it| *it) => return queue.end(Error::Closed),
                () = pause.pass() => {}
            }
        }
    }

    async fn follow(&mut self, queue: &Queue) -> End {
        let beginning = self.client.watch(self.request());
        let mut stream = match beginning.await {
            Ok(stream) => stream,
            Err(failure) => return End::Lost(failure),
        };
        let mut newest = self.client.follow_newest();
        let (mut parts, mut heard, mut asked) = (Vec::new(), Instant::now(), None::<Instant>);
        let mut end = None::<Instant>;
        loop {
            let is_behind = *newest.borrow_and_update() > self.position;
            if *self.closing.borrow() {
                let end = *end.get_or_insert_with(|| Instant::now() + CLOSE_WAIT);
                if !is_behind || Instant::now() >= end {
                    return End::Of(Error::Closed);
                }
            }
            let next = asked.map_or(heard + FIRST_PROGRESS_AFTER, |it| it + PROGRESS_EVERY);
            tokio::select! {
                biased;
                response = stream.responses.message() => {
                    match self.take(response, &stream, &mut parts, queue) {
                        Ok(()) => (heard, asked) = (Instant::now(), None),
                        Err(end) => return end,
                    }
                }
                () = sleep_until(next), if is_behind => {
                    if heard.elapsed() > SILENCE_MAX {
                        return End::Lost(Failure::late(&stream.member));
                    }
                    // Where it is full, the member has been asked.
                    let _ = stream.requests.try_send(progress_request());
                    asked = Some(Instant::now());
                }
                // It is behind only from now on.
                changed = newest.changed(), if !is_behind => {
                    heard = Instant::now();
                    if changed.is_err() {
                        return End::Left;
                    }
                }
                _ = self.closing.changed(), if end.is_none() => {}
            }
        }
    }

    fn request(&self) -> WatchRequest {
        let within = self.keys.range(&self.range);
        WatchRequest {
            request: Some(WatchRequestKind::Create(WatchCreateRequest {
                key: within.key,
                range_end: within.end,
                start_revision: (self.position + 1).cast_signed(),
                progress_notify: true,
                prev_kv: true,
                fragment: true,
                ..Default::default()
            })),
        }
    }

    fn take(
        &mut self,
        response: Result<Option<WatchResponse>, tonic::Status>,
        stream: &WatchStream,
        parts: &mut Vec<Event>,
        queue: &Queue,
    ) -> Result<(), End> {
        let lost = |it: &tonic::Status| End::Lost(Failure::of(&stream.member, it));
        let response = response.map_err(|it| lost(&it))?;
        let response = response.ok_or_else(|| lost(&tonic::Status::unavailable("it has ended the watch")))?;
        self.client.believe(&stream.member, response.header.as_ref()).map_err(End::Lost)?;
        if response.canceled {
            return Err(self.canceled(&response, stream));
        }
        if response.created {
            return Ok(());
        }
        let is_progress = response.events.is_empty() && parts.is_empty();
        if is_progress {
            let reached = response.header.as_ref().map_or(0, |it| it.revision.unsigned_abs());
            self.position = self.position.max(reached);
        }
        parts.extend(response.events);
        if response.fragment {
            return Ok(());
        }
        let mut changes: Vec<Change> = parts.drain(..).filter_map(|it| self.change(it)).collect();
        // Within a transaction in the order of keys, as every engine tells them.
        changes.sort_by(|a, b| (a.revision, &a.key).cmp(&(b.revision, &b.key)));
        self.position = changes.last().map_or(self.position, |it| it.revision);
        if queue.push(changes, self.position) { Ok(()) } else { Err(End::Left) }
    }

    fn canceled(&self, response: &WatchResponse, stream: &WatchStream) -> End {
        let oldest = response.compact_revision.unsigned_abs();
        if oldest > 0 {
            self.forgotten.note(oldest);
            return End::Of(self.forgotten.error(self.position));
        }
        let reason = if response.cancel_reason.is_empty() { "no reason is given" } else { &*response.cancel_reason };
        End::Lost(Failure::of(&stream.member, &tonic::Status::unavailable(format!("it cancels the watch: {reason}"))))
    }

    /// `None` for what a stream before this one has told.
    fn change(&self, event: Event) -> Option<Change> {
        let kv = event.kv?;
        let revision = kv.mod_revision.unsigned_abs();
        if revision <= self.position {
            return None;
        }
        let previous = event.prev_kv.map(|it| self.keys.entry(it));
        let entry = self.keys.entry(kv);
        let key = entry.key.clone();
        Some(Change { revision, key, entry: (event.kind != DELETE).then_some(entry), previous })
    }
}

fn progress_request() -> WatchRequest {
    WatchRequest { request: Some(WatchRequestKind::Progress(WatchProgressRequest {})) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(revision: Revision) -> Vec<Change> {
        vec![Change { revision, key: "/registry/a".into(), entry: None, previous: None }]
    }

    fn queue(changes: usize) -> Queue {
        let limits = Limits { changes, bytes: 1_000 };
        Queue { waiting: Mutex::default(), wake: Arc::default(), forgotten: Arc::default(), limits }
    }

    #[test]
    fn who_does_not_take_what_comes_is_told_so() {
        let queue = queue(3);
        assert!((2..5).all(|it| queue.push(change(it), it)));
        assert!(matches!(queue.take(), Some(Ok(it)) if it[0].revision == 2));
        assert!(queue.push(change(5), 5));
        assert!(!queue.push(change(6), 6));
        for _ in 0..2 {
            assert!(matches!(queue.take(), Some(Err(Error::Compacted { asked: 2, oldest: 6 }))));
        }
    }

    #[test]
    fn what_was_told_before_the_end_is_taken_first() {
        let queue = queue(3);
        assert!(queue.push(change(2), 2));
        queue.end(Error::Closed);
        assert!(matches!(queue.take(), Some(Ok(_))));
        assert!(matches!(queue.take(), Some(Err(Error::Closed))));
    }
}
