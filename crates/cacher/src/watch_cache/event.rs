//! One change of one object, and the wire frames made of it once for all watchers.

use std::sync::Arc;

use bytes::Bytes;
use corten_kinds::Kind;
use corten_meta::Resource;
use corten_schema::proto;
use corten_store::Revision;
use parking_lot::Mutex;

use super::{Matcher, Stored, stored::VERSION_BYTES};
use crate::watch_cache::{Extent, message_body, versions};

#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    /// What stands there now; `None` after a deletion.
    pub object: Option<Arc<Stored>>,
    pub previous: Option<Arc<Stored>>,
    frames: Mutex<Frames>,
    /// The event in other versions, where a webhook converts its objects.
    converted: Mutex<Vec<(Box<str>, Arc<Self>)>>,
}

/// What is sent of an event, one for each [`EventType`]: kept while many watchers are likely to ask.
#[derive(Debug, Default)]
struct Frames {
    kept: [Option<Bytes>; 3],
    of_views: Vec<(Resource, EventType, Bytes)>,
    protobuf: Vec<(Resource, EventType, Extent, Bytes)>,
    is_old: bool,
}

/// What a watcher makes of an event: with a selector, an object that stops matching is gone for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Event {
    pub fn new(revision: Revision, object: Option<Arc<Stored>>, previous: Option<Arc<Stored>>) -> Self {
        Self { revision, object, previous, frames: Mutex::default(), converted: Mutex::default() }
    }

    /// What it is for a watcher with these selectors; `None` where it never saw the object.
    pub fn seen_by(&self, matcher: &Matcher) -> Option<EventType> {
        let now = self.object.as_ref().is_some_and(|it| matcher.matches(it));
        let before = self.previous.as_ref().is_some_and(|it| matcher.matches(it));
        match (before, now) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    /// The object the event speaks of: the newest, or for a deletion the last.
    pub fn subject(&self, seen: EventType) -> &Arc<Stored> {
        let subject = if seen == EventType::Deleted { &self.previous } else { &self.object };
        subject.as_ref().expect("seen_by found it there")
    }

    /// The event as every JSON watcher gets it, encoded for the first that asks.
    pub fn frame(&self, seen: EventType) -> Bytes {
        let mut frames = self.frames.lock();
        if let Some(kept) = &frames.kept[seen as usize] {
            return kept.clone();
        }
        let frame = frame(seen, self.subject(seen), self.revision);
        if !frames.is_old {
            frames.kept[seen as usize] = Some(frame.clone());
        }
        frame
    }

    /// As [`Self::frame`], in the form of `asked`: the stored one, or a view of it.
    pub fn frame_as(&self, seen: EventType, asked: &Kind) -> Bytes {
        if asked.view_of.is_none() && asked.versions.is_none() || self.is_in(asked, seen) {
            return self.frame(seen);
        }
        let mut frames = self.frames.lock();
        let known = frames.of_views.iter().find(|it| it.0 == asked.resource && it.1 == seen);
        if let Some((_, _, kept)) = known {
            return kept.clone();
        }
        let mut out = Vec::new();
        versions::write_frame(asked, seen, self.subject(seen), self.revision, &mut out);
        let frame = Bytes::from(out);
        if !frames.is_old {
            frames.of_views.push((asked.resource.clone(), seen, frame.clone()));
        }
        frame
    }

    /// As [`Self::frame_as`], as protobuf: the whole object, or its metadata alone.
    pub fn protobuf_frame(&self, seen: EventType, asked: &Kind, extent: Extent) -> Bytes {
        let mut frames = self.frames.lock();
        let known = frames.protobuf.iter().find(|it| it.0 == asked.resource && it.1 == seen && it.2 == extent);
        if let Some((.., kept)) = known {
            return kept.clone();
        }
        let frame = protobuf_frame(asked, extent, seen, self.subject(seen), self.revision);
        if !frames.is_old {
            frames.protobuf.push((asked.resource.clone(), seen, extent, frame.clone()));
        }
        frame
    }

    /// Is its object a custom resource's, stored in the asked version?
    fn is_in(&self, asked: &Kind, seen: EventType) -> bool {
        asked.versions.is_some() && *self.subject(seen).version() == *asked.resource.version
    }

    /// The event in another version, if it was converted to that before.
    pub fn in_version(&self, version: &str) -> Option<Arc<Self>> {
        self.converted.lock().iter().find(|it| *it.0 == *version).map(|it| it.1.clone())
    }

    /// Keeps the event in another version; gives the one that is kept, so that all who watch share its frames.
    pub fn keep_version(&self, version: &str, converted: Arc<Self>) -> Arc<Self> {
        let mut kept = self.converted.lock();
        if let Some((_, known)) = kept.iter().find(|it| *it.0 == *version) {
            return known.clone();
        }
        if !self.frames.lock().is_old {
            kept.push((version.into(), converted.clone()));
        }
        converted
    }

    /// From now on few will ask for it: no frame of it is kept.
    pub fn grow_old(&self) {
        *self.frames.lock() = Frames { is_old: true, ..Frames::default() };
        self.converted.lock().clear();
    }

    /// What it keeps in memory, roughly.
    pub fn bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        OVERHEAD + self.object.iter().chain(&self.previous).map(|it| it.value.len()).sum::<usize>()
    }
}

/// An event as protobuf has it.
pub fn protobuf_frame(asked: &Kind, extent: Extent, seen: EventType, subject: &Stored, revision: Revision) -> Bytes {
    let body = message_body(asked, &subject.message(asked), extent, &revision.to_string());
    proto::event(seen.as_str(), &body).into()
}

/// `{"type":"ADDED","object":{...}}` and a line feed.
pub(crate) fn frame(seen: EventType, subject: &Stored, revision: Revision) -> Bytes {
    let mut out = Vec::with_capacity(subject.value.len() + VERSION_BYTES + 40);
    write_frame(seen, subject, revision, &mut out);
    out.into()
}

fn write_frame(seen: EventType, subject: &Stored, revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(seen.as_str().as_bytes());
    out.extend_from_slice(br#"","object":"#);
    subject.write_at(revision, out);
    out.extend_from_slice(b"}\n");
}
