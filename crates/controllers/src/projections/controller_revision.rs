//! One version of a stateful set's or daemon set's pod template.

use corten_api::resources;
use corten_meta::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::projection;

#[derive(Deserialize)]
pub(crate) struct ControllerRevision {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) data: Value,
    #[serde(default)]
    pub(crate) revision: i64,
}
projection!(ControllerRevision, resources::CONTROLLER_REVISIONS);
