//! What of a cluster is on this machine: all of it, or a part that others do without.

use std::path::Path;

use corten_records::{control_plane_record::ControlPlaneRecord, etcd_member::EtcdHealth};
use serde::Serialize;

use crate::connection::NODE_KUBECONFIG;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum MachinePart {
    Cluster,
    /// The cluster is in an etcd, which other control planes may serve, too.
    ControlPlane,
    /// The control plane is on other machines.
    Node,
}

impl MachinePart {
    pub(super) fn of(data: &Path) -> Self {
        if data.join("kubelet").join(NODE_KUBECONFIG).exists() {
            return Self::Node;
        }
        let Some(record) = ControlPlaneRecord::load(data).ok().flatten() else { return Self::Cluster };
        // A first member that has met no others is all of the cluster.
        let is_alone = record.is_ha && EtcdHealth::load(data).is_some_and(|it| it.members.len() == 1);
        if is_alone { Self::Cluster } else { Self::ControlPlane }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "the cluster",
            Self::ControlPlane => "this machine's part of the cluster",
            Self::Node => "this machine's node",
        }
    }

    /// What may go on without it.
    pub(super) fn others(self) -> Option<&'static str> {
        match self {
            Self::Cluster => None,
            Self::ControlPlane => Some("other machines may serve the cluster meanwhile, which is in an etcd"),
            Self::Node => Some("the cluster is on other machines, and may go on meanwhile"),
        }
    }

    /// The command that starts it.
    pub(super) fn verb(self) -> &'static str {
        if self == Self::Node { "join" } else { "up" }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use corten_records::etcd_member::MemberHealth;

    use super::*;

    #[test]
    fn the_data_folder_says_whether_others_may_serve() {
        for (has_node_file, record, n_members, expected) in [
            (false, None, 0, MachinePart::Cluster),
            (true, None, 0, MachinePart::Node),
            (false, Some(false), 0, MachinePart::ControlPlane),
            (false, Some(true), 0, MachinePart::ControlPlane),
            (false, Some(true), 1, MachinePart::Cluster),
            (false, Some(true), 3, MachinePart::ControlPlane),
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let data = dir.path();
            for folder in ["kubelet", "pki", "etcd"] {
                fs::create_dir(data.join(folder)).expect("made");
            }
            if has_node_file {
                fs::write(data.join("kubelet").join(NODE_KUBECONFIG), "").expect("written");
            }
            if let Some(is_ha) = record {
                let record = ControlPlaneRecord { is_ha, ..ControlPlaneRecord::default() };
                record.save(data).expect("saved");
            }
            let members = vec![MemberHealth::default(); n_members];
            if n_members > 0 {
                EtcdHealth { members, ..EtcdHealth::default() }.save(data).expect("saved");
            }
            assert_eq!(MachinePart::of(data), expected, "{has_node_file} {record:?} {n_members}");
        }
    }
}
