//! The program that makes containers out of what containerd hands it: crun where it is installed and can work, else runc.
//!
//! crun starts a container in half of runc's time. It has systemd make cgroups only where it was built for it. It refuses
//! machines whose cgroups are of the kernel's first layout with the second one beside them; the node's own mount namespace
//! does without the second one.

pub(crate) mod records;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::mount::{UnmountFlags, unmount};

/// Where the second layout lies beside the trees of the first.
const UNIFIED: &str = "/sys/fs/cgroup/unified";
const FOLDERS: [&str; 4] = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OciRuntime {
    /// Where it is.
    Crun(PathBuf),
    /// Found by containerd.
    Runc,
}

impl OciRuntime {
    /// Looks, in the mount namespace that containerd is to run in, which one can work there; and makes room for it.
    pub(crate) fn choose(with_systemd: bool) -> Self {
        let Some(crun) = find("crun") else { return Self::Runc };
        let Some(version) = version(&crun) else { return Self::Runc };
        if with_systemd && !version.contains("+SYSTEMD") {
            return Self::Runc;
        }
        match without_unified() {
            Ok(()) => Self::Crun(crun),
            Err(error) => {
                tracing::warn!(%error, "crun cannot work beside {UNIFIED}, runc is used");
                Self::Runc
            }
        }
    }

    /// The name of the folder it keeps its records in: neither could read the other's.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Crun(_) => "crun",
            Self::Runc => "runc",
        }
    }

    /// What containerd is to run; by its own default runc.
    pub(crate) fn program(&self) -> &Path {
        match self {
            Self::Crun(path) => path,
            Self::Runc => Path::new("runc"),
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from)).collect();
    folders.into_iter().filter(|it| it.is_absolute()).map(|it| it.join(program)).find(|it| it.is_file())
}

/// What it says of itself. One that was left behind by another release of the system may lack its libraries.
fn version(program: &Path) -> Option<String> {
    let mut version = Command::new(program);
    version.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = version.output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Takes the second layout out of this mount namespace. Harmless where it is not there.
fn without_unified() -> std::io::Result<()> {
    match unmount(UNIFIED, UnmountFlags::DETACH) {
        // Not a mount point, or no such folder.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_run_is_not_used() {
        assert!(find("no-such-program-anywhere").is_none());
        assert!(version(Path::new("/no/such/program")).is_none() && version(Path::new("/bin/false")).is_none());
        assert!(version(Path::new("/bin/true")).is_some());
        assert_eq!(find("sh").map(|it| it.is_absolute()), Some(true));
    }
}
