//! A watch's changes as they are seen above.

use std::sync::Arc;

use corten_store::{BoxFuture, Change, Changes, Error, Range, Revision};

use crate::{
    ranges::{self, Asked},
    shared::Shared,
};

pub(crate) struct ReadChanges {
    shared: Arc<Shared>,
    inner: Box<dyn Changes>,
    asked: Asked,
    /// Why it ended.
    ended: Option<Error>,
}

impl ReadChanges {
    pub(crate) fn new(shared: Arc<Shared>, inner: Box<dyn Changes>, asked: Asked) -> Self {
        Self { shared, inner, asked, ended: None }
    }

    fn above(&self, batch: Vec<Change>) -> Result<Vec<Change>, Error> {
        Ok(match &self.asked {
            Asked::Stored(range) => {
                let mut changes = Vec::with_capacity(batch.len());
                for change in batch {
                    let records = records_changed(&change, range)?;
                    changes.push(self.read(change));
                    changes.extend(records);
                }
                changes
            }
            Asked::Addresses(range) => within(range, batch.iter().filter_map(address_change).collect()),
            Asked::Ports(range) => {
                let mut changes = Vec::new();
                for change in &batch {
                    changes.extend(ports_changed(change)?);
                }
                within(range, changes)
            }
        })
    }

    fn read(&self, mut change: Change) -> Change {
        if let Some(entry) = &mut change.entry {
            self.shared.read_change(entry);
        }
        // Nobody asks for the content of what is past: it would cost a reading of each change.
        if let Some(previous) = &mut change.previous
            && corten_cacher::watch_cache::resource_of_key(&previous.key).is_some()
        {
            previous.unreadable.get_or_insert_with(|| "what stood there before is not read".into());
        }
        change
    }
}

fn within(range: &Range, mut changes: Vec<Change>) -> Vec<Change> {
    changes.retain(|it| range.contains(&it.key));
    changes
}

/// What a change of a stored key changes of the records that are seen above it.
fn records_changed(change: &Change, range: &Range) -> Result<Vec<Change>, Error> {
    if change.key.starts_with(ranges::IP_ADDRESSES) && range.contains(ranges::ADDRESSES) {
        return Ok(address_change(change).into_iter().collect());
    }
    if change.key == ranges::ALLOCATION && range.contains(ranges::PORTS) {
        return ports_changed(change);
    }
    Ok(Vec::new())
}

/// An address is given when its IPAddress comes, and free when that goes.
fn address_change(change: &Change) -> Option<Change> {
    if change.entry.is_some() && change.previous.is_some() {
        return None;
    }
    let above = |it: &Option<_>| it.as_ref().and_then(ranges::address_entry);
    let key = [ranges::ADDRESSES, change.key.strip_prefix(ranges::IP_ADDRESSES)?].concat().into();
    Some(Change { revision: change.revision, key, entry: above(&change.entry), previous: above(&change.previous) })
}

/// # Errors
/// Where it is not known what stood there before: whoever watches reads all of it again.
fn ports_changed(change: &Change) -> Result<Vec<Change>, Error> {
    let is_new = |it: &corten_store::Entry| it.create_revision == it.mod_revision;
    if change.previous.is_none() && !change.entry.as_ref().is_some_and(is_new) {
        return Err(Error::Compacted { asked: 0, oldest: change.revision });
    }
    ranges::port_changes(change.previous.as_ref(), change.entry.as_ref(), change.revision).map_err(Error::Io)
}

impl Changes for ReadChanges {
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
        if let Some(error) = &self.ended {
            return Some(Err(error.clone()));
        }
        loop {
            let batch = match self.inner.ready()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            match self.above(batch) {
                // Nothing of it is seen above.
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => return Some(Ok(changes)),
                Err(error) => {
                    self.ended = Some(error.clone());
                    return Some(Err(error));
                }
            }
        }
    }

    fn progress(&self) -> Option<Revision> {
        self.inner.progress()
    }

    fn woken(&self) -> BoxFuture<'static, ()> {
        self.inner.woken()
    }
}
