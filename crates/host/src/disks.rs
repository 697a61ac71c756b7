//! File systems of the node's folders that take no writes: read-only, or full. And the way to ask one whether it does.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use corten_kubelet::NodeProblem;
use corten_machine::Layout;
use corten_network::cni;
use rustix::fs::{StatVfsMountFlags, statvfs};

/// With less a sandbox's files, or a record of the runtime, may not be written whole.
const FREE_KIB_MIN: u64 = 512;
const FREE_FILES_MIN: u64 = 16;

/// The folders that nothing goes on without. How full the data may be is the store's and the eviction's to say.
pub(crate) fn unwritable(layout: &Layout) -> Vec<NodeProblem> {
    let places = [(layout.data.as_path(), false), (Path::new(cni::CACHE), false), (layout.run.as_path(), true)];
    let mut found: Vec<NodeProblem> = Vec::new();
    for (path, is_for_run) in places {
        let node_problem = match look(path) {
            Ok(State::ReadOnly) => NodeProblem::ReadOnly { path: text(path), mount: text(&mount_point(path)) },
            Ok(State::Full(left)) if is_for_run => {
                NodeProblem::Full { path: text(path), mount: text(&mount_point(path)), left }
            }
            _ => continue,
        };
        found.push(node_problem);
    }
    // One disk is told of once.
    found.dedup_by(|it, before| match (it, before) {
        (NodeProblem::ReadOnly { mount, .. }, NodeProblem::ReadOnly { mount: before, .. }) => mount == before,
        _ => false,
    });
    found
}

enum State {
    Fine,
    ReadOnly,
    /// What is left, in words.
    Full(String),
}

fn look(path: &Path) -> io::Result<State> {
    let disk = statvfs(path)?;
    let free_kib = disk.f_bavail.saturating_mul(disk.f_frsize) / 1024;
    Ok(if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        State::ReadOnly
    } else if free_kib < FREE_KIB_MIN {
        State::Full(format!("{free_kib} KiB are free"))
    } else if disk.f_files > 0 && disk.f_favail < FREE_FILES_MIN {
        State::Full(format!("room for {} more files", disk.f_favail))
    } else {
        State::Fine
    })
}

/// The highest folder on the same device.
fn mount_point(path: &Path) -> PathBuf {
    let device = |it: &Path| fs::metadata(it).ok().map(|it| it.dev());
    let own = device(path);
    path.ancestors().take_while(|it| device(it) == own).last().unwrap_or(path).to_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Can a file be made in this folder, and is it on the disk then? It is gone again afterwards.
///
/// # Errors
/// The disk does not take it.
pub fn takes_writes(folder: &Path) -> io::Result<()> {
    let path = folder.join(".probe");
    let written = fs::File::create(&path).and_then(|mut file| {
        io::Write::write_all(&mut file, b"corten")?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

    use super::*;

    #[test]
    fn a_disk_that_is_read_only_or_full_is_named() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        for folder in [&layout.data, &layout.run] {
            fs::create_dir(folder).expect("made");
        }
        assert_eq!(unwritable(&layout), []);
        let small = c"size=2m";
        mount("tmpfs", &layout.run, "tmpfs", MountFlags::empty(), Some(small)).expect("mounted");
        assert_eq!(unwritable(&layout), []);
        takes_writes(&layout.run).expect("it does");
        fs::write(layout.run.join("much"), vec![b'x'; 1800 << 10]).expect("written");
        let full = unwritable(&layout);
        let mount_point = text(&layout.run);
        assert!(
            matches!(&full[..], [NodeProblem::Full { mount, left, .. }] if *mount == mount_point && left.contains("KiB")),
            "{full:?}"
        );
        mount_remount(&layout.run, MountFlags::RDONLY, "").expect("mounted again");
        let read_only = unwritable(&layout);
        assert_eq!(read_only, [NodeProblem::ReadOnly { path: mount_point.clone(), mount: mount_point }]);
        assert_eq!(takes_writes(&layout.run).expect_err("it does not").kind(), io::ErrorKind::ReadOnlyFilesystem);
        unmount(&layout.run, UnmountFlags::empty()).expect("unmounted");
    }
}
