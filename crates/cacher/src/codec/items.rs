//! A list's body, made piece by piece while it is sent: no answer is ever in memory as a whole.

use std::sync::Arc;

use corten_store::Revision;

use crate::{
    codec::{Form, partial, table},
    watch_cache::{Matcher, Snapshot, Stored, versions},
};
use corten_kinds::KindRef;
use corten_meta::Time;

/// How large a piece of a body is; smaller where making it is work that others on the thread wait for.
const PIECE_BYTES: usize = 128 * 1024;
const TRANSFORMED_PIECE_BYTES: usize = 32 * 1024;

/// One list to be written.
pub struct Items {
    pub kind: KindRef,
    pub form: Form,
    pub snapshot: Arc<Snapshot>,
    pub matcher: Matcher,
    pub revision: Revision,
    pub now: Time,
    /// The key of the last object that was sent, or that the page before ended with.
    pub after: Option<Arc<str>>,
    /// The key of the last object of this page; `None`: to the end.
    pub last: Option<Arc<str>>,
    pub token: Option<String>,
    pub remaining: Option<usize>,
    pub place: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Head,
    FirstItem,
    Items,
    Done,
}

impl Iterator for Items {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.place == Position::Done {
            return None;
        }
        // Most lists are short; only those that go on get whole pieces at once.
        let room = if self.place == Position::Head { 4096 } else { self.piece_bytes() * 9 / 8 };
        let mut out = Vec::with_capacity(room);
        if self.place == Position::Head {
            self.head(&mut out);
            self.place = Position::FirstItem;
        }
        self.items(&mut out);
        Some(out)
    }
}

impl Items {
    fn piece_bytes(&self) -> usize {
        if self.form == Form::Object { PIECE_BYTES } else { TRANSFORMED_PIECE_BYTES }
    }

    fn head(&self, out: &mut Vec<u8>) {
        let (kind, api_version) = match self.form {
            Form::Object => (self.kind.list_kind().into_owned(), self.kind.resource.api_version()),
            Form::Table(_) => ("Table".to_owned(), "meta.k8s.io/v1".to_owned()),
            Form::Partial => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let metadata = self.metadata();
        let start = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"#);
        out.extend_from_slice(start.as_bytes());
        if let Form::Table(_) = self.form {
            let columns = table::columns(&self.kind);
            out.extend_from_slice(format!(r#""columnDefinitions":{columns},"rows":["#).as_bytes());
        } else {
            out.extend_from_slice(br#""items":["#);
        }
    }

    /// Of the list itself.
    pub fn metadata(&self) -> serde_json::Value {
        let mut metadata = serde_json::json!({ "resourceVersion": self.revision.to_string() });
        if let Some(token) = &self.token {
            metadata["continue"] = token.clone().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }

    /// What will be written, before any of it is.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        let objects = self.snapshot.range(&self.matcher.namespace, self.after.as_deref());
        let on_page = |it: &&Arc<Stored>| self.last.as_ref().is_none_or(|last| *it.key <= **last);
        objects.take_while(on_page).filter(|it| self.matcher.matches(it))
    }

    /// Writes items until the piece is full or the list ends.
    fn items(&mut self, out: &mut Vec<u8>) {
        let (snapshot, namespace) = (self.snapshot.clone(), self.matcher.namespace.clone());
        let after = self.after.take();
        for object in snapshot.range(&namespace, after.as_deref()) {
            if self.last.as_ref().is_some_and(|it| *object.key > **it) {
                break;
            }
            self.after = Some(object.key.clone());
            if !self.matcher.matches(object) {
                continue;
            }
            if self.place == Position::Items {
                out.push(b',');
            }
            self.place = Position::Items;
            self.item(object, out);
            if out.len() >= self.piece_bytes() {
                return;
            }
        }
        out.extend_from_slice(b"]}\n");
        self.place = Position::Done;
    }

    fn item(&self, object: &Stored, out: &mut Vec<u8>) {
        match self.form {
            Form::Object => versions::write_item(&self.kind, object, out),
            Form::Table(include) => {
                let mut value = object.parse();
                if self.kind.is_custom() {
                    versions::from_stored(&self.kind, &mut value);
                }
                let row = table::row(&self.kind, &value, include, self.now);
                out.extend_from_slice(row.to_string().as_bytes());
            }
            Form::Partial => out.extend_from_slice(partial::of(&object.parse()).to_string().as_bytes()),
        }
    }
}
