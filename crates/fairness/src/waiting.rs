//! What waits at a level, as it is shown.

use std::sync::Arc;

use corten_meta::Time;

/// A request that waits, as it is shown.
#[derive(Clone, Debug)]
pub struct WaitingRequest {
    pub flow_schema: String,
    pub distinguisher: String,
    pub came: Time,
    pub user: String,
    pub verb: String,
    pub path: String,
    pub namespace: String,
    pub name: String,
    pub api_version: String,
    pub resource: String,
    pub subresource: String,
}

#[cfg(test)]
impl WaitingRequest {
    pub(crate) fn of_nobody() -> Self {
        let text = String::new;
        Self {
            flow_schema: text(),
            distinguisher: text(),
            came: Time::from_unix_seconds(0),
            user: text(),
            verb: text(),
            path: text(),
            namespace: text(),
            name: text(),
            api_version: text(),
            resource: text(),
            subresource: text(),
        }
    }
}

/// A queue as it stands.
pub(crate) struct Standing {
    pub(crate) waiting: Vec<(Arc<WaitingRequest>, u32)>,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) next_begin: f64,
    pub(crate) seats_waiting: u64,
    pub(crate) work_waiting: f64,
}
