//! What is remembered of an autoscaler from look to look, as long as the process lives.

use serde::{Deserialize, Serialize};

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Memory {
    /// Of the Pods that it resizes, as its target said last: by it two autoscalers of the same Pods are found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) selector: String,
    /// The last resize that was refused, until another is or it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<Refused>,
    /// The status could not be written the last time: Pods are resized before it is tried once more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_status_refused: bool,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) pod: String,
    pub(super) message: String,
}
