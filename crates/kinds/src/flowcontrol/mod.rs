//! `flowcontrol.apiserver.k8s.io`.

pub mod bootstrap;
pub(crate) mod flow_schema;
pub(crate) mod priority_level_configuration;

use std::collections::BTreeSet;

use corten_schema::Cursor;

/// Conditions of both kinds: each type once.
fn conditions(status: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for kind in status.list("conditions").map(|it| it.at("type")) {
        if seen.contains(kind.str()) {
            kind.duplicate();
        }
        seen.insert(kind.str());
        if kind.is_empty() {
            kind.missing("must not be empty");
        }
    }
}
