//! What a schema lets you do to an object: check types, find unknown fields, prune, and patch (JSON, merge, strategic merge).

pub mod types;
