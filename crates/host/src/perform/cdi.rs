//! Devices by names of the Container Device Interface. A runtime that knows them looks them up itself; for one that does not,
//! which would leave them out and say nothing, what vendors describe for them is made part of the container.

use std::borrow::Cow;

use corten_devices::cdi::{self, Injected};
use corten_kubelet::ContainerSpec;

use super::Inner;

impl Inner {
    /// The container with what the runtime would not find by itself.
    pub(super) async fn with_described_devices<'a>(
        &self,
        spec: &'a ContainerSpec,
    ) -> Result<Cow<'a, ContainerSpec>, String> {
        let names = spec.plugged.granted.cdi_devices.clone();
        if names.is_empty() || self.cri.injects_devices().await.map_err(|it| it.to_string())? {
            return Ok(Cow::Borrowed(spec));
        }
        let described = tokio::task::spawn_blocking(move || cdi::inject(&names, &cdi::folders())).await;
        let injected = described.map_err(|it| it.to_string())??;
        Ok(Cow::Owned(with(spec.clone(), injected)))
    }
}

/// A description says what a process is to find, whatever its Pod or image says; but what the Pod mounts stays.
fn with(mut spec: ContainerSpec, injected: Injected) -> ContainerSpec {
    spec.env.retain(|(key, _)| !injected.granted.env.iter().any(|it| it.0 == *key));
    spec.env.extend(injected.granted.env.iter().cloned());
    spec.security.supplemental_groups.extend(injected.groups);
    spec.plugged.granted.cdi_devices.clear();
    spec.plugged.granted.add(&injected.granted);
    spec
}
