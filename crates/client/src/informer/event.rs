//! What an informer tells.

use bytes::Bytes;
use corten_meta::{Key, ObjectMeta};

/// What happened to a cache's contents.
#[derive(Clone, Debug, PartialEq)]
pub enum InformerEvent<T = Bytes> {
    /// The object is new, or has changed.
    Applied(T, Identity),
    /// The object is gone. Where its end was missed, only name, namespace, uid and the last version are known.
    Deleted(ObjectMeta),
    /// Everything up to this version has been delivered: after each list, and then from time to time.
    Synced(String),
}

/// Which object, and which state of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    pub key: Key,
    pub uid: String,
    pub version: String,
}

impl Identity {
    pub fn of(meta: &ObjectMeta) -> Self {
        Self { key: meta.key(), uid: meta.uid.clone(), version: meta.resource_version.clone() }
    }
}
