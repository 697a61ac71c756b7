//! The node's own mount namespace: it outlives Corten and containerd, and mounts in it reach containers, never the machine.
//!
//! The machine's `/` may be private, where nothing would propagate; and containerd must come back to the same namespace
//! after a crash, or it loses the network namespaces that are mounted there. So the namespace is held by a file.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::mpsc,
};

use rustix::{
    fs::{AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, statx},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_bind, mount_change, mount_remount, unmount},
    thread::{
        CpuSet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space, sched_getaffinity, sched_setaffinity,
        unshare_unsafe,
    },
};

use crate::{Layout, MachineError, error::Doing};

/// Where mounts for Pods are made.
#[derive(Clone, Debug)]
pub struct NodeMounts {
    /// The file that holds the namespace; without one, the process's own.
    held_by: Option<PathBuf>,
}

impl NodeMounts {
    /// The namespace of this process: for what needs no containers, such as tests of files.
    pub fn own() -> Self {
        Self { held_by: None }
    }

    /// The node's namespace, made where it is not there yet. Mounts of the machine are seen in it; its own stay inside.
    pub fn prepare(layout: &Layout) -> Result<Self, MachineError> {
        let file = layout.mount_namespace();
        let folder = file.parent().expect("the file lies in a folder of its own");
        fs::create_dir_all(folder).doing("create", folder)?;
        if holds_namespace(&file) {
            return Ok(Self { held_by: Some(file) });
        }
        // The kernel refuses to keep a mount namespace where mounts propagate.
        if !is_mount_point(folder) {
            mount_bind(folder, folder).doing("mount", folder)?;
        }
        mount_change(folder, MountPropagationFlags::PRIVATE).doing("make private", folder)?;
        File::create(&file).doing("create", &file)?;
        make_namespace(&file).doing("hold the node's mount namespace in", &file)?;
        Ok(Self { held_by: Some(file) })
    }

    /// Is the node's namespace there?
    pub fn find(layout: &Layout) -> Option<Self> {
        let file = layout.mount_namespace();
        holds_namespace(&file).then_some(Self { held_by: Some(file) })
    }

    /// Is it another namespace than this process's?
    pub fn is_apart(&self) -> bool {
        self.held_by.is_some()
    }

    /// Does what the machine mounts later at these places come into the namespace? Not where they were private when it was made, whatever
    /// they are now. Blocks.
    pub fn follows(&self, places: &[PathBuf]) -> io::Result<bool> {
        if !self.is_apart() {
            return Ok(true);
        }
        let places = places.to_owned();
        self.run_blocking(move || {
            let table = fs::read("/proc/thread-self/mountinfo")?;
            Ok(places.iter().all(|it| is_follower(&table, it)))
        })?
    }

    /// Runs `work` in the namespace. It is run in a thread of its own, since a namespace is entered for good.
    pub fn run_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let Some(file) = &self.held_by else { return Ok(work()) };
        let namespace = File::open(file)?;
        let thread = std::thread::Builder::new().name("node-mounts".to_owned()).spawn(move || {
            leave_shared_folder()?;
            move_into_link_name_space(rustix::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Mount))?;
            Ok(work())
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the work in the mount namespace panicked")))
    }

    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.run_blocking(work)).await.map_err(io::Error::other)?
    }

    /// Lets the namespace go: it ends, with every mount in it, when its last process has.
    pub fn release(layout: &Layout) {
        let file = layout.mount_namespace();
        for mount in [file.as_path(), file.parent().expect("the file lies in a folder of its own")] {
            while unmount(mount, UnmountFlags::DETACH).is_ok() {}
        }
    }
}

/// Makes a namespace and holds it by `file`.
///
/// A namespace is held only in one that is older, and a kernel tells that by numbers which it gives out in batches, one for
/// each CPU (`gen_cookie`, from Linux 6.18): within a container, or a unit with `PrivateTmp`, one that was made by another CPU
/// may count as older. So each CPU makes one until one can be held.
fn make_namespace(file: &Path) -> io::Result<()> {
    let mut result = hold_new_namespace(file, None);
    let allowed = sched_getaffinity(None)?;
    for cpu in (0..CpuSet::MAX_CPU).filter(|it| allowed.is_set(*it)) {
        if !matches!(&result, Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error())) {
            break;
        }
        result = hold_new_namespace(file, Some(cpu));
    }
    result
}

