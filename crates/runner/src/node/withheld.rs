//! Pods that are there and were too large to be kept: while no server answers, no more of them is known than who they are. Whatever of
//! them is on the machine is nobody's to end or to clear away, so the kubelet does not hear of it. Once a server has told of all Pods,
//! the kubelet begins anew, as after a start, and adopts what it finds.

use std::collections::BTreeSet;

use corten_client::LeftOut;
use corten_kubelet::{Event, NodeNews, PodRef};

pub(super) struct Withheld(BTreeSet<String>);

impl Withheld {
    pub(super) fn of(left_out: &[LeftOut]) -> Self {
        Self(left_out.iter().map(|it| it.uid.clone()).collect())
    }

    /// Is all known that was not?
    pub(super) fn is_over(&self, left_out: &[LeftOut]) -> bool {
        !self.0.is_empty() && left_out.is_empty()
    }

    /// Takes out of it what is of these Pods.
    pub(super) fn hide(&self, event: &mut Event) {
        if self.0.is_empty() {
            return;
        }
        let is_told = |it: &PodRef| !self.0.contains(&it.uid);
        match event {
            Event::Snapshot(snapshot) => {
                snapshot.sandboxes.retain(|it| is_told(&it.pod));
                snapshot.containers.retain(|it| is_told(&it.pod));
            }
            Event::OfNode(NodeNews::Remains(found)) => found.retain(is_told),
            _ => {}
        }
    }
}
