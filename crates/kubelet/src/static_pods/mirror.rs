//! Mirror pods: how the API shows static pods. Made by the kubelet, and made anew however often someone deletes them.
//!
//! A static pod runs with or without one; it is only told of, and its status only written, where there is one.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::core::v1::Pod;
use corten_meta::{Key, Time};

use corten_api::resources::MIRROR_POD;

/// The mirror pods the API has, and what is under way about each name.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    pub(crate) known: BTreeMap<Key, Arc<Pod>>,
    pub(crate) tasks: BTreeMap<Key, Task>,
    /// Until then those that show nothing stay: somebody may make them as fast as they are deleted.
    pub(crate) orphans_stay_until: Option<Time>,
}

#[derive(Debug, Default)]
pub(crate) struct Task {
    pub(crate) in_flight: bool,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
}

/// Is this an image of a static pod?
pub(crate) fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, MIRROR_POD).is_some()
}

pub(crate) fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

pub(crate) fn shows(mirror: &Pod, uid: &str) -> bool {
    annotation(mirror, MIRROR_POD) == Some(uid)
}
