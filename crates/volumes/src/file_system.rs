//! File systems: made, checked, mounted and grown. All in the node's mount namespace.

use std::{
    ffi::CString,
    fs, io,
    path::{Path, PathBuf},
};

use corten_machine::mounts;
use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount},
};

use crate::{
    Code, Fault, VolumeStats, disk_health,
    loop_device::text,
    mount_options,
    program::{is_installed, run, run_to_end},
    with_faults_named,
};

/// The file systems that are made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

/// `e2fsck`: some errors are left.
const UNCORRECTED: i32 = 4;

impl Kind {
    /// # Errors
    /// It is another one.
    pub(crate) fn parse(name: &str) -> Result<Self, Fault> {
        match name {
            "" | "ext4" => Ok(Self::Ext4),
            "xfs" => Ok(Self::Xfs),
            other => {
                let why = format!("file system {other:?} is not made here: use ext4 or xfs");
                Err(Fault::new(Code::InvalidArgument, why))
            }
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Nothing smaller can be made.
    pub(crate) fn least_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 8 << 20,
            Self::Xfs => 300 << 20,
        }
    }

    /// # Errors
    /// The program for it is not installed.
    pub(crate) fn can_be_made(self) -> Result<(), Fault> {
        let program = format!("mkfs.{}", self.as_str());
        if is_installed(&program) {
            return Ok(());
        }
        Err(Fault::new(Code::FailedPrecondition, format!("{program} is not installed on this node")))
    }

    /// Makes one on a file or device; all of it is its users'.
    pub(crate) fn make(self, on: &Path) -> Result<(), Fault> {
        let on = text(on)?;
        match self {
            Self::Ext4 => {
                let later = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
                run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", later, on])
            }
            Self::Xfs => run("mkfs.xfs", &["-q", "-f", "-K", on]),
        }
        .map(drop)
    }

    /// As the kubelet's `FormatAndMount`: what a crash left is mended; what cannot be is an error. XFS mends itself when mounted.
    pub(crate) fn check(self, on: &Path) -> Result<(), Fault> {
        if self == Self::Xfs {
            return Ok(());
        }
        let ended = run_to_end("e2fsck", &["-p", text(on)?])?;
        match ended.code {
            Some(code) if code < UNCORRECTED => Ok(()),
            // A container that is about to end holds it still: what is mounted is not broken.
            _ if ended.stderr.contains("is in use") || ended.stderr.contains("is mounted") => Ok(()),
            _ => Err(Fault::internal(format!(
                "'fsck' found errors on the volume but could not correct them: {}",
                ended.stdout
            ))),
        }
    }

    /// Makes it as large as its device, while it is mounted at `at`. False: the kernel refuses that to this process
    /// (`CAP_SYS_RESOURCE`), and it is to be done while nobody has it mounted.
    pub(crate) fn grow(self, device: &Path, at: &Path) -> Result<bool, Fault> {
        let ended = match self {
            Self::Ext4 => run_to_end("resize2fs", &[text(device)?])?,
            Self::Xfs => run_to_end("xfs_growfs", &["-d", text(at)?])?,
        };
        match ended.code {
            Some(0) => Ok(true),
            _ if ended.stderr.contains("Permission denied to resize") => Ok(false),
            _ => Err(Fault::internal(format!("growing the file system failed: {}", ended.stderr))),
        }
    }

    /// The same before it is mounted, where that is possible.
    pub(crate) fn grow_unmounted(self, device: &Path) -> Result<(), Fault> {
        if self == Self::Xfs {
            return Ok(());
        }
        // It refuses to grow what was not looked at as a whole.
        let looked = run_to_end("e2fsck", &["-f", "-p", text(device)?])?;
        match looked.code {
            Some(code) if code < UNCORRECTED => run("resize2fs", &[text(device)?]).map(drop),
            _ => Err(Fault::internal(format!("'fsck' found errors on the volume: {}", looked.stdout))),
        }
    }

    /// Mounts it; harmless where it is mounted there.
    pub(crate) fn mount(self, device: &Path, at: &Path, options: &[String]) -> Result<(), Fault> {
        if mounts::is_mount_point(at) {
            return Ok(());
        }
        let mut parsed = mount_options::parse(options);
        if self == Self::Xfs {
            // A clone has the identity of what it is a clone of, and XFS mounts no two of one.
            let list = parsed.data.split(',').filter(|it| !it.is_empty() && *it != "nouuid").chain(["nouuid"]);
            parsed.data = list.collect::<Vec<_>>().join(",");
        }
        let data =
            CString::new(parsed.data).map_err(|_| Fault::new(Code::InvalidArgument, "a mount option holds a zero"))?;
        // As all that is the Pods': programs in it give no rights, devices in it are none.
        let flags = parsed.flags | MountFlags::NOSUID | MountFlags::NODEV;
        mount(device, at, self.as_str(), flags, data.as_c_str()).map_err(|it| not_mounted(it, self.as_str()))
    }
}

pub(crate) fn not_mounted(error: Errno, fs_type: &str) -> Fault {
    let why = match error {
        Errno::NODEV => format!("this machine's kernel has no file system {fs_type}"),
        Errno::INVAL => format!("{}: wrong fs type {fs_type}, bad option, or bad superblock", io::Error::from(error)),
        _ => io::Error::from(error).to_string(),
    };
    Fault::internal(format!("mount failed: {why}"))
}