/// In a thread of its own, on one CPU where it is named, and holds it before the thread ends.
fn hold_new_namespace(file: &Path, cpu: Option<usize>) -> io::Result<()> {
    let (made, is_made) = mpsc::channel();
    let (held, is_held) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("node-mounts".to_owned()).spawn(move || {
        let on_cpu = cpu.map_or(Ok(()), |cpu| {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set)
        });
        let unshared = on_cpu.map_err(io::Error::from).and_then(|()| unshare_mounts());
        let _ = made.send(unshared.map(|()| rustix::thread::gettid().as_raw_nonzero()));
        // Ends when the other side has let go, whatever became of it.
        let _ = is_held.recv();
    })?;
    let result =
        is_made.recv().map_err(io::Error::other).and_then(|it| it).and_then(|thread_id| {
            mount_bind(format!("/proc/self/task/{thread_id}/ns/mnt"), file).map_err(io::Error::from)
        });
    drop(held);
    let _ = thread.join();
    result
}

#[expect(unsafe_code, reason = "unshare can take file descriptors away; these flags do not")]
fn unshare_mounts() -> io::Result<()> {
    // SAFETY: without CLONE_FILES no descriptor of this thread becomes invalid.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
    // Seen from the machine: its mounts come in, ours do not go out. Within: containers may ask for propagation.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)?;
    Ok(())
}

/// A thread may enter another mount namespace only when it shares its working directory with no other.
#[expect(unsafe_code, reason = "unshare can take file descriptors away; these flags do not")]
fn leave_shared_folder() -> io::Result<()> {
    // SAFETY: without CLONE_FILES no descriptor of this thread becomes invalid.
    unsafe { unshare_unsafe(UnshareFlags::FS) }.map_err(io::Error::from)
}

/// Is this a namespace, or just the empty file that is to hold one?
fn holds_namespace(file: &Path) -> bool {
    const NSFS_MAGIC: i64 = 0x6e73_6673;
    rustix::fs::statfs(file).is_ok_and(|it| it.f_type == NSFS_MAGIC)
}

