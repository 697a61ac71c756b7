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

use corten_kubelet::Exposure;
use rustix::fs::{Mode, OFlags, fchmod, fstat, open};

use crate::{HostError, Layout, error::Doing};

/// What lies in a data folder, by which it is told from somebody's home.
const IN_DATA: [&str; 11] = [
    "pki",
    "store",
    "admin.kubeconfig",
    "containerd",
    "pods",
    "log",
    "images",
    "manifests",
    "seccomp",
    "kubelet",
    "supervision.json",
];
const IN_RUN: [&str; 6] = ["supervisor.lock", "node.lock", "node.pid", "containerd", "containerd.toml", "ns"];

/// One folder, and what its mode is and must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Private {
    path: PathBuf,
    mode: u32,
    /// Bits of others' rights. A mode that has none of them stays as it is.
    never: u32,
}

impl Private {
    fn new(path: PathBuf, mode: u32) -> Self {
        Self { path, mode, never: !mode & 0o077 }
    }
}

/// Makes the folder of a cluster's data, or closes it where it is there.
///
/// # Errors
/// It is another's, it holds what is no cluster's, or its mode cannot be set.
pub fn close_data(path: &Path) -> Result<(), HostError> {
    close_known(path, &IN_DATA)
}

/// As [`close_data`], for what does not outlive the machine's run.
///
/// # Errors
/// As of [`close_data`].
pub fn close_run(path: &Path) -> Result<(), HostError> {
    close_known(path, &IN_RUN)
}

/// A slip in a flag must not close `/tmp` or somebody's home to their users.
fn close_known(path: &Path, known: &[&str]) -> Result<(), HostError> {
    let folder = Private::new(path.to_owned(), 0o700);
    let is_anothers = || {
        let mut entries = std::fs::read_dir(path).into_iter().flatten();
        entries.next().is_some() && !known.iter().any(|it| path.join(it).exists())
    };
    match mode_of(path) {
        Ok(mode) if mode & folder.never != 0 && is_anothers() => Err(HostError::Exposed(format!(
            "{} has mode {mode:04o} and holds what is not Corten's: it is not closed to other users, and not used; name an \
             empty folder, or set its mode to 0700",
            path.display()
        ))),
        _ => close(&folder),
    }
}

/// Makes a folder beneath the data, or closes it where it is there.
///
/// # Errors
/// It is another's, or its mode cannot be set.
pub fn close_within(path: &Path) -> Result<(), HostError> {
    close(&Private::new(path.to_owned(), 0o700))
}

/// All folders of a node that are made before it starts.
pub(crate) fn close_all(layout: &Layout) -> Result<(), HostError> {
    close_data(&layout.data)?;
    close_run(&layout.run)?;
    beneath(layout).iter().try_for_each(close)
}

/// What other users of the machine can look into: a mode that was changed while the node runs.
pub(crate) fn open_ones(layout: &Layout) -> Vec<Exposure> {
    let above = [&layout.data, &layout.run].map(|it| Private::new(it.clone(), 0o700));
    let exposure = |it: Private| {
        let mode = mode_of(&it.path).ok().filter(|mode| mode & it.never != 0)?;
        Some(Exposure::Folder { path: it.path.display().to_string(), mode, wanted: it.mode })
    };
    above.into_iter().chain(beneath(layout)).filter_map(exposure).collect()
}

fn beneath(layout: &Layout) -> Vec<Private> {
    let closed = |path: PathBuf| Private::new(path, 0o700);
    let containerds = |path: PathBuf| Private { never: 0o066, ..closed(path) };
    let kubelet = layout.data.join("kubelet");
    vec![
        closed(layout.data.join("pki")),
        closed(layout.data.join("store")),
        closed(kubelet.join("pki")),
        closed(kubelet),
        // As upstream's.
        Private::new(layout.pods(), 0o750),
        closed(layout.data.join("log")),
        closed(layout.data.join("log/pods")),
        // Later versions of containerd let others through, for containers whose root is another user.
        containerds(layout.containerd_root()),
        containerds(layout.containerd_state()),
    ]
}

fn close(folder: &Private) -> Result<(), HostError> {
    let path = &folder.path;
    DirBuilder::new().recursive(true).mode(folder.mode).create(path).doing("create", path)?;
    let open = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).doing("open", path)?;
    let stat = fstat(&open).doing("look at", path)?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own {
        let (owner, path) = (stat.st_uid, path.display());
        return Err(HostError::Exposed(format!(
            "{path} belongs to user {owner}, who could read and change the cluster through it; chown {own} {path}"
        )));
    }
    if stat.st_mode & folder.never == 0 {
        return Ok(());
    }
    let set = fchmod(&open, Mode::from_raw_mode(folder.mode));
    let mode = fstat(&open).doing("look at", path)?.st_mode & 0o7777;
    if mode & folder.never == 0 {
        return Ok(());
    }
    let why =
        set.err().map_or_else(|| "its file system keeps no modes".to_owned(), |it| io::Error::from(it).to_string());
    Err(HostError::Exposed(format!(
        "{} has mode {mode:04o}, and it cannot be set to {:04o}: {why}; other users of the machine could read the cluster's \
         keys through it and run programs that containers left there",
        path.display(),
        folder.mode,
    )))
}

fn mode_of(path: &Path) -> io::Result<u32> {
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
        assert_eq!(open_ones(&layout), []);
        let all = || {
            [layout.data.clone(), layout.run.clone()].into_iter().chain(beneath(&layout).into_iter().map(|it| it.path))
        };
        for path in all() {
            set(&path, 0o777);
        }
        // One beneath another is seen only once that one can be looked into; nobody else is asked here.
        assert_eq!(open_ones(&layout).len(), all().count());
        close_all(&layout).expect("closed");
        assert_eq!(open_ones(&layout), []);
        assert_eq!(mode_of(&layout.data).expect("there"), 0o700);
        assert_eq!(mode_of(&layout.pods()).expect("there"), 0o750);
        // A stricter mode is the owner's wish.
        set(&layout.pods(), 0o700);
        close_all(&layout).expect("closed");
        assert_eq!(mode_of(&layout.pods()).expect("there"), 0o700);
        set(&layout.containerd_root(), 0o711);
        assert_eq!(open_ones(&layout), []);
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
        let home = dir.path().join("home");
        fs::create_dir(&home).expect("made");
        set(&home, 0o755);
        close_run(&home).expect("an empty one is anybody's");
        set(&home, 0o1777);
        fs::write(home.join("thesis.tex"), "").expect("written");
        for refused in [close_data(&home), close_run(&home)] {
            let error = refused.expect_err("refused").to_string();
            assert!(error.contains("has mode 1777 and holds what is not Corten's"), "{error}");
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
