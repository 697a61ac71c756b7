//! Volumes that outlive Pods: who has the data, and how it comes to where a Pod finds it.
//!
//! A driver makes, grows and removes volumes, and mounts one for this node (stages it) and for a Pod (publishes it). One is
//! built in, `local.corten.dev`; others are programs that speak CSI. What is mounted is what the kernel says is mounted;
//! records on disk say only for whom.

mod answers;
mod call;
pub mod channel;
mod csi;
mod disk_health;
mod driver;
mod file_system;
mod local;
mod loop_device;
mod mount_options;
mod mounter;
mod nfs;
mod program;
mod project_quota;
mod records;

pub use call::{Call, Reply};
pub use csi::{CsiPlugins, drivers_root, forget_drivers_root};
#[cfg(any(test, feature = "sample"))]
pub use csi::{SampleDriver, SampleSettings};
pub use driver::{
    AttachedTo, Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Driver, Expanded, Facts, Fault,
    NodeExpand, Snapshot, StageVolume, VolumeSource, VolumeStats, with_faults_named,
};
pub use local::{
    LocalDriver, NAME as LOCAL_DRIVER, Reserve, detach_all, facts as local_facts, topology as local_topology,
};
pub use mounter::{Drivers, MountError, Mounter, Placed, StorageOperations, VolumeFigures, csi_plugin};
