//! Pods of a gang stay out of the queue until there are as many as its PodGroup asks for. Then all of them are tried at once: see
//! `gang.rs`.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, pod_groups::PodGroups};

pub(crate) const NAME: &str = "GangScheduling";

pub(super) const PLUGIN: Plugin =
    Plugin { name: NAME, pre_enqueue: Some(pre_enqueue), actor: Actor::Author, wait: "GangIncomplete", ..Plugin::NONE };

fn pre_enqueue(pod: &PodInfo, groups: &PodGroups) -> Option<String> {
    groups.lacks(pod)
}
