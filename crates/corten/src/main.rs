//! The one binary: gives minds their hands. No logic lives here, only who is joined to whom.

mod access_options;
mod anew;
mod announcements;
mod begin_again;
mod certificates;
mod cluster_access;
mod cluster_loops;
mod control_plane;
mod controller_loops;
mod controllers_options;
mod etcd_api;
mod etcd_certificate;
mod etcd_options;
mod etcd_snapshot_file;
mod ha;
mod ha_options;
mod in_process;
mod joined;
mod joined_node;
mod kubelet_cluster;
mod leader_options;
mod leadership;
mod logging;
mod loop_access;
mod manager_options;
mod migration;
mod name_server;
mod network_options;
mod network_policy;
mod node_agent;
mod node_options;
mod node_routes;
mod process;
mod remote_loops;
mod remote_volumes;
mod scheduler_options;
mod served_kinds;
mod server_presence;
mod server_versions;
mod service_account_credentials;
mod service_proxy;
mod signer;
mod switches;
mod verbs;
mod volume_hands;
mod volume_moves;
mod volume_provisioner;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The verbs that need the whole cluster in one process.
const OWN: &[corten_cli::Verb] = &[
    verbs::controllers::VERB,
    verbs::etcd::VERB,
    verbs::join::VERB,
    verbs::migrate::VERB,
    verbs::node::VERB,
    verbs::scheduler::VERB,
    verbs::server::VERB,
    verbs::snapshot::VERB,
    verbs::up::VERB,
];

fn main() -> ExitCode {
    corten_cli::main(OWN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
        let page = corten_cli::reference(super::OWN);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, page).expect("it can be written");
        } else {
            let is = std::fs::read_to_string(path).expect("it is there");
            assert!(is == page, "UPDATE=1 cargo test -p corten reference rewrites docs/reference/commands.md");
        }
    }
}
