//! Project quotas: a folder whose size the kernel holds, on ext4 and xfs.
//!
//! Each file belongs to a project, by a number; a new one belongs to that of its folder. The kernel counts what a project takes, and
//! refuses what would be more than its limit. Who owns a file may give it to another project, except in a user namespace: a limit
//! holds programs that grow, and not those that want to get round it.

use std::{io, path::Path};

use corten_machine::tree;
use corten_meta::stable_hash;
use rustix::{
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ioctl::{Getter, Opcode, Setter, ioctl, opcode},
};

use crate::{Code, Fault, with_faults_named};

/// The numbers that are given here, far from those that people and other programs give: they begin at 1, at 100,000 or at 2^20.
const FIRST: u32 = 0x4300_0000;
const COUNT: u32 = 0x0100_0000;
/// So many numbers may be taken in a row.
const TRIES: u32 = 4096;

/// One inode for so many bytes, as `mkfs.ext4` reckons: what is full of empty files is full.
const BYTES_PER_INODE: u64 = 16 << 10;
const INODES_MIN: u64 = 1024;

/// What a project takes, and may take; no limit is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    bytes: u64,
    inodes: u64,
    bytes_max: u64,
    inodes_max: u64,
}

impl Usage {
    /// Is the number somebody's, be it that only something that was deleted is still open?
    fn is_any(self) -> bool {
        self != Self::default()
    }
}

/// Puts an empty folder under a quota of its own. Answers the project's number.
///
/// # Errors
/// `ResourceExhausted`, so that another node is looked for: its file system does not hold project quotas.
pub(crate) fn begin(folder: &Path, name: &str, bytes: u64) -> Result<u32, Fault> {
    let opened = open(folder)?;
    is_held(&opened).map_err(|why| Fault::new(Code::ResourceExhausted, why))?;
    let project = choose(name, |project| usage_of(&opened, project).map(Usage::is_any))?;
    let mut about = attributes(&opened)?;
    (about.project, about.flags) = (project, about.flags | INHERITED);
    with_faults_named(set_attributes(&opened, about), "put the volume's folder under a project quota")?;
    set_limit(&opened, project, bytes)?;
    Ok(project)
}

/// Sees to it that the folder's size is held: after a restart the disk may be mounted otherwise, or be another one.
///
/// # Errors
/// `FailedPrecondition`: it would not be held, and why.
pub(crate) fn hold(folder: &Path, project: u32, bytes: u64) -> Result<(), Fault> {
    let opened = open(folder)?;
    let refused = |why: String| Fault::new(Code::FailedPrecondition, why);
    is_held(&opened).map_err(refused)?;
    let about = attributes(&opened)?;
    if about.project != project || about.flags & INHERITED == 0 {
        let at = folder.display();
        return Err(refused(format!(
            "{at} is no longer of the project {project}, whose quota holds its size: chattr -R -p {project} +P {at}"
        )));
    }
    set_limit(&opened, project, bytes)
}

/// What is taken of the disk; 0 where that is not known.
pub(crate) fn taken(folder: &Path, project: u32) -> u64 {
    open(folder).and_then(|it| usage_of(&it, project)).map_or(0, |it| it.bytes)
}

/// The folder is about to be removed: its number is free when nothing of it is left. Harmless where it has none.
pub(crate) fn release(folder: &Path) {
    let Ok(opened) = tree::open_folder(folder) else { return };
    let Ok(about) = attributes(&opened) else { return };
    if !is_ours(about.project) {
        return;
    }
    // Where quotas are no longer held there is nothing to let go.
    if is_held(&opened).is_ok()
        && let Err(fault) = set_limit(&opened, about.project, 0)
    {
        tracing::warn!(%fault, project = about.project, "the quota of a volume that is removed stays");
    }
}

fn open(folder: &Path) -> Result<OwnedFd, Fault> {
    with_faults_named(tree::open_folder(folder), "open the volume's folder")
}

fn is_ours(project: u32) -> bool {
    (FIRST..FIRST + COUNT).contains(&project)
}

