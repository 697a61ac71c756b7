//! A pattern of a schema must be one in Go's syntax.

use corten_schema::Cursor;

use super::parts;

pub(super) fn validate(version: Cursor<'_>) {
    parts::all(version.at("schema").at("openAPIV3Schema"), &mut |schema| {
        let pattern = schema.at("pattern");
        if pattern.is_empty() {
            return;
        }
        // Said once, where there is no more fuel.
        if corten_cel::is_spent() {
            return;
        }
        if let Err(error) = corten_cel::check_pattern(pattern.str()) {
            pattern.invalid(&format!("must be a valid regular expression, but isn't: {error}"));
        }
    });
}
