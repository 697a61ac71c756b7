//! What Pods have on the disk: their logs, and what is in their volumes.
//!
//! Walking folders costs, and what is in them belongs to strangers: each step goes by the folder that is open, never
//! through a link, and all steps together end at a bound.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CString,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, open, openat, statat, statvfs},
    io::Errno,
};

use crate::Layout;

/// For all Pods together.
const WALK_TIME_MAX: Duration = Duration::from_secs(20);
const ENTRIES_MAX: u64 = 2_000_000;
/// Folders within folders; each is an open file.
const DEPTH_MAX: usize = 200;
const BLOCK_BYTES: u64 = 512;

/// What something takes of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Taken {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, inodes: self.inodes + other.inodes }
    }
}

/// One file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) capacity_bytes: u64,
    pub(crate) available_bytes: u64,
    pub(crate) used_bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) inodes_free: u64,
}

impl FileSystem {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let it = statvfs(path).ok()?;
        Some(Self {
            capacity_bytes: it.f_blocks.saturating_mul(it.f_frsize),
            available_bytes: it.f_bavail.saturating_mul(it.f_frsize),
            used_bytes: it.f_blocks.saturating_sub(it.f_bfree).saturating_mul(it.f_frsize),
            inodes: it.f_files,
            inodes_free: it.f_ffree,
        })
    }
}

/// One volume of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeTaken {
    pub(crate) name: String,
    pub(crate) taken: Taken,
    pub(crate) file_system: FileSystem,
    /// It lies on the disk, and goes with the Pod: its bytes are the Pod's ephemeral storage.
    pub(crate) is_ephemeral: bool,
}

/// What one Pod has on the disk beside its containers' layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodTaken {
    /// By container.
    pub(crate) logs: BTreeMap<String, Taken>,
    pub(crate) volumes: Vec<VolumeTaken>,
    /// Its hosts file.
    pub(crate) other: Taken,
}

/// Whose disk is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Measures Pods, by uid. To be called in the node's mount namespace, where volumes of memory are seen.
pub(crate) fn measure(layout: &Layout, owners: &[Owner]) -> BTreeMap<String, PodTaken> {
    let mut bound = Bound { until: Instant::now() + WALK_TIME_MAX, entries: ENTRIES_MAX };
    let one = |it: &Owner| (it.uid.clone(), pod(layout, it, &mut bound));
    owners.iter().map(one).collect()
}

fn pod(layout: &Layout, owner: &Owner, bound: &mut Bound) -> PodTaken {
    let mut found = PodTaken::default();
    for container in names(&layout.pod_logs(&owner.namespace, &owner.name, &owner.uid)) {
        let folder = layout.pod_logs(&owner.namespace, &owner.name, &owner.uid).join(&container);
        let taken = walk(&folder, bound);
        found.logs.insert(container, taken);
    }
    let folder = layout.pod(&owner.uid);
    if let Ok(it) = std::fs::symlink_metadata(folder.join("etc-hosts")) {
        found.other = Taken { bytes: std::os::unix::fs::MetadataExt::blocks(&it) * BLOCK_BYTES, inodes: 1 };
    }
    let disk = device(&folder);
    for plugin in names(&folder.join("volumes")) {
        for name in names(&folder.join("volumes").join(&plugin)) {
            let path = folder.join("volumes").join(&plugin).join(&name);
            let Some(file_system) = FileSystem::of(&path) else { continue };
            let is_own = device(&path) != disk;
            let taken = if is_own {
                // As upstream: a file system of its own knows what it holds.
                let inodes = file_system.inodes.saturating_sub(file_system.inodes_free);
                Taken { bytes: file_system.used_bytes, inodes }
            } else {
                walk(&path, bound)
            };
            let is_ephemeral = !is_own && plugin != "kubernetes.io~downward-api";
            found.volumes.push(VolumeTaken { name, taken, file_system, is_ephemeral });
        }
    }
    found
}

fn device(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|it| std::os::unix::fs::MetadataExt::dev(&it))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// What all walks of one measurement may take together.
struct Bound {
    until: Instant,
    entries: u64,
}

