//! What the folder of a cluster's data says to the programs that share it: which etcd the control plane is on, and the member of etcd
//! that runs on this machine.

pub mod control_plane_record;
pub mod etcd_member;
