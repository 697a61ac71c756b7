//! Tells a folder of Corten's from somebody else's: one is closed to other users and erased, the other is left alone.
//!
//! A folder is Corten's where Corten's mark is in it, or where nothing is in it that Corten does not put there. One known name
//! among others says nothing: `/var` has a `log`, too.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{MachineError, error::Doing, folders::folder_modes::FOLDERS};

/// One of the two folders that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFolder {
    /// What `--data-dir` names.
    Data,
    /// What `--run-dir` names.
    Run,
}

/// What says that a folder is Corten's, whatever else somebody puts into it.
const MARK: &str = ".corten";
const MARK_TEXT: &str = "Corten made this folder or found it empty. It closes the folder to other users, and `corten reset` \
                         erases what Corten put into it.\n";

/// What lies in the folders apart from the folders that have rows in [`FOLDERS`].
const ENTRIES: [(NodeFolder, &[&str]); 2] = [
    (
        NodeFolder::Data,
        &[
            "admin.kubeconfig",
            "cluster-network.json",
            "containerd-damaged",
            "environment",
            "etcd",
            "etcd-cluster",
            "images",
            "leases",
            "manifests",
            "node-name",
            "seccomp",
            "supervision.json",
        ],
    ),
    (
        NodeFolder::Run,
        &[
            "cni",
            "containerd.pid",
            "containerd.sock",
            "containerd.sock.ttrpc",
            "containerd.toml",
            "crun",
            "environment",
            "node.lock",
            "node.pid",
            "ns",
            "runc",
            "supervisor.lock",
            "supervisor.pid",
            "turn.lock",
        ],
    ),
];

/// Without any of these a folder of known names may be anybody's, who has an `images` and a `log`.
const OF_CLUSTERS: [&str; 4] = ["pki", "store", "containerd", "admin.kubeconfig"];

/// What a crash leaves of a file that was to be replaced, or what a process writes beside it.
const LEFTOVERS: [&str; 3] = [".new", ".tmp", ".old"];

/// The file system's own, not its user's.
const OF_FILE_SYSTEMS: [&str; 1] = ["lost+found"];

impl NodeFolder {
    /// Does Corten put an entry of this name there?
    fn knows(self, name: &str) -> bool {
        let whole = |it: &str| {
            let rows = FOLDERS.iter().filter(|row| row.place == self).filter_map(|row| row.path.split('/').next());
            let entries = ENTRIES.iter().filter(|row| row.0 == self).flat_map(|row| row.1.iter().copied());
            rows.chain(entries).any(|known| known == it)
        };
        name == MARK || whole(name) || LEFTOVERS.iter().filter_map(|it| name.strip_suffix(it)).any(whole)
    }
}

/// What is seen of a folder.
#[derive(Debug, Default)]
struct FolderContents {
    has_mark: bool,
    /// What Corten puts there, by name.
    known: Vec<PathBuf>,
    foreign: Vec<PathBuf>,
}

impl FolderContents {
    /// A folder that is not there holds nothing.
    fn of(place: NodeFolder, path: &Path) -> io::Result<Self> {
        let mut this = Self { has_mark: has_mark(path), ..Self::default() };
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(this),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            match entry.file_name().to_str() {
                Some(name) if OF_FILE_SYSTEMS.contains(&name) => {}
                Some(name) if place.knows(name) => this.known.push(entry.path()),
                _ => this.foreign.push(entry.path()),
            }
        }
        this.foreign.sort();
        Ok(this)
    }

    fn is_ours(&self) -> bool {
        self.has_mark || self.foreign.is_empty()
    }

    fn may_be_erased(&self, place: NodeFolder) -> bool {
        let is_clusters = |it: &PathBuf| OF_CLUSTERS.iter().any(|known| it.ends_with(known));
        let is_evident = place == NodeFolder::Run || self.known.is_empty() || self.known.iter().any(is_clusters);
        self.has_mark || (self.foreign.is_empty() && is_evident)
    }

    /// Some of what is not Corten's, as an error names it.
    fn examples(&self) -> String {
        let names = self.foreign.iter().filter_map(|it| it.file_name()).map(|it| it.to_string_lossy());
        let shown: Vec<_> = names.take(3).collect();
        let more = if self.foreign.len() > shown.len() { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    }
}

/// A mark that another user put there says nothing: anybody may write in `/tmp`.
pub fn has_mark(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path.join(MARK)).is_ok_and(|it| it.is_file() && it.uid() == own)
}

/// Does Corten put an entry of this name there?
pub fn is_known(place: NodeFolder, entry: &Path) -> bool {
    entry.file_name().and_then(|it| it.to_str()).is_some_and(|it| place.knows(it))
}

/// What is in a folder that is not Corten's, where that is so.
pub fn anothers(place: NodeFolder, path: &Path) -> io::Result<Option<String>> {
    let found = FolderContents::of(place, path)?;
    Ok((!found.is_ours()).then(|| found.examples()))
}

/// Marks a folder that is Corten's; any other stays as it is.
pub fn mark(place: NodeFolder, path: &Path) -> Result<(), MachineError> {
    let found = FolderContents::of(place, path).doing("read", path)?;
    if found.has_mark || !found.foreign.is_empty() {
        return Ok(());
    }
    let file = path.join(MARK);
    let written = match File::options().write(true).create_new(true).mode(0o600).open(&file) {
        // Another process of Corten's was first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        opened => opened.and_then(|mut it| it.write_all(MARK_TEXT.as_bytes())),
    };
    written.doing("write", &file)
}

