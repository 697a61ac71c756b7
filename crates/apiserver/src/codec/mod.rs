//! Between bytes and objects: bodies come in as JSON or YAML, go out as either, or as a Table or metadata alone.

pub(crate) mod accept;
mod configuration;
mod decode;
mod encode;
pub(crate) mod gzip;
pub(crate) mod items;
pub(crate) mod partial;
pub(crate) mod yaml;

pub(crate) use accept::{Form, Include};
pub(crate) use configuration::{Configuration, configuration};
pub(crate) use decode::{Strictness, document_or_none, object, part, validated};
pub(crate) use encode::{encode, encode_text};
