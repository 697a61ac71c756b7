//! The command that makes this machine's member of etcd out of a snapshot.

use std::path::Path;

use corten_cli::{command_on, control_plane_record::ETCD_CLUSTER, etcd_member::EtcdFolder};

/// More than a cluster commits in years, so that no revision that anybody has seen comes again.
pub(crate) const BUMP: &str = "1000000000";

/// etcd makes another cluster of a snapshot, and wants a folder that is not there: what is there is kept beside it.
pub(crate) fn command(data: &Path, file: &str, bump: &str) -> String {
    let member = EtcdFolder::of(data).data();
    let aside = match member.exists() {
        true => format!("mv -T {0} {0}.before-$(date +%s) && ", member.display()),
        false => String::new(),
    };
    format!(
        "{aside}etcdutl snapshot restore {file} --bump-revision {bump} --mark-compacted --data-dir {} && rm -f {} && {}",
        member.display(),
        data.join(ETCD_CLUSTER).display(),
        command_on(data, "up")
    )
}
