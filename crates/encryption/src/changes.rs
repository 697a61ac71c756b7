//! A watch's changes, opened in their order. What needs a plugin's answer, and all after it, waits for that.

use std::{mem, sync::Arc};

use corten_store::{BoxFuture, Change, Changes, Error, Revision};
use tokio::sync::watch;

use crate::shared::{Missing, Shared, fetch};

pub(crate) struct OpenedChanges {
    shared: Arc<Shared>,
    inner: Box<dyn Changes>,
    /// A batch, of which the first so many are open.
    held: Vec<Change>,
    n_opened: usize,
    /// What the next one waits for.
    missing: Option<Missing>,
    reopened: watch::Receiver<u64>,
    at_start: u64,
}

impl OpenedChanges {
    pub(crate) fn new(shared: Arc<Shared>, inner: Box<dyn Changes>, reopened: watch::Receiver<u64>) -> Self {
        let at_start = *reopened.borrow();
        Self { shared, inner, held: Vec::new(), n_opened: 0, missing: None, reopened, at_start }
    }

    /// Opens what is held as far as that needs no plugin. True where all of it is open.
    fn open(&mut self) -> bool {
        self.missing = None;
        for change in &mut self.held[self.n_opened..] {
            if let Some(entry) = &mut change.entry {
                self.missing = self.shared.open_entry(entry);
                if self.missing.is_some() {
                    return false;
                }
            }
            // No plugin is asked for what is past.
            if let Some(previous) = &mut change.previous
                && self.shared.open_entry(previous).is_some()
            {
                previous.unreadable = Some("the KMS plugin was not asked for its seed".into());
            }
            self.shared.note(&change.key, change.entry.as_ref().is_none_or(|it| it.unreadable.is_none()));
            self.n_opened += 1;
        }
        true
    }
}

impl Changes for OpenedChanges {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Change>, Error>> {
        Box::pin(async move {
            loop {
                if let Some(ready) = self.ready() {
                    return ready;
                }
                self.woken().await;
            }
        })
    }

    fn ready(&mut self) -> Option<Result<Vec<Change>, Error>> {
        if *self.reopened.borrow() != self.at_start {
            // What could not be read before is read by who reads everything again.
            return Some(Err(Error::Compacted { asked: 0, oldest: 1 }));
        }
        if self.held.is_empty() {
            match self.inner.ready()? {
                Ok(batch) => self.held = batch,
                Err(error) => return Some(Err(error)),
            }
        }
        if !self.open() {
            return None;
        }
        self.n_opened = 0;
        Some(Ok(mem::take(&mut self.held)))
    }

    fn progress(&self) -> Option<Revision> {
        if self.held.is_empty() { self.inner.progress() } else { None }
    }

    fn woken(&self) -> BoxFuture<'static, ()> {
        if let Some((kms, object)) = &self.missing {
            let missing = (kms.clone(), object.clone());
            return Box::pin(fetch(vec![missing]));
        }
        let (inner, at_start) = (self.inner.woken(), self.at_start);
        let mut reopened = self.reopened.clone();
        Box::pin(async move {
            tokio::select! {
                () = inner => {}
                // The store that tells of it outlives its watches.
                _ = reopened.wait_for(|it| *it != at_start) => {}
            }
        })
    }
}
