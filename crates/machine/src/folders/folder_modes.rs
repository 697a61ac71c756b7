//! The node's folders are closed to the machine's other users: keys and Secrets are in them, and files that containers made,
//! which may carry the set-user-ID bit.
//!
//! A folder that was there before has the mode that somebody gave it, so modes are set at every start. Where that cannot be
//! done the node does not start.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use corten_kubelet::NodeProblem;
use rustix::fs::{Mode, OFlags, fchmod, fstat, open};

use crate::{
    Layout, MachineError,
    error::Doing,
    folders::{
        file_modes::{close_files, exposed_files},
        own_folder::{self, NodeFolder},
        owners,
    },
};

/// One folder of a node, and what its mode is and must not have.
#[derive(Debug)]
pub struct Folder {
    pub place: NodeFolder,
    /// Beneath the place; nothing is the place itself.
    pub path: &'static str,
    /// What it is made with, and set to where it has a forbidden bit.
    pub mode: u32,
    /// Bits of others' rights. A mode that has none of them stays as it is.
    pub forbidden_bits: u32,
    /// Is it of the control plane, so that `corten server` closes it, too?
    pub of_server: bool,
}

const fn closed(place: NodeFolder, path: &'static str) -> Folder {
    Folder { place, path, mode: 0o700, forbidden_bits: 0o077, of_server: false }
}

const fn of_server(folder: Folder) -> Folder {
    Folder { of_server: true, ..folder }
}

/// Later versions of containerd let others through, for containers whose root is another user.
const fn of_containerd(folder: Folder) -> Folder {
    Folder { forbidden_bits: 0o066, ..folder }
}

/// Every folder that is closed. What lies beneath one comes after it.
pub const FOLDERS: [Folder; 18] = [
    of_server(closed(NodeFolder::Data, "")),
    of_server(closed(NodeFolder::Data, "pki")),
    of_server(closed(NodeFolder::Data, "store")),
    closed(NodeFolder::Data, "kubelet"),
    closed(NodeFolder::Data, "kubelet/pki"),
    // The kubelet's mode.
    Folder { mode: 0o750, forbidden_bits: 0o027, ..closed(NodeFolder::Data, "pods") },
    closed(NodeFolder::Data, "volumes"),
    closed(NodeFolder::Data, "snapshots"),
    closed(NodeFolder::Data, "plugins"),
    closed(NodeFolder::Data, "plugins_registry"),
    closed(NodeFolder::Data, "device-plugins"),
    closed(NodeFolder::Data, "pod-resources"),
    closed(NodeFolder::Data, "checkpoints"),
    closed(NodeFolder::Data, "log"),
    closed(NodeFolder::Data, "log/pods"),
    of_containerd(closed(NodeFolder::Data, "containerd")),
    closed(NodeFolder::Run, ""),
    of_containerd(closed(NodeFolder::Run, "containerd")),
];

impl Folder {
    /// Where it lies, beneath the folder that its place is.
    fn beneath(&self, place: &Path) -> PathBuf {
        // Joining nothing would add a slash.
        if self.path.is_empty() { place.to_owned() } else { place.join(self.path) }
    }

    fn of(&self, layout: &Layout) -> PathBuf {
        match self.place {
            NodeFolder::Data => self.beneath(&layout.data),
            NodeFolder::Run => self.beneath(&layout.run),
        }
    }
}

/// Makes the folder of a cluster's data, or closes it where it is there.
///
/// # Errors
/// It is another's, it holds what is no cluster's, or its mode cannot be set.
pub fn close_data(path: &Path) -> Result<(), MachineError> {
    close_place(NodeFolder::Data, path)
}

/// As [`close_data`], for what does not outlive the machine's run.
///
/// # Errors
/// As of [`close_data`].
pub fn close_run(path: &Path) -> Result<(), MachineError> {
    close_place(NodeFolder::Run, path)
}

/// The folder of a cluster's data, and what the control plane has in it.
///
/// # Errors
/// As of [`close_data`].
pub fn close_for_server(data: &Path) -> Result<(), MachineError> {
    close_data(data)?;
    let mut folders = FOLDERS.iter().filter(|it| it.place == NodeFolder::Data && it.of_server);
    folders.try_for_each(|it| close(it, &it.beneath(data)))?;
    close_files(data)
}

/// The folder of a cluster's data, and the logs in it.
///
/// # Errors
/// As of [`close_data`].
pub fn close_for_logs(data: &Path) -> Result<(), MachineError> {
    close_data(data)?;
    let mut folders = FOLDERS.iter().filter(|it| it.place == NodeFolder::Data && it.path.starts_with("log"));
    folders.try_for_each(|it| close(it, &it.beneath(data)))
}

/// All folders of a node that are made before it starts.
pub fn close_all(layout: &Layout) -> Result<(), MachineError> {
    close_data(&layout.data)?;
    close_run(&layout.run)?;
    FOLDERS.iter().try_for_each(|it| close(it, &it.of(layout)))?;
    close_files(&layout.data)
}

/// What other users of the machine can look into: a mode that was changed while the node runs.
pub fn exposed(layout: &Layout) -> Vec<NodeProblem> {
    let node_problem = |it: &Folder| {
        let path = it.of(layout);
        let mode = mode_of(&path).ok().filter(|mode| mode & it.forbidden_bits != 0)?;
        Some(NodeProblem::Folder { path: path.display().to_string(), mode, wanted: it.mode })
    };
    FOLDERS
        .iter()
        .filter_map(node_problem)
        .chain(exposed_files(&layout.data))
        .chain(owners::replaceable(layout))
        .collect()
}