/// The first number that nobody has, from one on that follows from the name: so two nodes on one disk do not choose the same one.
fn choose(name: &str, mut is_taken: impl FnMut(u32) -> Result<bool, Fault>) -> Result<u32, Fault> {
    let begin = u32::try_from(stable_hash(name.as_bytes()) % u64::from(COUNT)).unwrap_or_default();
    for step in 0..TRIES {
        let project = FIRST + (begin + step) % COUNT;
        if !is_taken(project)? {
            return Ok(project);
        }
    }
    Err(Fault::new(Code::ResourceExhausted, format!("{TRIES} numbers of project quotas in a row are taken")))
}

/// How many files such a volume may have; 0: no limit.
pub(crate) fn inodes_of(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes / BYTES_PER_INODE).max(INODES_MIN) }
}

fn is_held(folder: &OwnedFd) -> Result<(), String> {
    let mut state = State::default();
    let flags = quotactl(folder.as_fd(), GET_STATE, 0, &mut state).map(|()| state.flags);
    why_not_held(flags.unwrap_or_default()).map_or(Ok(()), |it| Err(it.to_owned()))
}

/// Of the flags of the file system's quotas.
fn why_not_held(flags: u16) -> Option<&'static str> {
    match (flags & ACCOUNTED != 0, flags & ENFORCED != 0) {
        (true, true) => None,
        (true, false) => Some(
            "the file system of the volumes' folder counts what projects take and holds no limits: mount it with the option prjquota",
        ),
        _ => Some(
            "the file system of the volumes' folder has no project quotas: ext4 has them with the features project and quota \
             and the mount option prjquota, xfs with the mount option pquota",
        ),
    }
}

fn usage_of(folder: &OwnedFd, project: u32) -> Result<Usage, Fault> {
    let mut limits = Limits::default();
    match quotactl(folder.as_fd(), GET_QUOTA, project, &mut limits) {
        // xfs: nobody has ever had this number.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Usage::default()),
        other => with_faults_named(other, "read a project quota")?,
    }
    Ok(Usage {
        bytes: limits.bytes,
        inodes: limits.inodes,
        bytes_max: limits.blocks_hard.saturating_mul(QUOTA_BLOCK),
        inodes_max: limits.inodes_hard,
    })
}

fn set_limit(folder: &OwnedFd, project: u32, bytes: u64) -> Result<(), Fault> {
    let mut limits = Limits {
        blocks_hard: bytes.div_ceil(QUOTA_BLOCK),
        inodes_hard: inodes_of(bytes),
        valid: VALID_LIMITS,
        ..Limits::default()
    };
    let set = quotactl(folder.as_fd(), SET_QUOTA, project, &mut limits);
    with_faults_named(set, format_args!("set the quota of project {project}"))
}

/// `struct fsxattr` of `<linux/fs.h>`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    n_extents: u32,
    project: u32,
    cow_extent_size: u32,
    padding: [u8; 8],
}

/// `FS_XFLAG_PROJINHERIT`: what is made in the folder is of its project.
const INHERITED: u32 = 0x200;
/// `FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR`.
const GET_ATTRIBUTES: Opcode = opcode::read::<Attributes>(b'X', 31);
const SET_ATTRIBUTES: Opcode = opcode::write::<Attributes>(b'X', 32);

#[expect(unsafe_code, reason = "rustix has no call for a file's project")]
fn attributes(folder: &OwnedFd) -> Result<Attributes, Fault> {
    // SAFETY: the kernel fills a `struct fsxattr`, and `Attributes` is laid out as one.
    let read = unsafe { ioctl(folder, Getter::<GET_ATTRIBUTES, Attributes>::new()) };
    with_faults_named(read, "read the folder's project")
}

#[expect(unsafe_code, reason = "rustix has no call for a file's project")]
fn set_attributes(folder: &OwnedFd, attributes: Attributes) -> io::Result<()> {
    // SAFETY: the kernel reads a `struct fsxattr`, and `Attributes` is laid out as one.
    Ok(unsafe { ioctl(folder, Setter::<SET_ATTRIBUTES, Attributes>::new(attributes)) }?)
}

/// `struct if_dqblk` of `<linux/quota.h>`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    blocks_hard: u64,
    blocks_soft: u64,
    bytes: u64,
    inodes_hard: u64,
    inodes_soft: u64,
    inodes: u64,
    blocks_time: u64,
    inodes_time: u64,
    valid: u32,
}