impl Bound {
    fn is_reached(&mut self) -> bool {
        self.entries = self.entries.saturating_sub(1);
        self.entries == 0 || (self.entries.is_multiple_of(256) && Instant::now() > self.until)
    }
}

/// As `du -x`: what is there, each file once, not past this file system. Past a bound what was counted so far.
fn walk(path: &Path, bound: &mut Bound) -> Taken {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(top) = open(path, flags, Mode::empty()) else { return Taken::default() };
    let Ok(stat) = fstat(&top) else { return Taken::default() };
    let mut walk = Walk { device: stat.st_dev, linked: BTreeSet::new(), taken: Taken::default() };
    walk.count(&stat);
    walk.folder(&top, 0, bound);
    walk.taken
}

struct Walk {
    device: u64,
    /// Files with several names that were met.
    linked: BTreeSet<u64>,
    taken: Taken,
}

impl Walk {
    fn count(&mut self, stat: &rustix::fs::Stat) {
        if stat.st_nlink > 1 && !FileType::from_raw_mode(stat.st_mode).is_dir() && !self.linked.insert(stat.st_ino) {
            return;
        }
        self.taken.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        self.taken.inodes += 1;
    }

    fn folder(&mut self, folder: &OwnedFd, depth: usize, bound: &mut Bound) {
        let Ok(entries) = Dir::read_from(folder) else { return };
        let mut folders: Vec<CString> = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if bound.is_reached() {
                return;
            }
            let Ok(stat) = statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if stat.st_dev != self.device {
                continue;
            }
            self.count(&stat);
            if FileType::from_raw_mode(stat.st_mode).is_dir() && depth < DEPTH_MAX {
                folders.push(name.to_owned());
            }
        }
        for name in folders {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(folder, &*name, flags, Mode::empty()) {
                Ok(inner) => self.folder(&inner, depth + 1, bound),
                // It was taken away meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => tracing::debug!(?name, %error, "cannot measure a folder"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn counts_what_is_there_once_and_follows_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let outside = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(outside.path().join("large"), vec![1; 4 << 20]).expect("written");
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("made");
        std::fs::write(inner.join("file"), vec![1; 1 << 20]).expect("written");
        std::fs::hard_link(inner.join("file"), dir.path().join("again")).expect("linked");
        symlink(outside.path(), dir.path().join("out")).expect("linked");
        let mut bound = Bound { until: Instant::now() + WALK_TIME_MAX, entries: ENTRIES_MAX };
        let taken = walk(dir.path(), &mut bound);
        // The folder, a, b, file, out.
        assert_eq!(taken.inodes, 5);
        assert!((1 << 20..2 << 20).contains(&taken.bytes), "{taken:?}");

        let mut bound = Bound { until: Instant::now() + WALK_TIME_MAX, entries: 3 };
        assert!(walk(dir.path(), &mut bound).inodes < 5);
        assert_eq!(walk(&dir.path().join("out"), &mut bound), Taken::default());
    }

    #[test]
    fn a_pod_is_its_logs_and_volumes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path(), dir.path().join("run"));
        let owner = Owner { namespace: "default".into(), name: "web".into(), uid: "u1".into() };
        let write = |path: std::path::PathBuf, bytes: usize| {
            std::fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
            std::fs::write(path, vec![1; bytes]).expect("written");
        };
        write(layout.container_log("default", "web", "u1", "main", 0), 8192);
        write(layout.pod("u1").join("volumes/kubernetes.io~empty-dir/scratch/x"), 65536);
        write(layout.pod("u1").join("etc-hosts"), 10);
        let found = &measure(&layout, &[owner])["u1"];
        assert!(found.logs["main"].bytes >= 8192 && found.logs["main"].inodes == 2, "{found:?}");
        assert_eq!((found.volumes.len(), &*found.volumes[0].name), (1, "scratch"));
        assert!(found.volumes[0].taken.bytes >= 65536 && found.volumes[0].is_ephemeral, "{found:?}");
        assert_eq!(found.other.inodes, 1);
    }
}
