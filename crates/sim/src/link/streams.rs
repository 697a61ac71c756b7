//! A watch over a link: a task carries what the store tells, and asks how far that is where the link knows of more.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use corten_store::{BoxFuture, Change, Changes, Error, Range, Revision, Store};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{Link, Trouble};

/// Most often the change itself is on its way.
const PROGRESS_AFTER: Duration = Duration::from_millis(20);
/// What was asked in vain is asked again.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Until a stream that broke is begun again.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Vec<Change>>,
    /// Up to here all changes are in the queue or have been taken.
    reached: Revision,
    end: Option<Error>,
}

impl Queue {
    fn push(&self, batch: Vec<Change>, reached: Revision) {
        let mut waiting = self.waiting.lock();
        waiting.reached = reached;
        if !batch.is_empty() {
            waiting.batches.push_back(batch);
        }
        self.wake.notify_one();
    }

    fn end(&self, error: Error) {
        self.waiting.lock().end.get_or_insert(error);
        self.wake.notify_one();
    }

    fn take(&self) -> Option<Result<Vec<Change>, Error>> {
        let mut waiting = self.waiting.lock();
        match waiting.batches.pop_front() {
            Some(batch) => Some(Ok(batch)),
            None => waiting.end.clone().map(Err),
        }
    }
}

struct LinkedChanges {
    queue: Arc<Queue>,
    /// Dropped with the watch, which ends the task.
    _follower: JoinSet<()>,
}

impl Changes for LinkedChanges {
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

pub(super) fn begin(link: Arc<Link>, range: Range, after: Revision) -> Box<dyn Changes> {
    let queue = Arc::new(Queue::default());
    queue.waiting.lock().reached = after;
    let mut follower = JoinSet::new();
    follower.spawn(Follower { link, range, position: after }.run(queue.clone()));
    Box::new(LinkedChanges { queue, _follower: follower })
}

struct Follower {
    link: Arc<Link>,
    range: Range,
    /// Up to here all changes have come.
    position: Revision,
}

/// A stream that begins anew.
struct Broken;

impl Follower {
    async fn run(mut self, queue: Arc<Queue>) {
        let link = self.link.clone();
        let error = tokio::select! {
            biased;
            () = link.is_closed.until(|it| it) => Error::Closed,
            error = self.follow_on(&queue) => error,
        };
        queue.end(error);
    }

    async fn follow_on(&mut self, queue: &Queue) -> Error {
        loop {
            match self.follow(queue).await {
                Ok(error) => return error,
                Err(Broken) => sleep(PAUSE).await,
            }
            let newest = self.link.store.revision();
            if newest > self.position && self.link.levers.forget(&self.link.dice) {
                return Error::Compacted { asked: self.position, oldest: newest };
            }
        }
    }

    /// One stream, from where the last one came to.
    async fn follow(&mut self, queue: &Queue) -> Result<Error, Broken> {
        self.link.levers.until(Trouble::passes_there).await;
        let n_breaks = self.link.levers.n_breaks();
        let mut changes = match self.link.store.watch(self.range.clone(), self.position).await {
            Ok(changes) => changes,
            Err(error) => return Ok(error),
        };
        let mut heard = Instant::now();
        loop {
            let is_behind = self.link.newest.get() > self.position;
            let (batch, reached) = tokio::select! {
                biased;
                () = self.link.levers.broken(n_breaks) => return Err(Broken),
                batch = changes.next() => match batch {
                    Ok(batch) => {
                        let reached = batch.last().map_or(self.position, |it| it.revision);
                        (batch, reached)
                    }
                    Err(error) => return Ok(error),
                },
                () = sleep_until(heard + PROGRESS_AFTER), if is_behind => {
                    if !self.link.levers.trouble().passes_there() {
                        heard = Instant::now() + PROGRESS_EVERY;
                        continue;
                    }
                    // What comes first of these is told, and then how far that is.
                    let reached = self.link.store.revision();
                    let mut all = Vec::new();
                    while let Some(batch) = changes.ready() {
                        match batch {
                            Ok(batch) => all.extend(batch),
                            Err(error) => return Ok(error),
                        }
                    }
                    (all, reached)
                }
                () = self.link.newest.until(|it| it > self.position), if !is_behind => {
                    heard = Instant::now();
                    continue;
                }
            };
            self.come(n_breaks).await?;
            self.position = reached;
            heard = Instant::now();
            queue.push(batch, reached);
        }
    }

    /// The way of what the store tells. What is on it when the stream breaks is lost.
    async fn come(&self, n_breaks: u64) -> Result<(), Broken> {
        let coming = async {
            sleep(self.link.latency()).await;
            self.link.levers.until(Trouble::streams).await;
            self.link.levers.freezer.thawed().await;
        };
        tokio::select! {
            biased;
            () = self.link.levers.broken(n_breaks) => Err(Broken),
            () = coming => Ok(()),
        }
    }
}
