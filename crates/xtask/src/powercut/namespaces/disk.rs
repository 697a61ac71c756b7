//! Disks as files: each holds an ext4 file system, and all lie on an xfs, which copies a file at one moment and at once.
//!
//! A machine sees its disk through a loop device with direct I/O, so the file holds what the kernel handed to the disk, and
//! nothing that it still holds back in memory.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::namespaces::run;

const SHELF_SIZE: &str = "16G";
const DISK_SIZE: &str = "4G";

/// The xfs. Its own file has no name any more, so its room is free when this process has ended, however it ends.
pub(super) struct Shelf {
    folder: TempDir,
}

impl Shelf {
    /// `folder` needs a few GiB of room.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let shelf = Self { folder: tempfile::tempdir()? };
        let file = tempfile::Builder::new().prefix("corten-powercut-").tempfile_in(folder)?;
        let path = file.path().to_str().context("a temporary path is text")?;
        run("truncate", &["--size", SHELF_SIZE, path])?;
        run("mkfs.xfs", &["-q", "-m", "reflink=1", path])?;
        let device = attach(file.path())?;
        run("mount", &["-t", "xfs", &device, shelf.path().to_str().context("a temporary path is text")?])?;
        // The mount keeps it.
        run("losetup", &["--detach", &device])?;
        Ok(shelf)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A new disk with what lies in `content`.
    pub(super) fn format(&self, name: &str, content: &Path) -> Result<PathBuf> {
        let disk = self.path().join(name);
        let (path, content) = (disk.to_str().context("a temporary path is text")?, content.to_str().context("text")?);
        run("truncate", &["--size", DISK_SIZE, path])?;
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", content, path])?;
        Ok(disk)
    }

    /// A copy as the disk is at this moment, whoever writes to it.
    pub(super) fn copy(&self, disk: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.path().join(name);
        let made = File::create(&copy).with_context(|| format!("making {}", copy.display()))?;
        let original = File::open(disk).with_context(|| format!("opening {}", disk.display()))?;
        rustix::fs::ioctl_ficlone(&made, &original).with_context(|| format!("copying {}", disk.display()))?;
        Ok(copy)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
        let _ = fs::remove_dir(self.path());
    }
}

/// Lets go of what lies as disks in a file system that nobody has mounted any more, by its device: the kernel would keep both.
pub(super) fn detach_all_on(device: u64) -> Result<()> {
    let mut command = Command::new("losetup");
    command.args(["--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN"]);
    let output = command.output().context("running losetup")?;
    for name in names_on(&String::from_utf8_lossy(&output.stdout), device) {
        // One that the kernel was letting go is gone already.
        let _ = run("losetup", &["--detach", name]);
    }
    Ok(())
}

fn names_on(list: &str, device: u64) -> Vec<&str> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let found = list.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, on) = (words.next()?, words.next()?);
        (on == number).then_some(name)
    });
    found.collect()
}

/// The loop device of a file.
pub(super) fn attach(file: &Path) -> Result<String> {
    let mut command = Command::new("losetup");
    command.args(["--find", "--show", "--direct-io=on"]).arg(file);
    let output = command.output().context("running losetup")?;
    if !output.status.success() {
        bail!("a loop device for {}: {}", file.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_told_apart_by_what_they_lie_on() {
        let list = "/dev/loop0       0:42  \n/dev/loop3      7:12  \n/dev/loop4       7:1  \n";
        assert_eq!(names_on(list, rustix::fs::makedev(7, 1)), ["/dev/loop4"]);
        assert_eq!(names_on("", rustix::fs::makedev(7, 1)), Vec::<&str>::new());
    }
}
