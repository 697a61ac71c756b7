//! Is what a driver has published where containers look for it? One that is a process of the machine mounts in the machine's namespace,
//! and where `/` of that is private nothing of it reaches the node's: a Pod would write into the bare folder beneath. And does a device
//! stay what it is while containers have it?

use std::{fs, os::unix::fs::FileTypeExt, path::Path};

use corten_machine::mounts;

use super::{MountError, Mounter};
use crate::{Code, Driver, Fault, loop_device};

impl Mounter {
    /// Before a container has the device at `target`.
    pub(super) async fn hold_device(&self, target: &Path) -> Result<(), MountError> {
        let place = target.to_owned();
        let hold = move || loop_device::at(&place).map_or(Ok(()), |it| loop_device::hold(&it));
        self.there("kubernetes.io/csi", hold).await
    }

    /// Once no container has it at `target`: its driver could not detach it else.
    pub(super) async fn release_device(&self, target: &Path) -> Result<(), MountError> {
        let places = self.places().await;
        let place = target.to_owned();
        self.there("kubernetes.io/csi", move || {
            let Some(device) = loop_device::at(&place) else { return Ok(()) };
            let has_it = |it: &Path| it != place && loop_device::at(it).as_ref() == Some(&device);
            let is_had = places.iter().any(|(published, it)| published.record.is_block() && has_it(it));
            if is_had { Ok(()) } else { loop_device::release(&device) }
        })
        .await
    }

    /// Is there a mount, or the device, at `target`?
    ///
    /// The kubelet does not look. So a driver of inline volumes, of which some write files and mount nothing, is refused only what
    /// it has surely mounted elsewhere. Staging is not looked at either: drivers mount beneath that place, or nothing.
    pub(super) async fn has_arrived(
        &self,
        driver: &dyn Driver,
        target: &Path,
        is_block: bool,
        is_ephemeral: bool,
    ) -> Result<(), MountError> {
        if driver.facts().is_built_in() || !self.mounts.is_apart() {
            return Ok(());
        }
        let is_there = move |target: &Path| match is_block {
            true => fs::symlink_metadata(target).is_ok_and(|it| it.file_type().is_block_device()),
            false => mounts::is_mount_point(target),
        };
        let place = target.to_owned();
        if self.there("kubernetes.io/csi", move || Ok(is_there(&place))).await? {
            return Ok(());
        }
        let place = target.to_owned();
        let is_on_machine = tokio::task::spawn_blocking(move || is_there(&place)).await.unwrap_or_default();
        if is_ephemeral && !is_on_machine {
            return Ok(());
        }
        let what = if is_on_machine {
            "the driver mounted it on the machine, where no container of this node sees it"
        } else {
            "the driver published it, and nothing is mounted for containers of this node"
        };
        let why = format!(
            "{what}, at {}: where the driver is a process of the machine, run `mount --make-rshared /` before Corten starts, or run \
             the driver in a Pod, with mountPropagation Bidirectional",
            target.display()
        );
        let fault = Fault::new(Code::FailedPrecondition, why);
        Err(MountError::Driver { doing: "kubernetes.io/csi: mounter.SetupAt failed", fault })
    }
}
