//! Kills what runs in cgroups, and removes them.

use std::{
    ffi::CStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsRawFd, BorrowedFd},
    fs::FileType,
    process::{Pid, Signal},
};

use crate::{
    Process,
    tree::{self, Entry, Visitor, WalkBudget},
};

/// What a killed process may take to be gone.
const REMOVE_DEADLINE: Duration = Duration::from_secs(10);
/// Shorter than what removing a Pod may take.
const REMOVE_ALL_DEADLINE: Duration = Duration::from_secs(100);
/// What somebody who wants to know may take.
const LOOK_DEADLINE: Duration = Duration::from_secs(1);

/// Kills what runs in a cgroup of the second layout and those beneath it, and leaves the cgroups.
pub(super) fn kill_tree(cgroup: &Path) -> io::Result<()> {
    match fs::write(cgroup.join("cgroup.kill"), "1") {
        Ok(()) => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), format!("kill {}: {error}", cgroup.display())))
        }
        // It is gone, or Linux is older than 5.14.
        Err(_) => each(cgroup, REMOVE_ALL_DEADLINE, |it| drop(kill_all(it))),
    }
}

/// The processes in a cgroup and those beneath it.
pub(super) fn processes(cgroup: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    let read = |it: &Path| {
        let text = fs::read_to_string(it.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|it| it.parse::<u32>().ok()));
    };
    // A container may make more of them than can be looked at.
    if let Err(error) = each(cgroup, LOOK_DEADLINE, read) {
        tracing::debug!(%error, cgroup = %cgroup.display(), "not all processes are seen");
    }
    pids
}

/// Looks at a cgroup and those beneath it, the innermost first.
fn each(cgroup: &Path, within: Duration, look: impl FnMut(&Path)) -> io::Result<()> {
    struct CgroupVisitor<F>(F);
    impl<F: FnMut(&Path)> Visitor for CgroupVisitor<F> {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            Ok(entry.kind == FileType::Directory)
        }

        fn leaves(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
            (self.0)(&beneath(parent, name));
            Ok(())
        }
    }
    let top = match tree::open_folder(cgroup) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut look = CgroupVisitor(look);
    tree::walk(top, &mut WalkBudget::of_time(within), &mut look)?;
    (look.0)(cgroup);
    Ok(())
}

/// Kills what runs in a cgroup and those beneath it, then removes them, the innermost first. A privileged container makes as
/// many as it likes, however deep.
pub(super) fn remove_tree(cgroup: &Path) -> io::Result<()> {
    struct Removal;
    impl Visitor for Removal {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            Ok(entry.kind == FileType::Directory)
        }

        fn leaves(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
            remove_emptied(&beneath(parent, name))
        }
    }
    let top = match tree::open_folder(cgroup) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    tree::walk(top, &mut WalkBudget::of_time(REMOVE_ALL_DEADLINE), &mut Removal)?;
    remove_emptied(cgroup)
}

fn beneath(parent: BorrowedFd<'_>, name: &CStr) -> PathBuf {
    let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
    parent.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Kills what runs in a cgroup that has none beneath it, and removes it.
fn remove_emptied(cgroup: &Path) -> io::Result<()> {
    let end = Instant::now() + REMOVE_DEADLINE;
    loop {
        let ended = kill_all(cgroup);
        match fs::remove_dir(cgroup) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("remove {}: {error}", cgroup.display()))),
        }
        // They leave the cgroup a moment after the signal; one that is gone already has left.
        for process in &ended {
            process.ends_within(Duration::from_millis(100));
        }
        // Nobody to wait for: the kernel itself is still at it.
        if ended.is_empty() {
            std::thread::yield_now();
        }
    }
}

/// Kills what runs in one cgroup; who that was.
fn kill_all(cgroup: &Path) -> Vec<Process> {
    let pids = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let pids = pids.lines().filter_map(|it| it.parse().ok()).filter_map(Pid::from_raw);
    let processes: Vec<Process> = pids.filter_map(Process::find).collect();
    for process in &processes {
        process.signal(Signal::KILL);
    }
    processes
}
