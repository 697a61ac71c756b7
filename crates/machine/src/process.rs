//! Processes beside our own: started to outlive us, told to end, waited for.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use tokio::io::{Interest, unix::AsyncFd};

/// A log that has grown past this is put aside when its process is started again.
const LOG_BYTES_MAX: u64 = 10 << 20;

/// One certain process: unlike its number, it never comes to mean another.
pub struct Process(OwnedFd);

impl Process {
    /// Nothing where it has ended.
    pub fn find(pid: Pid) -> Option<Self> {
        pidfd_open(pid, PidfdFlags::NONBLOCK).ok().map(Self)
    }

    /// Harmless where it has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// Waits, and blocks the thread meanwhile. Has it ended?
    pub fn ends_within(&self, time: Duration) -> bool {
        // A process is readable when it has ended.
        let mut waited_for = [PollFd::new(&self.0, PollFlags::IN)];
        let timeout = Timespec::try_from(time).ok();
        poll(&mut waited_for, timeout.as_ref()).is_ok_and(|it| it > 0)
    }

    /// Becomes ready when it has ended.
    #[expect(unsafe_code, reason = "the only way to wait for a descriptor that tokio has no type for")]
    pub async fn ended(&self) -> io::Result<()> {
        let watched = self.0.try_clone()?;
        // SAFETY: an `OwnedFd` is open, and the same, for as long as it lives; `AsyncFd` owns it from here on.
        let watched = unsafe { AsyncFd::register_with_interest(watched, Interest::READABLE) }?;
        watched.readable().await.map(drop)
    }
}

/// Is it a process of this one's user, and in no container? Then what its command line says can be believed: others cannot start
/// one.
pub fn is_own(pid: i32) -> bool {
    let namespace = |of: &str, name: &str| fs::read_link(format!("/proc/{of}/ns/{name}")).ok();
    let is_in_none = ["pid", "user"].iter().all(|it| {
        let own = namespace("self", it);
        own.is_some() && own == namespace(&pid.to_string(), it)
    });
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    // Real, effective, saved and of the file system.
    let users = status.lines().find_map(|it| it.strip_prefix("Uid:")).unwrap_or_default();
    let own = rustix::process::geteuid().as_raw();
    let mut users = users.split_whitespace().map(str::parse::<u32>).peekable();
    is_in_none && users.peek().is_some() && users.all(|it| it == Ok(own))
}

/// Gives a program a session of its own: no terminal's and no parent's end reaches it.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
pub fn detach(program: &mut Command) {
    // SAFETY: setsid is a plain system call; it allocates nothing and takes no lock.
    unsafe {
        program.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from));
    }
}

/// Opens a log for a process that is to be started. One that has grown large becomes `NAME.old` first.
pub fn open_log(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|it| it.len() > LOG_BYTES_MAX) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        fs::rename(path, old)?;
    }
    File::options().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_user_is_not_believed() {
        assert!(is_own(i32::try_from(std::process::id()).expect("a number of a process")));
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut other = Command::new("cat").uid(65_534).stdin(std::process::Stdio::piped()).spawn().expect("started");
        assert!(!is_own(i32::try_from(other.id()).expect("a number of a process")));
        drop(other.stdin.take());
        other.wait().expect("ended");
    }

    #[tokio::test]
    async fn waits_for_a_process_and_for_no_other() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("started");
        let pid = Pid::from_child(&child);
        let process = Process::find(pid).expect("runs");
        assert!(!process.ends_within(Duration::from_millis(1)));
        process.signal(Signal::TERM);
        assert!(process.ends_within(Duration::from_secs(10)));
        process.ended().await.expect("ended");
        child.wait().expect("waited for");
        assert!(Process::find(pid).is_none());
    }

    #[test]
    fn puts_a_large_log_aside() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("corten.log");
        open_log(&path).expect("opened").set_len(LOG_BYTES_MAX + 1).expect("grown");
        open_log(&path).expect("opened");
        assert_eq!(fs::metadata(&path).expect("there").len(), 0);
        assert!(dir.path().join("corten.log.old").exists());
    }
}
