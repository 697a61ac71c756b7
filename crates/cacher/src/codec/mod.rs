//! Between bytes and objects: bodies come in as JSON or YAML, go out as either, or as a Table or metadata alone.

pub mod accept;
mod configuration;
mod decode;
pub mod gzip;
pub mod indent;
pub mod items;
pub mod partial;
pub mod protobuf;
pub mod read_yaml;
pub mod table;
pub mod yaml;
mod yaml_list;

pub use accept::{Form, Include, header};
pub use configuration::{Configuration, configuration};
pub use decode::{Document, Strictness, document, prune, unknown_fields, validated};
