//! What changes anything: one batch of transactions after the other becomes one durable frame.

use std::{
    io, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::{
    Options,
    checkpoint::{self, RunningCheckpoint},
    disk::{CHECKPOINT, Disk, LOG},
    log::{AppendError, Log},
    reserve::{Reserve, is_full},
};
use crate::{Change, Error, Outcome, mvcc::Mvcc, snapshot::Snapshot, work::Work};

/// A batch ends at the transaction that reaches one of these.
const BATCH_TXNS: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;
/// A full disk is worth a checkpoint that frees so much.
const GAIN_MIN: u64 = 64 << 10;
const GAIN_PART: u64 = 16;
/// A change that makes an object larger by no more is written as long as a checkpoint has room.
const LITTLE: u64 = 2 << 10;
/// How long after a checkpoint that failed on a full disk.
const RETRY: Duration = Duration::from_secs(5);

pub(super) struct Request {
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Outcome, Error>>,
}

pub(super) struct Writer {
    mvcc: Arc<Mvcc>,
    disk: Disk,
    log: Log,
    options: Options,
    /// What went wrong so badly that nothing more is written until the store is opened again.
    refusal: Option<Error>,
    checkpoint: Option<RunningCheckpoint>,
    /// The log's length at which the next checkpoint is tried.
    checkpoint_at: u64,
    reserve: Reserve,
    /// The last write had no room.
    is_tight: bool,
    /// No checkpoint for want of room before this: the last one failed.
    next_try: Option<Instant>,
    checkpoint_policy: CheckpointPolicy,
}

/// May a write make room first, by a checkpoint, which takes longer the more data there are?
#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckpointPolicy {
    Allowed,
    /// The caller has others to serve and cannot wait for one.
    Forbidden,
    /// It is forbidden, and the write cannot be done without one.
    Needed,
}

/// Works the queue off; ends when nobody can send any more and it is empty.
pub(super) fn run(writer: &Mutex<Writer>, mut queue: mpsc::Receiver<Request>) {
    while let Some(first) = queue.blocking_recv() {
        // Whoever commits beside the queue is let finish first; what is queued meanwhile joins the batch.
        let mut writer = writer.lock();
        let (txns, answers): (Vec<_>, Vec<_>) = batch(first, &mut queue).into_iter().map(Request::split).unzip();
        let results = writer.commit(txns);
        drop(writer);
        for (answer, result) in answers.into_iter().zip(results) {
            // Who does not wait for the answer any more does not get one.
            let _ = answer.send(result);
        }
    }
    writer.lock().finish();
}

fn batch(first: Request, queue: &mut mpsc::Receiver<Request>) -> Vec<Request> {
    let mut bytes = first.work.size();
    let mut batch = vec![first];
    while batch.len() < BATCH_TXNS
        && bytes < BATCH_BYTES
        && let Ok(request) = queue.try_recv()
    {
        bytes += request.work.size();
        batch.push(request);
    }
    batch
}

impl Request {
    fn split(self) -> (Work, oneshot::Sender<Result<Outcome, Error>>) {
        (self.work, self.answer)
    }
}

impl Writer {
    pub(super) fn new(mvcc: Arc<Mvcc>, disk: Disk, log: Log, options: Options) -> Self {
        let checkpoint_at = options.log_bytes_min.max(mvcc.newest().bytes);
        let reserve = Reserve::open(&disk, &mvcc.newest());
        Self {
            mvcc,
            disk,
            log,
            options,
            refusal: None,
            checkpoint: None,
            checkpoint_at,
            reserve,
            is_tight: false,
            next_try: None,
            checkpoint_policy: CheckpointPolicy::Allowed,
        }
    }

    /// Writes one transaction, where that takes no longer than a sync does. `None` where room must be made first, and nothing was
    /// written: the queue is for that.
    pub(super) fn commit_at_once(&mut self, work: &Work) -> Option<Result<Outcome, Error>> {
        if self.is_tight {
            return None;
        }
        self.checkpoint_policy = CheckpointPolicy::Forbidden;
        let result = self.commit_together(vec![work.clone()]).pop().expect("an answer for each transaction");
        let checkpoint_policy = mem::replace(&mut self.checkpoint_policy, CheckpointPolicy::Allowed);
        (checkpoint_policy == CheckpointPolicy::Forbidden).then_some(result)
    }

