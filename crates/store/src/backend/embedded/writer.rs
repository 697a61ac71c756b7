//! The one thread that changes anything: a batch from the queue becomes one durable frame.

use std::{mem, sync::Arc};

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
    queue: mpsc::Receiver<Request>,
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

impl Writer {
    pub(super) fn new(queue: mpsc::Receiver<Request>, mvcc: Arc<Mvcc>, disk: Disk, log: Log, options: Options) -> Self {
        let checkpoint_at = options.log_bytes_min.max(mvcc.newest().bytes);
        Self { queue, mvcc, disk, log, options, refusal: None, checkpoint: None, checkpoint_at }
    }

    /// Ends when nobody can send any more and the queue is empty.
    pub(super) fn run(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            let batch = self.batch(first);
            self.commit(batch);
            self.checkpoint_if_due();
        }
        if let Some(running) = self.checkpoint.take() {
            running.cancel();
        }
        if let Err(error) = self.log.finish() {
            tracing::debug!(%error, "cannot cut off what the log did not use");
        }
    }

    fn batch(&mut self, first: Request) -> Vec<Request> {
        let mut bytes = first.txn.size();
        let mut batch = vec![first];
        while batch.len() < BATCH_TXNS
            && bytes < BATCH_BYTES
            && let Ok(request) = self.queue.try_recv()
        {
            bytes += request.txn.size();
            batch.push(request);
        }
        batch
    }

    fn commit(&mut self, batch: Vec<Request>) {
        let mut draft = self.mvcc.newest();
        let mut changes = Vec::new();
        let mut answers = Vec::with_capacity(batch.len());
        for Request { txn, answer } in batch {
            answers.push((answer, draft.apply(txn, &mut changes)));
        }

        let written = if changes.is_empty() { Ok(()) } else { self.append(&changes) };
        if written.is_ok() && !changes.is_empty() {
            self.mvcc.publish(draft, changes);
        }
        for (answer, outcome) in answers {
            // Also a conflict may rest on what was not written.
            let result = written.clone().and(outcome);
            // Who does not wait for the answer any more does not get one.
            let _ = answer.send(result);
        }
    }

    fn append(&mut self, changes: &[crate::Change]) -> Result<(), Error> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
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
