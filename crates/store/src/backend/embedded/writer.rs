//! What changes anything: one batch of transactions after the other becomes one durable frame.

use std::{mem, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::{
    Options,
    checkpoint::Running,
    disk::Disk,
    log::{AppendError, Log},
};
use crate::{Error, Outcome, Txn, mvcc::Mvcc};

/// A batch ends at the transaction that reaches one of these.
const BATCH_TXNS: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

pub(super) struct Request {
    pub(super) txn: Txn,
    pub(super) answer: oneshot::Sender<Result<Outcome, Error>>,
}

pub(super) struct Writer {
    mvcc: Arc<Mvcc>,
    disk: Disk,
    log: Log,
    options: Options,
    /// What went wrong so badly that nothing more is written until the store is opened again.
    refusal: Option<Error>,
    checkpoint: Option<Running>,
    /// The log's length at which the next checkpoint is tried.
    checkpoint_at: u64,
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
    let mut bytes = first.txn.size();
    let mut batch = vec![first];
    while batch.len() < BATCH_TXNS
        && bytes < BATCH_BYTES
        && let Ok(request) = queue.try_recv()
    {
        bytes += request.txn.size();
        batch.push(request);
    }
    batch
}

impl Request {
    fn split(self) -> (Txn, oneshot::Sender<Result<Outcome, Error>>) {
        (self.txn, self.answer)
    }
}

impl Writer {
    pub(super) fn new(mvcc: Arc<Mvcc>, disk: Disk, log: Log, options: Options) -> Self {
        let checkpoint_at = options.log_bytes_min.max(mvcc.newest().bytes);
        Self { mvcc, disk, log, options, refusal: None, checkpoint: None, checkpoint_at }
    }

    /// Tries transactions in order, makes what they change durable together, and shows it. An answer for each.
    pub(super) fn commit(&mut self, txns: Vec<Txn>) -> Vec<Result<Outcome, Error>> {
        let mut draft = self.mvcc.newest();
        let mut changes = Vec::new();
        let outcomes: Vec<_> = txns.into_iter().map(|it| draft.apply(it, &mut changes)).collect();

        let written = if changes.is_empty() { Ok(()) } else { self.append(&changes) };
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

    /// What keeps the next write from being durable.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        self.disk.check().and_then(|()| self.log.check()).map_err(|error| Error::Io(error.to_string()))
    }

    fn append(&mut self, changes: &[crate::Change]) -> Result<(), Error> {
        self.check().inspect_err(|error| tracing::error!(%error, "a write is refused"))?;
        self.log.append(changes).map_err(|error| match error {
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
            Running::start(self.disk.clone(), snapshot)
        });
        match begun {
            Ok(running) => self.checkpoint = Some(running),
            Err(error) => tracing::warn!(%error, "cannot begin a checkpoint, the log goes on growing"),
        }
        self.checkpoint_at = self.log.length() + distance;
    }
}