/// Are these folders such that a node could have run in them? What stops a node takes away what it left there by name, and a
/// slip in a flag must not make that another's.
///
/// # Errors
/// One is open to other users and holds what is not Corten's.
pub fn could_be_a_nodes(layout: &Layout) -> Result<(), MachineError> {
    let places = [(NodeFolder::Data, &layout.data), (NodeFolder::Run, &layout.run)];
    places.into_iter().try_for_each(|(place, path)| not_anothers(place, path))
}

fn close_place(place: NodeFolder, path: &Path) -> Result<(), MachineError> {
    not_anothers(place, path)?;
    let row = FOLDERS.iter().find(|it| it.place == place && it.path.is_empty());
    close(row.expect("both places have rows"), path)?;
    owners::refuse_anothers(place, path)?;
    own_folder::mark(place, path)
}

/// A slip in a flag must not close `/tmp` or somebody's home to their users.
fn not_anothers(place: NodeFolder, path: &Path) -> Result<(), MachineError> {
    // One that cannot be read is told of when it is opened.
    let Ok(mode) = mode_of(path) else { return Ok(()) };
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let Some(what) = own_folder::anothers(place, path).doing("read", path)? else { return Ok(()) };
    Err(MachineError::NotOurs(format!(
        "{} has mode {mode:04o} and holds what is not Corten's ({what}): it is not closed to other users, and not used; name \
         an empty folder, or set its mode to 0700",
        path.display()
    )))
}

fn close(folder: &Folder, path: &Path) -> Result<(), MachineError> {
    DirBuilder::new().recursive(true).mode(folder.mode).create(path).doing("create", path)?;
    let open = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).doing("open", path)?;
    let stat = fstat(&open).doing("look at", path)?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own {
        let (owner, path) = (stat.st_uid, path.display());
        return Err(MachineError::Exposed(format!(
            "{path} belongs to user {owner}, who could read and change the cluster through it; chown {own} {path}"
        )));
    }
    if stat.st_mode & folder.forbidden_bits == 0 {
        return Ok(());
    }
    let set = fchmod(&open, Mode::from_raw_mode(folder.mode));
    let mode = fstat(&open).doing("look at", path)?.st_mode & 0o7777;
    if mode & folder.forbidden_bits == 0 {
        return Ok(());
    }
    let why =
        set.err().map_or_else(|| "its file system keeps no modes".to_owned(), |it| io::Error::from(it).to_string());
    Err(MachineError::Exposed(format!(
        "{} has mode {mode:04o}, and it cannot be set to {:04o}: {why}; other users of the machine could read the cluster's \
         keys through it and run programs that containers left there",
        path.display(),
        folder.mode,
    )))
}

pub fn mode_of(path: &Path) -> io::Result<u32> {
    Ok(rustix::fs::stat(path)?.st_mode & 0o7777)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, chown},
    };

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }

    #[test]
    fn every_folder_is_closed_whether_it_was_there_or_not() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        close_all(&layout).expect("made");
        assert_eq!(exposed(&layout), []);
        let all = || FOLDERS.iter().map(|it| it.of(&layout));
        for path in all() {
            set(&path, 0o777);
        }
        // One beneath another is seen only once that one can be looked into; nobody else is asked here.
        assert_eq!(exposed(&layout).len(), all().count());
        close_all(&layout).expect("closed");
        assert_eq!(exposed(&layout), []);
        assert_eq!(mode_of(&layout.data).expect("there"), 0o700);
        assert_eq!(mode_of(&layout.pods()).expect("there"), 0o750);
        // A stricter mode is the owner's wish.
        set(&layout.pods(), 0o700);
        close_all(&layout).expect("closed");
        assert_eq!(mode_of(&layout.pods()).expect("there"), 0o700);
        set(&layout.containerd_root(), 0o711);
        assert_eq!(exposed(&layout), []);
    }

    #[test]
    fn images_that_were_brought_before_the_first_start_make_a_folder_ours() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("images")).expect("made");
        set(&data, 0o755);
        close_data(&data).expect("closed");
        assert_eq!(mode_of(&data).expect("there"), 0o700);
    }

    #[test]
    fn what_is_anothers_is_neither_closed_nor_used() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let empty = dir.path().join("empty");
        fs::create_dir(&empty).expect("made");
        set(&empty, 0o755);
        close_run(&empty).expect("an empty one is anybody's");
        let home = dir.path().join("home");
        // As `/var` has the one and `/run` the other.
        for known in ["log", "containerd"] {
            fs::create_dir_all(home.join(known)).expect("made");
        }
        set(&home, 0o1777);
        fs::write(home.join("thesis.tex"), "").expect("written");
        for refused in [close_data(&home), close_for_server(&home), close_for_logs(&home), close_run(&home)] {
            let error = refused.expect_err("refused").to_string();
            assert!(error.contains("has mode 1777 and holds what is not Corten's ("), "{error}");
        }
        assert_eq!(mode_of(&home).expect("there"), 0o1777);
        set(&home, 0o700);
        close_data(&home).expect("whoever closed it means it");

        if !rustix::process::geteuid().is_root() {
            return;
        }
        chown(&home, Some(4242), None).expect("given");
        let error = close_data(&home).expect_err("refused").to_string();
        assert!(
            error.contains("belongs to user 4242") && error.ends_with(&format!("chown 0 {}", home.display())),
            "{error}"
        );
    }
}
