//! What is measured.

use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Subject {
    /// `corten server`, beside Kubernetes
    ControlPlane,
    /// A whole node with real containers, beside its runtime by itself. Needs root
    Node,
    /// Claims, volumes and clones of a whole node. Needs root, and XFS for the clones
    Storage,
    /// Policies, and the tunnel between nodes, in network namespaces. Needs root
    Network,
}
