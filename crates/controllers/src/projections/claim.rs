//! A claim of storage, as its stateful set sees it: whose it is.

use corten_api::resources;
use corten_meta::ObjectMeta;
use serde::Deserialize;

use super::{bare, projection};

#[derive(Deserialize)]
pub(crate) struct PersistentVolumeClaim {
    #[serde(deserialize_with = "bare")]
    pub(crate) metadata: ObjectMeta,
}
projection!(PersistentVolumeClaim, resources::PERSISTENT_VOLUME_CLAIMS);
