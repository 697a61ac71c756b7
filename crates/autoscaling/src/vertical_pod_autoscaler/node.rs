//! A node, as far as it bounds what a container can have used.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{ObjectMeta, Quantity};
use corten_reconcile::{bare, or_default, projection};
use serde::Deserialize;

use super::peak::amount;

#[derive(Deserialize)]
pub(super) struct MeasuredNode {
    #[serde(deserialize_with = "bare")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}
projection!(MeasuredNode, resources::NODES);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    capacity: BTreeMap<String, Quantity>,
}

impl MeasuredNode {
    /// Can something on it have used so much? What is measured over a short time may be somewhat more than there is.
    pub(super) fn can_have_used(&self, resource: &str, used: i64) -> bool {
        let capacity = self.status.capacity.get(resource);
        capacity.is_none_or(|it| used / 2 <= amount(resource, *it))
    }
}
