//! Which pod an effect is about.

use super::effect::{ApiEffect, PodRef};

impl ApiEffect {
    /// The pod it is about, where it is about one.
    pub fn pod(&self) -> Option<&PodRef> {
        match self {
            Self::PatchPodStatus { pod, .. }
            | Self::DeletePod { pod }
            | Self::RequestToken { pod, .. }
            | Self::RequestCertificate { pod, .. }
            | Self::ReadVolume { pod, .. }
            | Self::ReadDeviceClaims { pod, .. }
            | Self::ReadNode { pod, .. } => Some(pod),
            Self::CreateMirror { .. }
            | Self::Event { .. }
            | Self::Follow(_)
            | Self::Unfollow(_)
            | Self::CreateNode { .. }
            | Self::PatchNode { .. }
            | Self::RenewLease { .. } => None,
        }
    }
}
