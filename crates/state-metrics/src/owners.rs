//! Whose an object is.

use corten_meta::ObjectMeta;

use crate::exposition::Samples;

/// For the labels `owner_kind`, `owner_name` and `owner_is_controller`, which are empty where nobody owns it.
pub(crate) fn of(meta: &ObjectMeta, out: &mut Samples<'_>) {
    if meta.owner_references.is_empty() {
        out.add(&["", "", ""], 1.0);
    }
    for owner in &meta.owner_references {
        let is_controller = if owner.controller == Some(true) { "true" } else { "false" };
        out.add(&[&owner.kind, &owner.name, is_controller], 1.0);
    }
}
