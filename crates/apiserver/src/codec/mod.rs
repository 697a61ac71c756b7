//! Between bytes and objects: bodies come in as JSON or YAML, go out as JSON, a Table or metadata alone.

pub(crate) mod accept;
mod decode;
mod encode;
pub(crate) mod gzip;
pub(crate) mod items;
pub(crate) mod partial;

pub(crate) use accept::{Form, Include};
pub(crate) use decode::{document, document_or_none, object, validated};
pub(crate) use encode::encode;
