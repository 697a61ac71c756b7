//! A default is a value that the schema accepts.

use corten_schema::{Cursor, structural::Structural};

use super::parts;

pub(super) fn validate(version: Cursor<'_>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    let mut has_default = false;
    parts::structural(schema, &mut |it| has_default |= it.at("default").exists());
    if has_default {
        let found = Structural::read(schema.value()).violations_of_defaults(&schema.path());
        found.into_iter().for_each(|it| schema.report(it));
    }
}