/// Limits are in such blocks, whatever blocks the file system has.
const QUOTA_BLOCK: u64 = 1024;
/// `QIF_BLIMITS` and `QIF_ILIMITS`.
const VALID_LIMITS: u32 = 1 | 4;

/// `struct fs_quota_stat` of `<linux/dqblk_xfs.h>`; only the flags are read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct State {
    version: i8,
    flags: u16,
    padding: i8,
    /// Of users, then of groups: number, blocks and extents of the file with the quotas.
    files: [[u64; 3]; 2],
    in_memory: u32,
    time_limits: [i32; 3],
    warning_limits: [u16; 2],
}

/// `FS_QUOTA_PDQ_ACCT` and `FS_QUOTA_PDQ_ENFD`.
const ACCOUNTED: u16 = 1 << 4;
const ENFORCED: u16 = 1 << 5;

/// `Q_XGETQSTAT`, `Q_GETQUOTA` and `Q_SETQUOTA`, which ext4 and xfs both answer.
const GET_STATE: u32 = 0x5805;
const GET_QUOTA: u32 = 0x80_0007;
const SET_QUOTA: u32 = 0x80_0008;
/// `PRJQUOTA`.
const PROJECTS: u32 = 2;

/// Asks about the file system that the folder is on (`quotactl_fd`, Linux 5.14): so it need not be known which device that is.
#[expect(unsafe_code, reason = "neither rustix nor libc has a function for it")]
fn quotactl<T>(folder: BorrowedFd<'_>, command: u32, project: u32, argument: &mut T) -> io::Result<()> {
    let (folder, command) = (libc::c_long::from(folder.as_raw_fd()), libc::c_ulong::from(command << 8 | PROJECTS));
    let (project, argument) = (libc::c_ulong::from(project), std::ptr::from_mut(argument));
    // SAFETY: each command reads or fills the one structure that is passed with it here, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_quotactl_fd, folder, command, project, argument) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_the_kernels() {
        assert_eq!((size_of::<Attributes>(), size_of::<Limits>(), size_of::<State>()), (28, 72, 80));
        assert_eq!((std::mem::offset_of!(State, flags), std::mem::offset_of!(State, in_memory)), (2, 56));
        assert_eq!((GET_ATTRIBUTES, SET_ATTRIBUTES), (0x801c_581f, 0x401c_5820));
    }

    #[test]
    fn a_size_is_held_where_it_is_counted_and_enforced() {
        // Of users and groups alone.
        for (flags, said) in [(0, Some("no project quotas")), (0b1111, Some("no project quotas"))] {
            assert_eq!(why_not_held(flags).map(|it| it.contains(said.unwrap_or_default())), Some(true));
        }
        assert!(why_not_held(ACCOUNTED).is_some_and(|it| it.contains("mount it with the option prjquota")));
        assert_eq!(why_not_held(ACCOUNTED | ENFORCED), None);
    }

    #[test]
    fn a_number_is_the_names_own_unless_somebody_has_it() {
        let free = |name: &str| choose(name, |_| Ok(false)).expect("there are millions");
        let first = free("pvc-1");
        assert_eq!(free("pvc-1"), first, "the same after a restart");
        assert!(is_ours(first) && is_ours(free("pvc-2")) && first != free("pvc-2"));
        let next = choose("pvc-1", |it| Ok(it == first)).expect("the one after it");
        assert_eq!(next, FIRST + (first - FIRST + 1) % COUNT);
        let full = choose("pvc-1", |_| Ok(true)).expect_err("all of them are taken");
        assert_eq!(full.code, Code::ResourceExhausted);
        let broken = choose("pvc-1", |_| Err(Fault::internal("EIO"))).expect_err("it cannot be told");
        assert_eq!(broken.code, Code::Internal);
        assert!(!is_ours(0) && !is_ours(FIRST - 1) && !is_ours(FIRST + COUNT), "those of others are not touched");
    }

    #[test]
    fn empty_files_have_a_limit_too() {
        assert_eq!(inodes_of(1 << 30), 65_536);
        assert_eq!(inodes_of(1 << 20), 1024);
        assert_eq!(inodes_of(0), 0, "let go");
    }
}