/// Shows `source`, a folder or a file, at `target` too. Harmless where something is mounted there.
pub(crate) fn bind(source: &Path, target: &Path, flags: MountFlags) -> Result<(), Fault> {
    if mounts::is_mount_point(target) {
        return Ok(());
    }
    with_faults_named(mount_bind(source, target), "mount failed")?;
    if flags.is_empty() {
        return Ok(());
    }
    // What the mount has already is kept: leaving a flag out would take it away.
    let held = with_faults_named(rustix::fs::statvfs(target), "look at what is mounted")?.f_flag;
    let kept = [
        (rustix::fs::StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (rustix::fs::StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (rustix::fs::StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (rustix::fs::StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (rustix::fs::StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (rustix::fs::StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (rustix::fs::StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|it| held.contains(it.0)).fold(flags, |all, it| all | it.1);
    if let Err(error) = mount_remount(target, MountFlags::BIND | kept, c"") {
        // Half a mount would be a writable one.
        let _ = unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        return Err(Fault::internal(format!("mount failed: {error}")));
    }
    Ok(())
}

/// Cuts what is bound at `target` off from the rest of the namespace, one way: mounts that come to its source come there, too, and what
/// is unmounted there stays where it came from.
pub(crate) fn only_follow(target: &Path) -> Result<(), Fault> {
    let change = |flags| with_faults_named(mount_change(target, flags), "mount failed");
    let changed = change(MountPropagationFlags::DOWNSTREAM).and_then(|()| change(MountPropagationFlags::SHARED));
    if changed.is_err() {
        let _ = unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    changed
}

/// Unmounts all that is mounted at `target`, however often. What is busy is `Aborted`, to be tried again.
pub(crate) fn unmount_all(target: &Path) -> Result<(), Fault> {
    while mounts::is_mount_point(target) {
        match unmount(target, UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => break,
            Err(error @ Errno::BUSY) => {
                return Err(Fault::new(Code::Aborted, format!("unmount failed: {}", io::Error::from(error))));
            }
            Err(error) => return Err(Fault::internal(format!("unmount failed: {}", io::Error::from(error)))),
        }
    }
    Ok(())
}

/// Unmounts and removes a folder that a server may hold up: it is not asked, and what is busy goes when it no longer is.
pub(crate) fn let_go(target: &Path) -> Result<(), Fault> {
    loop {
        match unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => break,
            Err(error) => return Err(Fault::internal(format!("unmount failed: {}", io::Error::from(error)))),
        }
    }
    match fs::remove_dir(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => with_faults_named(other, format_args!("remove {}", target.display())),
    }
}

/// Unmounts and removes a mount point that was made for it, file or folder. What is in a folder is never removed.
pub(crate) fn remove_place(target: &Path) -> Result<(), Fault> {
    unmount_all(target)?;
    let removed = match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(it) if it.is_dir() => fs::remove_dir(target),
        Ok(_) => fs::remove_file(target),
    };
    with_faults_named(removed, format_args!("remove {}", target.display()))
}

/// What the file system at `path` says of itself, and the kernel of its disk.
pub(crate) fn stats_of(path: &Path) -> Result<VolumeStats, Fault> {
    let stat = match rustix::fs::statvfs(path) {
        // So says an xfs that has given up.
        Err(error @ Errno::IO) => {
            let abnormal = Some(format!("its file system does not answer: {}", io::Error::from(error)));
            return Ok(VolumeStats { abnormal, ..VolumeStats::default() });
        }
        other => with_faults_named(other, "look at the volume")?,
    };
    let (total, free) = (stat.f_blocks, stat.f_bfree);
    Ok(VolumeStats {
        capacity_bytes: total.saturating_mul(stat.f_frsize),
        used_bytes: total.saturating_sub(free).saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        inodes: stat.f_files,
        inodes_used: stat.f_files.saturating_sub(stat.f_ffree),
        inodes_free: stat.f_ffree,
        abnormal: disk_health::trouble_at(path),
    })
}

/// A file system that was never used has nothing in it: databases refuse to begin in a folder that holds something.
pub(crate) fn clear_new(at: &Path) {
    const FOUND: &str = "lost+found";
    let names: Vec<_> = fs::read_dir(at).into_iter().flatten().flatten().map(|it| it.file_name()).collect();
    if names == [FOUND] {
        // Where something was found in it, it is not empty and stays.
        let _ = fs::remove_dir(at.join(FOUND));
    }
}

/// Where `device` is mounted, in this thread's namespace.
pub(crate) fn mounted_at(device: &Path) -> Option<PathBuf> {
    all_mounts(device).into_iter().next()
}

/// Every place where it is.
pub(crate) fn all_mounts(device: &Path) -> Vec<PathBuf> {
    let Ok(stat) = fs::metadata(device) else { return Vec::new() };
    let number = std::os::unix::fs::MetadataExt::rdev(&stat);
    mounts::mounts_of(rustix::fs::major(number), rustix::fs::minor(number))
}
