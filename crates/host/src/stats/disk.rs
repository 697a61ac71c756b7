//! What Pods have on the disk: their logs, and what is in their volumes.
//!
//! Walking folders costs, and what is in them belongs to strangers: all steps together end at a bound.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    time::{Duration, Instant},
};

use corten_machine::{
    Layout,
    tree::{self, Entry, Extent, Visitor, WalkBudget},
};
use rustix::fs::{AtFlags, FileType, fstat, statat, statvfs};

/// For all Pods together.
const WALK_TIME_MAX: Duration = Duration::from_secs(20);
/// For one Pod.
const ENTRIES_MAX: u64 = 2_000_000;
/// Most Pods have less than this; of those that have more each gets its share of what is left of the time.
const SMALL_TIME_MAX: Duration = Duration::from_millis(50);
const SMALL_ENTRIES_MAX: u64 = 20_000;
const BLOCK_BYTES: u64 = 512;

/// What something takes of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FsUsage {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl FsUsage {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), inodes: self.inodes.saturating_add(other.inodes) }
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

/// What outlives the Pod is none of what it takes from the node; and a server or driver that does not answer must not hold up
/// whoever measures.
const OUTLIVE: [&str; 3] = ["kubernetes.io~csi", "kubernetes.io~local-volume", "kubernetes.io~nfs"];

/// One volume of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeTaken {
    pub(crate) name: String,
    pub(crate) taken: FsUsage,
    pub(crate) file_system: FileSystem,
    /// It lies on the disk, and goes with the Pod: its bytes are the Pod's ephemeral storage.
    pub(crate) is_ephemeral: bool,
}

/// What one Pod has on the disk beside its containers' layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodFsUsage {
    /// By container.
    pub(crate) logs: BTreeMap<String, FsUsage>,
    pub(crate) volumes: Vec<VolumeTaken>,
    /// Its hosts file, and its containers' termination logs: they may write there as much as they like.
    pub(crate) other: FsUsage,
    /// There is more than could be counted.
    pub(crate) is_part: bool,
}

/// Whose disk is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Measures Pods, by uid. To be called in the node's mount namespace, where volumes of memory are seen.
///
/// A Pod with a tree that takes long takes it from none of the others: those come first, and what is left of the time is
/// shared by the ones that want more.
pub(crate) fn measure(layout: &Layout, owners: &[Owner]) -> BTreeMap<String, PodFsUsage> {
    let end = Instant::now() + WALK_TIME_MAX;
    let mut found = BTreeMap::new();
    let mut large = Vec::new();
    for owner in owners {
        let mut bound = WalkBudget::new(SMALL_TIME_MAX, SMALL_ENTRIES_MAX);
        let pod = pod(layout, owner, &mut bound);
        if pod.is_part {
            large.push(owner);
        }
        found.insert(owner.uid.clone(), pod);
    }
    for (n, owner) in large.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(large.len() - n).unwrap_or(u32::MAX);
        let mut bound = WalkBudget::new(share, ENTRIES_MAX);
        let pod = pod(layout, owner, &mut bound);
        if pod.is_part {
            let (namespace, name) = (&owner.namespace, &owner.name);
            tracing::warn!(
                namespace,
                name,
                "a pod's files are more than can be counted: it is taken to have those that were"
            );
        }
        found.insert(owner.uid.clone(), pod);
    }
    found
}

