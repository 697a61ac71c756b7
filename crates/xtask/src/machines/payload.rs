//! What a machine is given when it starts for the first time: the program, images, and this project's scripts.
//!
//! It is an archive that the machine sees as a second disk. Through ssh an emulated machine would take a minute for it.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    e2e::{build_images, images_cache},
    machine::Arch,
};

/// Where a node looks for images of the machine's owner.
const INSTALLED_IMAGES: &str = "/usr/local/share/corten/images";
/// Where the suites find theirs.
pub(super) const SUITE_IMAGES: &str = "/usr/local/share/corten-e2e/images";

/// It has no name, and ends with this process.
pub(crate) struct Payload(File);

impl Payload {
    /// A machine as `./up --demo` leaves it, before anything is started.
    pub(crate) fn with_demo(root: &Path, corten: &Path, arch: Arch) -> Result<Self> {
        let mut files = base_files(root, corten);
        files.extend(images(root, &["pause", "demo"], arch, INSTALLED_IMAGES)?);
        Self::pack(&files)
    }

    /// What plays `e2e/node`: this very program, too, so that it is for machines of this one's architecture.
    pub(super) fn with_suite(root: &Path, corten: &Path) -> Result<Self> {
        let mut files = base_files(root, corten);
        files.push((std::env::current_exe()?, "/usr/local/bin/xtask".into()));
        files.extend(images(root, &["pause", "demo", "suite"], Arch::OWN, SUITE_IMAGES)?);
        Self::pack(&files)
    }

    /// As QEMU can open it.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// Packs files and folders, each with its place in the machine.
    fn pack(files: &[(PathBuf, PathBuf)]) -> Result<Self> {
        let plan = tempfile::tempdir()?;
        for (from, to) in files {
            let to = plan.path().join(to.strip_prefix("/").unwrap_or(to));
            fs::create_dir_all(to.parent().context("a place has a folder")?)?;
            symlink(from, &to).with_context(|| format!("planning {}", to.display()))?;
        }
        let archive = tempfile::tempfile_in("/var/tmp")?;
        let mut tar = Command::new("tar");
        // The plan is made of links; what they point to goes into the archive.
        tar.args(["--create", "--dereference", "--owner=0", "--group=0", "--directory"]).arg(plan.path()).arg(".");
        let status = tar.stdout(archive.try_clone()?).status().context("running tar")?;
        if !status.success() {
            bail!("packing what the machine needs: tar ended with {status}");
        }
        Ok(Self(archive))
    }
}

/// The project lies where it lies here: this program knows no other place.
fn base_files(root: &Path, corten: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut files = vec![(corten.to_owned(), "/usr/local/bin/corten".into())];
    files.extend(["e2e", "demo"].map(|it| (root.join(it), root.join(it))));
    files
}

fn images(root: &Path, names: &[&str], arch: Arch, folder: &str) -> Result<Vec<(PathBuf, PathBuf)>> {
    let another = Some(arch.to_string()).filter(|_| arch != Arch::OWN);
    let cache = another.as_ref().map_or_else(images_cache, |it| images_cache().join(it));
    let archive = |name: &&str| -> Result<(PathBuf, PathBuf)> {
        build_images(root, name, another.as_deref())?;
        let file = format!("{name}.tar");
        Ok((cache.join(&file), Path::new(folder).join(file)))
    };
    names.iter().map(archive).collect()
}
