//! containerd's records of its images, snapshots and containers: how their damage shows, and how all is begun anew.
//!
//! Nothing is lost with them that cannot be made again: images come from archives and registries, containers from the API.
//! Volumes and logs lie elsewhere and stay.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use corten_machine::{Cgroups, Doing, Layout, MachineError, NodeMounts, command, folders::folder_modes, mounts, tree};

use super::{
    PAUSE_ARCHIVE,
    archives::{IMPORTED, archives, record_of_import},
    end, is_pause,
};
use crate::{Cri, shims};

/// Its two databases, and the names under which damaged ones are kept.
const DATABASES: [(&str, &str); 2] = [
    ("io.containerd.metadata.v1.bolt/meta.db", "meta.db"),
    ("io.containerd.snapshotter.v1.overlayfs/metadata.db", "snapshots.db"),
];
/// What the database says of a file that it did not write.
const NO_DATABASE: [&str; 4] = ["invalid database", "version mismatch", "checksum error", "file size too small"];
const DATABASE_CODE: &str = "go.etcd.io/bbolt";
/// How the Go runtime begins to tell of a crash.
const CRASHES: [&str; 3] = ["panic: ", "fatal error: fault", "unexpected fault address"];

/// What a life of containerd's says of damage in its log.
pub(super) fn damage(log: &str) -> Option<String> {
    let mut crash: Option<&str> = None;
    for line in log.lines() {
        if CRASHES.iter().any(|it| line.starts_with(it)) {
            crash = crash.or(Some(line));
        } else if line.starts_with(DATABASE_CODE) && crash.is_some() {
            return crash.map(str::to_owned);
        } else if line.starts_with("goroutine ") && !line.contains("[running]") {
            // The rest is about what did not crash.
            crash = None;
        }
        let is_of_database = line.contains("io.containerd.metadata.v1.bolt") || line.contains("open database file");
        let is_broken = is_of_database && NO_DATABASE.iter().any(|it| line.contains(it));
        if is_broken || line.contains("failed to recover state: ") {
            return Some(error_of(line));
        }
    }
    None
}

/// The last line that says what is wrong, else the last one.
pub(super) fn last_complaint(log: &str) -> &str {
    let complains = |it: &&str| CRASHES.iter().any(|crash| it.starts_with(crash)) || it.contains("error=");
    let lines: Vec<&str> = log.lines().collect();
    lines.iter().copied().rfind(complains).or_else(|| lines.last().copied()).unwrap_or_default()
}

/// What stands behind the last `error=` of a line, else the line.
fn error_of(line: &str) -> String {
    line.rsplit_once(" error=").map_or(line, |it| it.1).trim_matches('"').to_owned()
}

/// Do the records say what lies on the disk? A database that was emptied opens like a new one.
pub(super) async fn check(layout: &Layout, cri: &Cri) -> Result<(), MachineError> {
    // Where it does not answer nothing is known, and nothing taken away.
    let (Ok(sandboxes), Ok(images)) = (cri.list_pod_sandboxes(None).await, cri.list_images().await) else {
        return Ok(());
    };
    let has_pause = images.iter().flat_map(|it| &it.repo_tags).any(|it| is_pause(it));
    let socket = layout.containerd_socket();
    let args = ["--address", &socket.to_string_lossy(), "--namespace", "k8s.io", "snapshots", "ls"];
    match command::run("ctr", &args, "").await {
        // A line of titles, and one for each.
        Ok(list) if (has_pause || !sandboxes.is_empty()) && list.lines().nth(1).is_none() => {
            return Err(MachineError::Damaged("the snapshots of images are not known".into()));
        }
        Err(MachineError::Command { message, .. }) if NO_DATABASE.iter().any(|it| message.contains(it)) => {
            return Err(MachineError::Damaged(message));
        }
        // It may have ended over the question: its log tells.
        Ok(_) | Err(_) => {}
    }
    let is_imported = |archive: &&PathBuf| {
        let record = fs::read_to_string(record_of_import(layout, archive)).unwrap_or_default();
        archive.ends_with(PAUSE_ARCHIVE) && record.lines().nth(1) == Some(IMPORTED)
    };
    let archives = archives(layout);
    match archives.iter().find(is_imported) {
        Some(_) if !has_pause && sandboxes.is_empty() => {
            Err(MachineError::Damaged("images that were imported are not known".into()))
        }
        // Only the images went: they are imported again.
        Some(_) if !has_pause => forget_imports(layout),
        _ => Ok(()),
    }
}

/// Has containerd ever noted anything here?
pub(super) fn exist(layout: &Layout) -> bool {
    layout.containerd_root().join(DATABASES[0].0).exists()
}

/// Every archive is imported again.
pub(super) fn forget_imports(layout: &Layout) -> Result<(), MachineError> {
    archives(layout).iter().try_for_each(|it| {
        let record = record_of_import(layout, it);
        fs::remove_file(&record).or_else(ignore_missing).doing("remove", &record)
    })
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Ends containerd and every container, and takes its records away; the databases are kept to be looked at.
pub(super) async fn forget(layout: &Layout, mounts: &NodeMounts, cgroups: &Cgroups) -> Result<(), MachineError> {
    let root = layout.containerd_root();
    let (ending, cgroups) = (layout.clone(), cgroups.clone());
    let ended = tokio::task::spawn_blocking(move || {
        end(&ending);
        shims::of(&ending.containerd_socket()).iter().for_each(shims::Shim::kill);
        cgroups.remove_all()?;
        cgroups.remove_runtime()?;
        cgroups.prepare()
    });
    ended.await.map_err(io::Error::other).and_then(|it| it).doing("end the containers of", &root)?;
    let places = [layout.containerd_state(), root.clone()];
    let unmounted = mounts.run(move || places.iter().try_for_each(|it| mounts::unmount_beneath(it)));
    unmounted.await.and_then(|it| it).doing("unmount what is beneath", &root)?;
    keep_databases(layout).doing("keep the databases of", &root)?;
    for folder in [root, layout.containerd_state(), layout.run.join("runc"), layout.run.join("crun")] {
        let removing = folder.clone();
        // Seen from where they were mounted: no mount must stand in the way of removing.
        let removed = mounts.run(move || remove_unmounted(&removing)).await.and_then(|it| it);
        removed.doing("remove", &folder)?;
    }
    folder_modes::close_all(layout)
}

/// Where the damaged databases are kept: those of the last time.
pub(super) fn kept_in(layout: &Layout) -> PathBuf {
    layout.data.join("containerd-damaged")
}

fn keep_databases(layout: &Layout) -> io::Result<()> {
    let folder = kept_in(layout);
    fs::create_dir_all(&folder)?;
    for (database, name) in DATABASES {
        fs::rename(layout.containerd_root().join(database), folder.join(name)).or_else(ignore_missing)?;
    }
    Ok(())
}

fn remove_unmounted(folder: &Path) -> io::Result<()> {
    if let Some(mount) = mounts::mounts_beneath(folder).first() {
        return Err(io::Error::other(format!("{} is still mounted; unmount it", mount.display())));
    }
    tree::remove(folder)
}

#[cfg(test)]
mod tests;
