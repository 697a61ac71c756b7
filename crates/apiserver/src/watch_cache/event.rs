//! One change of one object, and the wire frames made of it once for all watchers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use corten_store::Revision;

use super::{Matcher, Stored, stored::VERSION_BYTES};

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: Revision,
    /// What stands there now; `None` after a deletion.
    pub(crate) object: Option<Arc<Stored>>,
    pub(crate) previous: Option<Arc<Stored>>,
    frames: [OnceLock<Bytes>; 3],
}

/// What a watcher makes of an event: with a selector, an object that stops matching is gone for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Added,
    Modified,
    Deleted,
}

impl Seen {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Event {
    pub(crate) fn new(revision: Revision, object: Option<Arc<Stored>>, previous: Option<Arc<Stored>>) -> Self {
        Self { revision, object, previous, frames: Default::default() }
    }

    /// What it is for a watcher with these selectors; `None` where it never saw the object.
    pub(crate) fn seen_by(&self, matcher: &Matcher) -> Option<Seen> {
        let now = self.object.as_ref().is_some_and(|it| matcher.matches(it));
        let before = self.previous.as_ref().is_some_and(|it| matcher.matches(it));
        match (before, now) {
            (false, true) => Some(Seen::Added),
            (true, true) => Some(Seen::Modified),
            (true, false) => Some(Seen::Deleted),
            (false, false) => None,
        }
    }

    /// The object the event speaks of: the newest, or for a deletion the last.
    pub(crate) fn subject(&self, seen: Seen) -> &Arc<Stored> {
        let subject = if seen == Seen::Deleted { &self.previous } else { &self.object };
        subject.as_ref().expect("seen_by found it there")
    }

    /// The event as every JSON watcher gets it, encoded for the first that asks.
    pub(crate) fn frame(&self, seen: Seen) -> Bytes {
        let frame = self.frames[seen as usize].get_or_init(|| frame(seen, self.subject(seen), self.revision));
        frame.clone()
    }

    /// What it keeps in memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        let subject = self.object.as_ref().or(self.previous.as_ref());
        // Once as the value, once as a frame.
        OVERHEAD + 2 * subject.map_or(0, |it| it.value.len())
    }
}

/// `{"type":"ADDED","object":{...}}` and a line feed.
pub(crate) fn frame(seen: Seen, subject: &Stored, revision: Revision) -> Bytes {
    let mut out = Vec::with_capacity(subject.value.len() + VERSION_BYTES + 40);
    write_frame(seen, subject, revision, &mut out);
    out.into()
}

pub(crate) fn write_frame(seen: Seen, subject: &Stored, revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(seen.as_str().as_bytes());
    out.extend_from_slice(br#"","object":"#);
    subject.write_at(revision, out);
    out.extend_from_slice(b"}\n");
}
