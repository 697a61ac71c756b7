//! Whether the node has taken a pod: decided once, and remembered by `status.startTime`.

use std::collections::BTreeSet;

use corten_reconcile::EventType::Warning;

use crate::{
    node::admission::Rejection,
    pod::{container_record::ContainerRecord, machine::PodMachine},
};

/// How far the decision on a pod is.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    pub(crate) verdict: Option<Result<(), Rejection>>,
    pub(crate) newest_node: NewestNode,
    /// The pods that leave so that it has room.
    pub(crate) room_of: BTreeSet<String>,
    /// Why a plugin did not give what the pod asks for.
    pub(crate) device_failure: Option<String>,
    /// What is under way about its devices.
    pub(crate) device_step: Option<String>,
}

/// The scheduler may have heard of a label before this node has: before a pod is refused for what the Node says, the
/// API server is asked once what it says now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NewestNode {
    #[default]
    NotAsked,
    Asked,
    Told,
}

impl PodMachine {
    pub(crate) fn is_decided(&self) -> bool {
        self.admission.verdict.is_some() || self.was_taken()
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.admission.verdict == Some(Ok(())) || (self.admission.verdict.is_none() && self.was_taken())
    }

    pub(crate) fn rejection(&self) -> Option<&Rejection> {
        self.admission.verdict.as_ref()?.as_ref().err()
    }

    /// An earlier run of the kubelet has taken it: it has told so, or something of the pod is here.
    fn was_taken(&self) -> bool {
        let told = self.pod.status.as_ref().is_some_and(|it| it.start_time.is_some());
        told || !self.sandboxes.is_empty() || self.has_containers()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.is_starting() || self.container_records.values().any(ContainerRecord::is_alive)
    }

    pub(crate) fn has_containers(&self) -> bool {
        self.container_records.values().any(|it| it.latest().is_some() || it.starting.is_some())
    }

    /// A pod that is over gives its room back, as the scheduler has it.
    pub(crate) fn holds_room(&self) -> bool {
        self.in_api && self.is_admitted() && !self.is_terminal_in_api() && (self.ending.is_none() || self.may_run())
    }

    /// Tells of the rejection; the pod then ends as one that has run to its end.
    pub(crate) fn note_rejection(&mut self, cx: &mut crate::pod::context::Context<'_>) {
        if let Some(rejection) = self.rejection().cloned() {
            cx.event(&self.who, "", Warning, rejection.reason, rejection.message);
        }
    }
}
