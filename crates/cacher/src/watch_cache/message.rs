//! Stored objects as protobuf: made for the first that asks, kept from the second on.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use corten_kinds::{Kind, Schema, ViewOf};
use corten_schema::proto::{self, Message};

use super::{Stored, versions};

/// Most objects are asked for in JSON alone: one that was sent as protobuf once need not be again.
#[derive(Debug, Default)]
pub(super) struct Messages {
    was_asked: AtomicBool,
    kept: OnceLock<Arc<Message>>,
}

impl Stored {
    /// The object as `asked` shows it, without its `resourceVersion`; its metadata alone where protobuf has no more of it.
    pub fn message(&self, asked: &Kind) -> Arc<Message> {
        if let Some(kept) = self.messages.kept.get().filter(|_| is_as_stored(asked)) {
            return kept.clone();
        }
        let mut object = self.parse();
        object["metadata"]["resourceVersion"] = "".into();
        if !is_as_stored(asked) {
            versions::from_stored(asked, &mut object);
        }
        let whole = match &asked.schema {
            Schema::Table(name) => Message::of(name, &object),
            _ => None,
        };
        let message = Arc::new(whole.unwrap_or_else(|| Message::of_metadata(&object)));
        if is_as_stored(asked) && self.messages.was_asked.swap(true, Relaxed) {
            return self.messages.kept.get_or_init(|| message).clone();
        }
        message
    }
}

/// Versions with the same fields have them under the same numbers.
fn is_as_stored(asked: &Kind) -> bool {
    // Protobuf has but the metadata of a custom resource.
    asked.versions.is_some() || matches!(&asked.view_of, None | Some(ViewOf { same_fields: true, .. }))
}

/// How much of an object is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// As `PartialObjectMetadata`.
    Metadata,
}

/// The body of an object.
pub fn message_body(asked: &Kind, message: &Message, extent: Extent, revision: &str) -> Vec<u8> {
    match extent {
        Extent::Whole => proto::body(&asked.resource.api_version(), &asked.resource.kind, message, revision),
        Extent::Metadata => proto::body("meta.k8s.io/v1", "PartialObjectMetadata", &message.metadata(), revision),
    }
}
