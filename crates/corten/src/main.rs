//! The one binary: gives minds their hands. No logic lives here, only who is joined to whom.

mod access_options;
mod anew;
mod certificates;
mod control_plane;
mod in_process;
mod kubelet_cluster;
mod logging;
mod manager_options;
mod name_server;
mod node_agent;
mod node_options;
mod process;
mod service_proxy;
mod signer;
mod switches;
mod verbs;
mod volume_provisioner;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    corten_cli::main(&[verbs::node::VERB, verbs::server::VERB])
}
