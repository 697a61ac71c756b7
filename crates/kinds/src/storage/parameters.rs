//! What classes of storage and of volume attributes share: a driver, and parameters that only it understands.

use corten_meta::{Violation, field};
use corten_schema::Cursor;

const PARAMETERS_MAX: usize = 512;
const BYTES_MAX: usize = 256 * 1024;

/// A qualified name in any case.
pub(super) fn provisioner(name: Cursor<'_>) {
    if name.required() {
        for reason in field::qualified_name(&name.str().to_lowercase()) {
            name.invalid(&reason);
        }
    }
}

pub(super) fn validate(parameters: Cursor<'_>) {
    if parameters.entries().count() > PARAMETERS_MAX {
        parameters.report(Violation::too_long(parameters.path(), PARAMETERS_MAX));
    }
    let mut bytes = 0;
    for (key, value) in parameters.entries() {
        if key.is_empty() {
            parameters.invalid_as(key, "field can not be empty.");
        }
        bytes += key.len() + value.str().len();
    }
    if bytes > BYTES_MAX {
        parameters.report(Violation::too_long(parameters.path(), BYTES_MAX));
    }
}