fn pod(layout: &Layout, owner: &Owner, bound: &mut WalkBudget) -> PodFsUsage {
    let mut found = PodFsUsage::default();
    for container in names(&layout.pod_logs(&owner.namespace, &owner.name, &owner.uid)) {
        let folder = layout.pod_logs(&owner.namespace, &owner.name, &owner.uid).join(&container);
        let (taken, is_part) = walk(&folder, bound);
        found.is_part |= is_part;
        found.logs.insert(container, taken);
    }
    let folder = layout.pod(&owner.uid);
    if let Ok(it) = std::fs::symlink_metadata(folder.join("etc-hosts")) {
        found.other = FsUsage { bytes: std::os::unix::fs::MetadataExt::blocks(&it) * BLOCK_BYTES, inodes: 1 };
    }
    let (termination_logs, is_part) = walk(&folder.join("containers"), bound);
    found.other = found.other.plus(termination_logs);
    found.is_part |= is_part;
    let disk = device(&folder);
    for plugin in names(&folder.join("volumes")).into_iter().filter(|it| !OUTLIVE.contains(&it.as_str())) {
        for name in names(&folder.join("volumes").join(&plugin)) {
            let path = folder.join("volumes").join(&plugin).join(&name);
            let Some(file_system) = FileSystem::of(&path) else { continue };
            let is_own = device(&path) != disk;
            let taken = if is_own {
                // A file system of the volume's own knows what it holds.
                let inodes = file_system.inodes.saturating_sub(file_system.inodes_free);
                FsUsage { bytes: file_system.used_bytes, inodes }
            } else {
                let (taken, is_part) = walk(&path, bound);
                found.is_part |= is_part;
                taken
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

/// As `du -x`: what is there, each file once, not past this file system. Past a bound what was counted so far, and that it
/// is only a part.
fn walk(path: &Path, bound: &mut WalkBudget) -> (FsUsage, bool) {
    let Ok(top) = tree::open_folder(path) else { return Default::default() };
    let Ok(stat) = fstat(&top) else { return Default::default() };
    let mut count = Count { device: stat.st_dev, linked: BTreeSet::new(), taken: FsUsage::default() };
    count.add(&stat);
    let walked = tree::walk(top, bound, &mut count);
    (count.taken, !matches!(walked, Ok(Extent::Whole)))
}

struct Count {
    device: u64,
    /// Files with several names that were met.
    linked: BTreeSet<u64>,
    taken: FsUsage,
}

impl Count {
    fn add(&mut self, stat: &rustix::fs::Stat) {
        if stat.st_nlink > 1 && !FileType::from_raw_mode(stat.st_mode).is_dir() && !self.linked.insert(stat.st_ino) {
            return;
        }
        self.taken.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        self.taken.inodes += 1;
    }
}

impl Visitor for Count {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        // It may have been taken away meanwhile.
        let Ok(stat) = statat(entry.folder, entry.name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(false) };
        if stat.st_dev != self.device {
            return Ok(false);
        }
        self.add(&stat);
        Ok(FileType::from_raw_mode(stat.st_mode).is_dir())
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
        let (taken, is_part) = walk(dir.path(), &mut WalkBudget::of_time(WALK_TIME_MAX));
        assert!(!is_part);
        // The folder, a, b, file, out.
        assert_eq!(taken.inodes, 5);
        assert!((1 << 20..2 << 20).contains(&taken.bytes), "{taken:?}");

        let mut bound = WalkBudget::new(WALK_TIME_MAX, 3);
        let (taken, is_part) = walk(dir.path(), &mut bound);
        assert!(taken.inodes < 5 && is_part, "{taken:?}");
        assert_eq!(walk(&dir.path().join("out"), &mut bound), (FsUsage::default(), false));
    }

    #[test]
    fn a_deep_tree_is_counted() {
        use corten_machine::tree::deep::{DEEP, make_deep, on_a_small_stack};
        let dir = tempfile::tempdir().expect("a temporary folder");
        let top = dir.path().join("top");
        std::fs::create_dir(&top).expect("made");
        make_deep(&top, DEEP);
        on_a_small_stack(move || {
            let (taken, is_part) = walk(&top, &mut WalkBudget::of_time(WALK_TIME_MAX));
            assert_eq!((taken.inodes, is_part), (u64::try_from(DEEP).expect("small") + 2, false));
            tree::remove(&top).expect("removed");
        });
    }

    /// One Pod has more than is counted at first: the others are counted all the same, and it is, too.
    #[test]
    fn a_large_pod_takes_nothing_from_the_others() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path(), dir.path().join("run"));
        let owner = |uid: &str| Owner { namespace: "default".into(), name: uid.into(), uid: uid.into() };
        let folder = |uid: &str| layout.pod(uid).join("volumes/kubernetes.io~empty-dir/scratch");
        for uid in ["a", "z"] {
            std::fs::create_dir_all(folder(uid)).expect("made");
            std::fs::write(folder(uid).join("x"), "1").expect("written");
        }
        let many = usize::try_from(SMALL_ENTRIES_MAX).expect("small") + 5;
        for file in 0..many {
            // Links take a moment where files take many.
            let linked = symlink("nowhere", folder("a").join(file.to_string()));
            linked.expect("linked");
        }
        let found = measure(&layout, &[owner("a"), owner("z")]);
        let inodes = |uid: &str| (found[uid].volumes[0].taken.inodes, found[uid].is_part);
        assert_eq!(inodes("z"), (2, false));
        assert_eq!(inodes("a"), (u64::try_from(many).expect("small") + 2, false));
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
        write(layout.pod("u1").join("volumes/kubernetes.io~local-volume/pv/x"), 65536);
        write(layout.pod("u1").join("volumes/kubernetes.io~csi/pv/mount/x"), 65536);
        write(layout.pod("u1").join("etc-hosts"), 10);
        write(layout.pod("u1").join("containers/main/0"), 32768);
        let found = &measure(&layout, &[owner])["u1"];
        assert!(found.logs["main"].bytes >= 8192 && found.logs["main"].inodes == 2, "{found:?}");
        assert_eq!((found.volumes.len(), &*found.volumes[0].name), (1, "scratch"));
        assert!(found.volumes[0].taken.bytes >= 65536 && found.volumes[0].is_ephemeral, "{found:?}");
        // The hosts file, and the container's last words in their two folders.
        assert!(found.other.inodes == 4 && found.other.bytes >= 32768, "{found:?}");
    }
}