/// Takes the mark away, and with it a folder that nothing else is in.
pub fn leave(path: &Path) {
    let is_last = fs::read_dir(path).is_ok_and(|it| it.flatten().all(|it| it.file_name() == MARK));
    if is_last {
        let _ = fs::remove_file(path.join(MARK));
        let _ = fs::remove_dir(path);
    }
}

/// What is to be erased of a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Erasure {
    pub removed: Vec<PathBuf>,
    /// What its owner put beside Corten's. The mark stays with it.
    pub kept: Vec<PathBuf>,
}

/// A slip in a flag must not erase somebody's home.
///
/// # Errors
/// The folder is not a cluster's, or cannot be read.
pub fn erasure(place: NodeFolder, path: &Path) -> Result<Erasure, MachineError> {
    let found = FolderContents::of(place, path).doing("read", path)?;
    if !found.may_be_erased(place) {
        let what = match place {
            NodeFolder::Data => "a cluster's data",
            NodeFolder::Run => "a node's run folder",
        };
        let held = if found.foreign.is_empty() { String::new() } else { format!(", it holds {}", found.examples()) };
        return Err(MachineError::NotOurs(format!("{} is not {what}{held}: nothing was erased", path.display())));
    }
    let stays = |it: &PathBuf| !found.foreign.is_empty() && it.ends_with(MARK);
    let removed = found.known.iter().filter(|it| !stays(it)).cloned().collect();
    Ok(Erasure { removed, kept: found.foreign })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    fn folder(entries: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for it in entries {
            fs::create_dir(dir.path().join(it)).expect("made");
        }
        dir
    }

    /// Every name that Corten puts into a folder, each with what a crash may leave of it.
    fn known(place: NodeFolder) -> Vec<String> {
        let rows = FOLDERS.iter().filter(|it| it.place == place && !it.path.is_empty());
        let rows = rows.map(|it| it.path.split('/').next().expect("a first segment"));
        let entries = ENTRIES.iter().filter(|it| it.0 == place).flat_map(|it| it.1.iter().copied());
        let mut names: Vec<_> = rows.chain(entries).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn one_known_name_among_others_makes_no_folder_ours() {
        for place in [NodeFolder::Data, NodeFolder::Run] {
            for name in known(place) {
                let dir = folder(&[&name]);
                assert_eq!(anothers(place, dir.path()).expect("read"), None, "{name} alone");
                fs::write(dir.path().join("thesis.tex"), "").expect("written");
                let told = anothers(place, dir.path()).expect("read");
                assert_eq!(told.as_deref(), Some("thesis.tex"), "{name} beside what is somebody's");
                let error = erasure(place, dir.path()).expect_err("refused").to_string();
                assert!(error.contains("it holds thesis.tex: nothing was erased"), "{error}");
                mark(place, dir.path()).expect("left alone");
                assert!(!dir.path().join(MARK).exists(), "{name}");
            }
        }
    }

    #[test]
    fn what_crashes_file_systems_and_operators_leave_locks_no_cluster_out() {
        for place in [NodeFolder::Data, NodeFolder::Run] {
            let dir = folder(&["lost+found"]);
            for name in known(place) {
                fs::create_dir(dir.path().join(&name)).expect("made");
                for it in LEFTOVERS {
                    fs::write(dir.path().join(format!("{name}{it}")), "").expect("written");
                }
            }
            assert_eq!(anothers(place, dir.path()).expect("read"), None);
            mark(place, dir.path()).expect("marked");
            for it in ["audit.log", "backup"] {
                fs::write(dir.path().join(it), "").expect("written");
            }
            assert_eq!(anothers(place, dir.path()).expect("read"), None, "it is marked");
            let found = erasure(place, dir.path()).expect("a cluster's");
            assert_eq!(found.kept, ["audit.log", "backup"].map(|it| dir.path().join(it)));
            assert!(!found.removed.iter().any(|it| it.ends_with(MARK) || it.ends_with("lost+found")));
            assert_eq!(found.removed.len(), known(place).len() * (LEFTOVERS.len() + 1));
        }
    }

    #[test]
    fn erases_clusters_only() {
        let erased = |entries: &[&str]| erasure(NodeFolder::Data, folder(entries).path()).is_ok();
        assert!(erased(&[]) && erased(&["pki"]) && erased(&["store", "log", "lost+found"]));
        assert!(!erased(&["images", "log"]), "anybody may have these");
        let absent = erasure(NodeFolder::Data, &folder(&[]).path().join("absent")).expect("absent");
        assert_eq!(absent, Erasure::default());
    }

    #[test]
    fn a_mark_is_its_owners() {
        let dir = folder(&["somebody's"]);
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join(MARK)).expect("linked");
        assert!(!has_mark(dir.path()), "a link");
        fs::remove_file(dir.path().join(MARK)).expect("removed");
        fs::write(dir.path().join(MARK), "").expect("written");
        assert!(has_mark(dir.path()));
        if rustix::process::geteuid().is_root() {
            chown(dir.path().join(MARK), Some(4242), None).expect("given");
            assert!(!has_mark(dir.path()), "another user's");
        }
    }
}