/// Is something mounted at exactly this path? The kernel is asked about it alone: its table grows with every Pod.
pub fn is_mount_point(path: &Path) -> bool {
    let status = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    status.is_ok_and(|it| it.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Neither set-user-ID programs nor devices work in what containers are given of this folder: it is mounted at itself, once
/// for all Pods, and the bind mounts of containers take its flags on.
///
/// # Errors
/// As of mounting; also where mounts lie beneath that another version made: they would be hidden.
pub fn restrict(path: &Path) -> io::Result<()> {
    if is_restricted(path) {
        return Ok(());
    }
    if !is_mount_point(path) {
        if !mounts_beneath(path).is_empty() {
            return Err(io::Error::other("pods of an earlier start have mounts there; `corten down` ends them"));
        }
        mount_bind(path, path)?;
        // What comes to the folder beneath comes here too, and nothing the other way: else each mount in it would be made beneath, too,
        // hidden, where it holds on to its folder when it is unmounted here with something on top.
        mount_change(path, MountPropagationFlags::DOWNSTREAM)?;
        mount_change(path, MountPropagationFlags::SHARED)?;
    }
    let held = rustix::fs::statvfs(path)?.f_flag;
    let kept = [(StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC), (StatVfsMountFlags::RDONLY, MountFlags::RDONLY)];
    let kept = kept.into_iter().filter(|it| held.contains(it.0)).fold(MountFlags::empty(), |all, it| all | it.1);
    mount_remount(path, MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | kept, c"")?;
    Ok(())
}

pub fn is_restricted(path: &Path) -> bool {
    let wanted = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV;
    is_mount_point(path) && rustix::fs::statvfs(path).is_ok_and(|it| it.f_flag.contains(wanted))
}

/// The mount points of this thread's namespace beneath `path`, the innermost first. What is mounted at `path` itself is not
/// ours: a disk that the machine's owner gave us.
pub fn mounts_beneath(path: &Path) -> Vec<PathBuf> {
    let table = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let is_beneath = |it: &PathBuf| it.starts_with(path) && it != path;
    let mut mounts: Vec<PathBuf> = mount_points(&table).into_iter().filter(is_beneath).collect();
    mounts.reverse();
    mounts
}

/// Where the disk of this number is mounted, in this thread's namespace.
pub fn mounts_of(major: u32, minor: u32) -> Vec<PathBuf> {
    let table = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    let number = format!("{major}:{minor}");
    let lines = table.split(|it| *it == b'\n');
    let of_disk = lines.filter(|it| it.split(|it| *it == b' ').nth(2) == Some(number.as_bytes()));
    of_disk.flat_map(mount_points).collect()
}

/// The fifth field of each line, in which blanks and backslashes are written as three octal digits.
///
/// Names are bytes: one that is no text, whoever mounted it, must hide neither itself nor the others.
fn mount_points(table: &[u8]) -> Vec<PathBuf> {
    let fields = table.split(|it| *it == b'\n').filter_map(|it| it.split(|it| *it == b' ').nth(4));
    fields.map(|it| PathBuf::from(OsString::from_vec(unescape(it)))).collect()
}

/// Does the mount that holds `path` take over what is mounted on its master? `… / rw shared:1 master:2 - ext4 …`
fn is_follower(table: &[u8], path: &Path) -> bool {
    let lines = table.split(|it| *it == b'\n').filter_map(|line| {
        let fields: Vec<&[u8]> = line.split(|it| *it == b' ').collect();
        let at = PathBuf::from(OsString::from_vec(unescape(fields.get(4)?)));
        let mut tags = fields.iter().skip(6).take_while(|it| **it != b"-");
        path.starts_with(&at).then(|| (at, tags.any(|it| it.starts_with(b"master:"))))
    });
    // Of those at one place the last hides the others.
    lines.max_by_key(|it| it.0.components().count()).is_some_and(|it| it.1)
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut parts = field.split(|it| *it == b'\\');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = part.get(..3).and_then(|it| std::str::from_utf8(it).ok());
        match digits.and_then(|it| u8::from_str_radix(it, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                path.extend_from_slice(&part[3..]);
            }
            None => {
                path.push(b'\\');
                path.extend_from_slice(part);
            }
        }
    }
    path
}

/// Unmounts everything beneath `path`, in this thread's namespace.
pub fn unmount_beneath(path: &Path) -> io::Result<()> {
    for mount in mounts_beneath(path) {
        match unmount(&mount, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // It went with one above it.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mount_points_with_blanks_and_backslashes() {
        let table = b"36 35 98:0 / / rw shared:1 - ext4 /dev/root rw\n\
                     37 36 0:5 / /a\\040b rw - tmpfs tmpfs rw\n\
                     38 36 0:5 / /c\\134d\\011e rw - tmpfs \xff rw\n\
                     39 36 0:5 / /\xe4 rw - tmpfs tmpfs rw\n";
        let odd = PathBuf::from(OsString::from_vec(b"/\xe4".to_vec()));
        assert_eq!(mount_points(table), [&["/", "/a b", "/c\\d\te"].map(PathBuf::from)[..], &[odd]].concat());
    }

    #[test]
    fn the_mount_that_holds_a_place_says_whether_it_follows_the_machine() {
        let table = b"1 0 8:1 / / rw shared:9 master:1 - ext4 /dev/a rw\n\
                     2 1 8:2 / /data rw shared:8 - ext4 /dev/b rw,master:1\n\
                     3 1 8:3 / /twice rw master:2 - ext4 /dev/c rw\n\
                     4 3 8:4 / /twice rw - ext4 /dev/d rw\n";
        for (path, expected) in [
            ("/", true),
            ("/mnt/disks", true),
            ("/database", true),
            ("/data", false),
            ("/data/x", false),
            ("/twice", false),
        ] {
            assert_eq!(is_follower(table, Path::new(path)), expected, "{path}");
        }
        assert!(!is_follower(b"", Path::new("/")), "what cannot be read");
    }

    #[test]
    fn a_namespace_follows_what_was_shared_when_it_was_made() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let place = dir.path().join("place");
        for (how, expected) in [(MountPropagationFlags::SHARED, true), (MountPropagationFlags::PRIVATE, false)] {
            let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
            fs::create_dir_all(&place).expect("a folder");
            mount_bind(&place, &place).expect("mounted");
            mount_change(&place, how).expect("changed");
            let mounts = NodeMounts::prepare(&layout).expect("a namespace");
            mount_change(&place, MountPropagationFlags::SHARED).expect("too late");
            assert_eq!(mounts.follows(std::slice::from_ref(&place)).expect("readable"), expected, "{how:?}");
            let later = place.join("later");
            fs::create_dir_all(&later).expect("a folder");
            mount_bind("/proc", &later).expect("mounted");
            let seen = later.join("self");
            assert_eq!(mounts.run_blocking(move || seen.exists()).expect("entered"), expected, "{how:?}");
            NodeMounts::release(&layout);
            unmount(&later, UnmountFlags::DETACH).expect("unmounted");
            unmount(&place, UnmountFlags::DETACH).expect("unmounted");
        }
        assert!(NodeMounts::own().follows(&[place]).expect("readable"), "the machine's own");
    }

    #[test]
    fn what_is_in_a_restricted_folder_gives_no_rights() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let (pods, volume, bound) = (layout.pods(), layout.pods().join("u1/volume"), dir.path().join("bound"));
        for folder in [&volume, &bound] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let mounts = NodeMounts::prepare(&layout).expect("a namespace");
        mounts
            .run_blocking(move || {
                restrict(&pods).expect("restricted");
                restrict(&pods).expect("harmless");
                assert_eq!(mounts_beneath(pods.parent().expect("a folder")), std::slice::from_ref(&pods), "once");
                // As the runtime binds a volume into a container.
                mount_bind(&volume, &bound).expect("bound");
                let flags = rustix::fs::statvfs(&bound).expect("there").f_flag;
                assert!(flags.contains(StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV), "{flags:?}");
                assert!(!flags.contains(StatVfsMountFlags::NOEXEC), "programs run");

                unmount(&pods, UnmountFlags::DETACH).expect("unmounted");
                mount_bind("/proc", &volume).expect("mounted");
                restrict(&pods).expect_err("it would hide what is mounted there");
                assert!(!is_restricted(&pods));
            })
            .expect("entered");
        NodeMounts::release(&layout);
    }

    #[test]
    fn what_is_mounted_in_a_restricted_folder_is_mounted_once() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let (pods, volume, source) = (layout.pods(), layout.pods().join("u1/volume"), dir.path().join("source"));
        for folder in [&volume, &source] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let mounts = NodeMounts::prepare(&layout).expect("a namespace");
        mounts
            .run_blocking(move || {
                restrict(&pods).expect("restricted");
                mount_bind(&source, &volume).expect("bound");
                assert_eq!(mounts_beneath(&pods), std::slice::from_ref(&volume), "and not beneath, too");
                mount_bind("/proc", &source).expect("what is mounted at the source later");
                while is_mount_point(&volume) {
                    unmount(&volume, UnmountFlags::NOFOLLOW).expect("unmounted");
                }
                fs::remove_dir(&volume).expect("nothing holds it");
            })
            .expect("entered");
        NodeMounts::release(&layout);
    }

    #[test]
    fn a_mount_stays_in_the_nodes_namespace() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let mounts = NodeMounts::prepare(&layout).expect("a namespace");
        let again = NodeMounts::prepare(&layout).expect("the same namespace");
        let target = dir.path().join("target");
        fs::create_dir(&target).expect("a folder");
        let there = target.clone();
        mounts.run_blocking(move || mount_bind("/proc", &there)).expect("entered").expect("mounted");
        let seen = target.clone();
        assert!(again.run_blocking(move || seen.join("self").exists()).expect("entered"), "seen inside");
        assert!(!target.join("self").exists(), "not seen by the machine");
        NodeMounts::release(&layout);
        assert!(NodeMounts::find(&layout).is_none());
        assert!(mounts_beneath(dir.path()).is_empty());
    }
}