    /// An answer for each transaction, in order.
    pub(super) fn commit(&mut self, txns: Vec<Work>) -> Vec<Result<Outcome, Error>> {
        // What is too much shall not keep from being written what is not: one that deletes.
        if self.is_tight {
            return txns.into_iter().flat_map(|it| self.commit_together(vec![it])).collect();
        }
        self.commit_together(txns)
    }

    /// Tries transactions in order, makes what they change durable together, and shows it.
    fn commit_together(&mut self, txns: Vec<Work>) -> Vec<Result<Outcome, Error>> {
        let mut draft = self.mvcc.newest();
        let mut changes = Vec::new();
        let outcomes: Vec<_> = txns.into_iter().map(|it| it.apply(&mut draft, &mut changes)).collect();

        let written = if changes.is_empty() { Ok(()) } else { self.append(&draft, &changes) };
        if written.is_ok() && !changes.is_empty() {
            self.mvcc.publish(draft, changes);
        }
        self.checkpoint_if_due();
        // Also a conflict may rest on what was not written.
        outcomes.into_iter().map(|it| written.clone().and(it)).collect()
    }

    fn finish(&mut self) {
        if let Some(running) = self.checkpoint.take() {
            running.cancel();
        }
        if let Err(error) = self.log.finish() {
            tracing::debug!(%error, "cannot cut off what the log did not use");
        }
    }

    pub(super) fn is_tight(&self) -> bool {
        self.is_tight
    }

    /// A write failed half way, and the files are those that were opened.
    pub(super) fn must_be_reopened(&self) -> bool {
        self.refusal.is_some() && self.disk.check().is_ok()
    }

