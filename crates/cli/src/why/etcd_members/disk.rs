//! The disk of this machine's member is full, or about to be: looked at when `why` is asked, since what cannot be written down says nothing.

use std::path::Path;

use corten_records::etcd_member::EtcdFolder;

use crate::why::survey::Group;
use corten_console::shell::quoted;

/// What etcd takes at once for the next part of its log (`SegmentSizeBytes` in etcd's `wal`).
const PART_OF_LOG: u64 = 64 << 20;

pub(super) fn concern(data: &Path) -> Option<Group> {
    let etcd = EtcdFolder::of(data);
    let room = rustix::fs::statvfs(etcd.path()).ok().filter(|_| etcd.has_data())?;
    full(&etcd, room.f_bavail * room.f_frsize)
}

fn full(etcd: &EtcdFolder, n_bytes: u64) -> Option<Group> {
    let path = etcd.path().display();
    let summary = format!(
        "EtcdDiskFull: the disk that this machine's member is on has {} MiB left at {path}, and etcd takes {} MiB at once for its log: it ends \
         where it has no room, and goes on by itself once there is some",
        n_bytes >> 20,
        PART_OF_LOG >> 20
    );
    let next = format!("df -h {}", quoted(&path.to_string()));
    (n_bytes < PART_OF_LOG).then(|| Group::of_cluster("etcd", summary, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_room_than_a_part_of_the_log_is_told() {
        let etcd = EtcdFolder::of(Path::new("/var/lib/corten"));
        assert!(full(&etcd, PART_OF_LOG).is_none());
        let group = full(&etcd, 3 << 20).expect("too little");
        assert!(group.summary.starts_with(
            "EtcdDiskFull: the disk that this machine's member is on has 3 MiB left at /var/lib/corten/etcd,"
        ));
        assert_eq!(group.next, "df -h /var/lib/corten/etcd");
    }

    #[test]
    fn where_no_member_is_no_disk_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("etcd")).expect("made");
        assert!(concern(folder.path()).is_none());
    }
}
