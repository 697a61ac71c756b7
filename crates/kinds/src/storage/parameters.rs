//! What classes of storage and of volume attributes share: a driver, and parameters that only it understands.

use corten_meta::{Violation, field};
use corten_schema::Cursor;

const PARAMETERS_MAX: usize = 512;
const BYTES_MAX: usize = 256 * 1024;

/// A qualified name in any case. It is shown as it is compared (validateProvisioner).
pub(super) fn provisioner(name: Cursor<'_>) {
    if name.required() {
        let lower = name.str().to_lowercase();
        field::qualified_name(&lower).iter().for_each(|it| name.invalid_as(&lower, it));
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
