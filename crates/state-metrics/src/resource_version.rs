//! Which version of an object it is.

use corten_meta::ObjectMeta;

use crate::exposition::Samples;

pub(crate) fn of(meta: &ObjectMeta, out: &mut Samples<'_>) {
    out.one(meta.resource_version.parse::<i64>().ok());
}
