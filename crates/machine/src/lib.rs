//! A Linux machine, as far as nothing of it is Kubernetes's: a node's folders and files, mounts, cgroups, processes, systemd.
//!
//! What a Pod is, and what is to be done for it, is `host`'s to know.

pub mod boot_id;
pub mod cgroups;
pub mod command;
pub mod durable;
mod end_of_machine;
mod error;
pub mod folders;
mod layout;
pub mod locked_process;
pub mod logind;
pub mod mounts;
pub mod oom;
pub mod process;
pub mod service_manager;
pub mod tree;
mod wall_clock;

pub use boot_id::boot_id;
pub use cgroups::{Cgroups, PodLimits};
pub use durable::write_whole;
pub use end_of_machine::EndOfMachine;
pub use error::{Doing, MachineError};
pub use folders::folder_modes::{
    FOLDERS, Folder, close_data, close_for_logs, close_for_server, close_run, could_be_a_nodes,
};
pub use folders::own_folder::{NodeFolder, leave};
pub use folders::owners::others_write;
pub use layout::{INSTALLED_IMAGES, Layout};
pub use logind::Logind;
pub use mounts::NodeMounts;
pub use oom::shield_from_oom;
pub use process::{Process, detach, open_log};
pub use service_manager::{notify_service_manager, systemd_is_in_charge};
pub use wall_clock::WallClock;
