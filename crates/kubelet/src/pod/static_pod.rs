//! A pod that a manifest of this node asks for, and the mirror pod that shows it.

use std::sync::Arc;

use corten_api::core::v1::Pod;
use corten_meta::Time;

use crate::{pod::machine::PodMachine, spec::pod::is_static};

impl PodMachine {
    pub(crate) fn is_static(&self) -> bool {
        is_static(&self.pod)
    }

    /// The same static pod, of which nothing is here.
    pub(crate) fn anew(self, now: Time) -> Self {
        let mut pod = (*self.pod).clone();
        pod.status = None;
        Self::new(self.who, Arc::new(pod), true, now)
    }

    /// Takes over what only the API knows of a static pod: its status, and which version that is.
    pub(crate) fn reflect(&mut self, mirror: &Pod) {
        let mut pod = (*self.pod).clone();
        pod.status.clone_from(&mirror.status);
        pod.metadata.resource_version.clone_from(&mirror.metadata.resource_version);
        self.pod = Arc::new(pod);
        self.mirror.clone_from(&mirror.metadata.uid);
    }
}
