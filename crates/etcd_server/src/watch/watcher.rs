//! One watch: what it is told of the changes of its range.

use corten_etcd_api::{Event, KeyValue, WatchCreateRequest, WatchResponse};
use corten_store::{BoxFuture, Change, Changes, Error, Range, Revision};
use prost::Message;

use crate::{core::Core, keys, kv::REQUEST_BYTES_MAX};

const DELETE: i32 = 1;
/// As etcd numbers filters.
const NO_PUT: i32 = 0;
const NO_DELETE: i32 = 1;

pub(super) struct Watcher {
    changes: Box<dyn Changes>,
    /// Nothing before this revision is told.
    start: Revision,
    has_puts: bool,
    has_deletions: bool,
    has_previous: bool,
    pub(super) is_split: bool,
    tells_progress: bool,
    /// Something was told since the last time that progress was due.
    has_told: bool,
}

impl Watcher {
    /// With what there is to tell before its changes.
    pub(super) async fn begin(
        core: &Core,
        range: Range,
        newest: Revision,
        asked: &WatchCreateRequest,
    ) -> Result<(Self, WatchResponse), Error> {
        let start = if asked.start_revision > 0 { asked.start_revision.unsigned_abs() } else { newest + 1 };
        let oldest = core.store.oldest();
        if start < oldest {
            return Err(Error::Compacted { asked: start, oldest });
        }
        // The changes of the oldest revision are not kept, but what they left is; etcd too has no deletions of it.
        let mut events = Vec::new();
        if start == oldest {
            let view = core.store.view(&range, Some(oldest))?;
            let left = view.entries().filter(|it| it.mod_revision == oldest);
            events.extend(left.map(|it| Event { kind: 0, kv: Some(keys::pair(it)), prev_kv: None }));
        }
        // One of the future is waited for.
        let after = (start - 1).max(oldest).min(newest);
        let this = Self {
            changes: core.store.watch(range, after).await?,
            start,
            has_puts: !asked.filters.contains(&NO_PUT),
            has_deletions: !asked.filters.contains(&NO_DELETE),
            has_previous: asked.prev_kv,
            is_split: asked.fragment,
            tells_progress: asked.progress_notify,
            has_told: false,
        };
        if !this.has_puts {
            events.clear();
        }
        Ok((this, WatchResponse { header: core.header(newest), events, ..WatchResponse::default() }))
    }

    /// The next events, which may be none of those that were asked for; `None` where there is nothing yet.
    pub(super) fn ready(&mut self) -> Option<Result<Vec<Event>, Error>> {
        let changes = match self.changes.ready()? {
            Ok(changes) => changes,
            Err(error) => return Some(Err(error)),
        };
        let events: Vec<Event> = changes.into_iter().filter_map(|it| self.event(it)).collect();
        self.has_told |= !events.is_empty();
        Some(Ok(events))
    }

    fn event(&self, change: Change) -> Option<Event> {
        let is_wanted = if change.entry.is_some() { self.has_puts } else { self.has_deletions };
        if !is_wanted || change.revision < self.start {
            return None;
        }
        let prev_kv = change.previous.as_ref().filter(|_| self.has_previous).map(keys::pair);
        let (kind, kv) = match &change.entry {
            Some(entry) => (0, keys::pair(entry)),
            None => {
                let mod_revision = change.revision.cast_signed();
                (DELETE, KeyValue { key: change.key, mod_revision, ..KeyValue::default() })
            }
        };
        Some(Event { kind, kv: Some(kv), prev_kv })
    }

    pub(super) fn woken(&self) -> BoxFuture<'static, ()> {
        self.changes.woken()
    }

    /// Is it to be told how far it is?
    pub(super) fn is_due(&mut self) -> bool {
        self.tells_progress && !std::mem::take(&mut self.has_told)
    }
}

/// Parts of a response, none larger than a request may be unless one event is (`sendFragments` in etcd).
pub(super) fn fragments(response: WatchResponse, is_split: bool) -> Vec<WatchResponse> {
    if !is_split || response.encoded_len() < REQUEST_BYTES_MAX {
        return vec![response];
    }
    let head = WatchResponse { events: Vec::new(), ..response.clone() };
    let (mut parts, mut bytes) = (vec![WatchResponse { fragment: true, ..head.clone() }], 0);
    for event in response.events {
        let size = event.encoded_len();
        let is_full = bytes > 0 && bytes + size > REQUEST_BYTES_MAX;
        if is_full {
            parts.push(WatchResponse { fragment: true, ..head.clone() });
            bytes = 0;
        }
        bytes += size;
        if let Some(part) = parts.last_mut() {
            part.events.push(event);
        }
    }
    if let Some(last) = parts.last_mut() {
        last.fragment = false;
    }
    parts
}
