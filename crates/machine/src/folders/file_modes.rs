//! The files beneath a node's data that others must not read or change. The folders above are closed as well; but who opens
//! those shall not open the keys with them.

use std::path::{Path, PathBuf};

use corten_kubelet::NodeProblem;
use rustix::fs::{Mode, OFlags, fchmod, open};

use crate::{MachineError, error::Doing, folders::folder_modes::mode_of};

/// One file, and what its mode is and must not have.
struct Private {
    path: PathBuf,
    mode: u32,
    /// Bits of others' rights. A mode that has none of them stays as it is.
    forbidden_bits: u32,
}

/// Closes those that are there.
///
/// # Errors
/// A mode cannot be set.
pub(crate) fn close_files(data: &Path) -> Result<(), MachineError> {
    files(data).iter().try_for_each(close_file)
}

/// What other users of the machine can read or change: a mode that was changed while the node runs.
pub(crate) fn exposed_files(data: &Path) -> Vec<NodeProblem> {
    let node_problem = |it: Private| {
        let mode = mode_of(&it.path).ok().filter(|mode| mode & it.forbidden_bits != 0)?;
        Some(NodeProblem::File { path: it.path.display().to_string(), mode, wanted: it.mode })
    };
    files(data).into_iter().filter_map(node_problem).collect()
}

/// Keys, certificates, tokens and what the store holds, as far as they are there. Certificates may be read.
fn files(data: &Path) -> Vec<Private> {
    let mut paths = vec![data.join("admin.kubeconfig"), data.join("supervision.json")];
    for folder in ["pki", "store", "kubelet/pki"] {
        let entries = std::fs::read_dir(data.join(folder)).into_iter().flatten().flatten();
        paths.extend(entries.map(|it| it.path()));
    }
    // A link leads to what is somebody else's to close.
    paths.retain(|it| it.symlink_metadata().is_ok_and(|it| it.is_file()));
    paths.sort();
    let private = |path: PathBuf| match path.extension() {
        Some(extension) if extension == "crt" => Private { path, mode: 0o644, forbidden_bits: 0o022 },
        _ => Private { path, mode: 0o600, forbidden_bits: 0o077 },
    };
    paths.into_iter().map(private).collect()
}

fn close_file(file: &Private) -> Result<(), MachineError> {
    let path = &file.path;
    if mode_of(path).is_ok_and(|it| it & file.forbidden_bits == 0) {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = match open(path, flags, Mode::empty()) {
        Ok(open) => open,
        // The store removes what it does not need any more.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error).doing("open", path),
    };
    fchmod(&open, Mode::from_raw_mode(file.mode)).doing("set the mode of", path)?;
    tracing::warn!(path = %path.display(), "other users could read or change it: its mode is set");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::{Layout, folders::folder_modes};

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }

    #[test]
    fn every_file_that_holds_a_secret_is_closed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        folder_modes::close_all(&layout).expect("made");
        let secret = [
            "admin.kubeconfig",
            "supervision.json",
            "pki/ca.key",
            "pki/sa.key",
            "kubelet/pki/kubelet-server-current.pem",
            "store/00000000000000000001.log",
        ];
        let public = "pki/ca.crt";
        for file in secret.into_iter().chain([public]) {
            fs::write(layout.data.join(file), "x").expect("written");
            set(&layout.data.join(file), 0o666);
        }
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "x").expect("written");
        set(&elsewhere, 0o666);
        std::os::unix::fs::symlink(&elsewhere, layout.data.join("pki/link")).expect("linked");
        assert_eq!(exposed_files(&layout.data).len(), secret.len() + 1);
        let key = layout.data.join("pki/ca.key").display().to_string();
        assert!(exposed_files(&layout.data).contains(&NodeProblem::File { path: key, mode: 0o666, wanted: 0o600 }));
        folder_modes::close_all(&layout).expect("closed");
        assert_eq!(exposed_files(&layout.data), []);
        for file in secret {
            assert_eq!(mode_of(&layout.data.join(file)).expect("there"), 0o600, "{file}");
        }
        assert_eq!(mode_of(&layout.data.join(public)).expect("there"), 0o644, "a certificate is no secret");
        assert_eq!(mode_of(&elsewhere).expect("there"), 0o666, "links are not followed");
    }
}