    /// What keeps the next write from being durable.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        self.disk.check().and_then(|()| self.log.check()).map_err(|error| Error::Io(error.to_string()))
    }

    fn append(&mut self, draft: &Snapshot, changes: &[Change]) -> Result<(), Error> {
        self.check().inspect_err(|error| tracing::error!(%error, "a write is refused"))?;
        let newest = self.mvcc.newest();
        let is_more = draft.n_entries() > newest.n_entries();
        // Whoever is to be deleted is told so first, and what failed says why.
        let little = LITTLE * changes.len() as u64;
        let grows = is_more || draft.bytes > newest.bytes + little;
        if is_more || draft.bytes > newest.bytes {
            let held = self.hold_room(draft);
            if grows || self.checkpoint_policy == CheckpointPolicy::Needed || !self.reserve.covers(draft) {
                held?;
            }
        }
        let mut appended = self.log.append(changes);
        let ways: [fn(&mut Self, &Snapshot) -> bool; 2] =
            [|this, _| this.checkpoint_for_room(), |this, draft| this.reserve.yield_to_log(draft)];
        for make_room in ways.into_iter().take(if grows { 1 } else { ways.len() }) {
            while let Err(AppendError::Undone(error)) = &appended
                && is_full(error)
                && self.checkpoint_policy != CheckpointPolicy::Needed
                && make_room(self, draft)
            {
                appended = self.log.append(changes);
            }
        }
        if let (CheckpointPolicy::Needed, Err(AppendError::Undone(error))) = (self.checkpoint_policy, &appended) {
            return Err(Error::Io(error.to_string()));
        }
        self.is_tight = match &appended {
            Err(AppendError::Undone(error)) => is_full(error),
            Err(AppendError::Torn(_)) => false,
            Ok(()) => self.is_tight && !grows,
        };
        appended.map_err(|error| match error {
            AppendError::Undone(error) => {
                tracing::error!(%error, "cannot write to the log");
                Error::Io(error.to_string())
            }
            AppendError::Torn(error) => {
                tracing::error!(%error, "cannot write to the log, refusing writes from now on");
                let message = format!("{error}; after this failure writes are refused until the store is reopened");
                self.refusal = Some(Error::Io(message.clone()));
                Error::Io(message)
            }
        })
    }

    /// What lives may grow only where a checkpoint of it has room.
    fn hold_room(&mut self, draft: &Snapshot) -> Result<(), Error> {
        let mut held = self.reserve.hold(draft);
        if held.as_ref().is_err_and(is_full) && self.checkpoint_for_room() {
            held = self.reserve.hold(draft);
        }
        if let (CheckpointPolicy::Needed, Err(error)) = (self.checkpoint_policy, &held) {
            return Err(Error::Io(error.to_string()));
        }
        self.is_tight = held.is_err();
        held.map_err(|error| {
            tracing::error!(%error, "a write is refused: there is no room for a checkpoint of what would live");
            Error::Io(format!(
                "{error}: room for a copy of the data is held back, and this needs more; delete something, or make room"
            ))
        })
    }

    /// Writes a checkpoint into the room held back for it, where what is dead is worth it.
    fn checkpoint_for_room(&mut self) -> bool {
        if self.checkpoint_policy != CheckpointPolicy::Allowed {
            self.checkpoint_policy = CheckpointPolicy::Needed;
            return false;
        }
        if let Some(running) = self.checkpoint.take() {
            // Whether it went well or was given up, it leaves room behind.
            running.join();
            return true;
        }
        let newest = self.mvcc.newest();
        let gain_min = GAIN_MIN.max(newest.bytes / GAIN_PART);
        let is_there = [LOG, CHECKPOINT].iter().any(|it| self.disk.path(newest.revision, it).exists());
        let used = self.disk.used().unwrap_or(0);
        // Nothing has changed since a checkpoint that is there: nothing is dead.
        if is_there
            || used < checkpoint::size_max(&newest) + gain_min
            || self.next_try.is_some_and(|it| Instant::now() < it)
        {
            return false;
        }
        let written = self.write_checkpoint(&newest);
        self.checkpoint_at = self.options.log_bytes_min.max(newest.bytes);
        self.next_try = written.is_err().then(|| Instant::now() + RETRY);
        match &written {
            Ok(()) => tracing::warn!("the disk is full: a checkpoint was written, and what was dead is free"),
            Err(error) => tracing::error!(%error, "the disk is full, and a checkpoint cannot be written"),
        }
        written.is_ok()
    }

    fn write_checkpoint(&mut self, newest: &Snapshot) -> io::Result<()> {
        // What the old log did not use is room, and the next one has a header at least.
        self.log.finish()?;
        self.log = match Log::create(&self.disk, newest.revision, self.options.log_ahead) {
            Err(error) if is_full(&error) && self.reserve.yield_to_log(newest) => {
                Log::create(&self.disk, newest.revision, self.options.log_ahead)?
            }
            created => created?,
        };
        self.reserve.write_checkpoint(newest)
    }

    fn checkpoint_if_due(&mut self) {
        if self.log.length() < self.checkpoint_at || self.refusal.is_some() {
            return;
        }
        match self.checkpoint.take() {
            Some(running) if !running.is_finished() => {
                self.checkpoint = Some(running);
                return;
            }
            Some(finished) => finished.join(),
            None => {}
        }
        let snapshot = self.mvcc.newest();
        let distance = self.options.log_bytes_min.max(snapshot.bytes);
        let begun = Log::create(&self.disk, snapshot.revision, self.options.log_ahead).and_then(|log| {
            if let Err(error) = mem::replace(&mut self.log, log).finish() {
                tracing::debug!(%error, "cannot cut off what the old log did not use");
            }
            RunningCheckpoint::start(self.disk.clone(), snapshot)
        });
        match begun {
            Ok(running) => self.checkpoint = Some(running),
            Err(error) => tracing::warn!(%error, "cannot begin a checkpoint, the log goes on growing"),
        }
        self.checkpoint_at = self.log.length() + distance;
    }
}
