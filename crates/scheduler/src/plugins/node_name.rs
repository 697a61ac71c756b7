//! A pod that names its node goes nowhere else.
//!
//! Such pods are bound before any scheduler sees them; the filter matters to those that are tried again meanwhile.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Reason, Rejection},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin =
    Plugin { name: "NodeName", filter: Some(filter), actor: Actor::Author, wait: "NodeName", ..Plugin::NONE };

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, _: &Arguments, rejection: &mut Rejection<'p>) {
    if !pod.node_name.is_empty() && pod.node_name != row.name {
        rejection.finally_because(Reason::Text("node(s) didn't match the requested node name"));
    }
}
