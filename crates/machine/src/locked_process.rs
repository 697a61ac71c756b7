//! A program that goes on when who started it ends: it holds a locked file as its standard input, and is found again by that.
//!
//! The lock holds for as long as the program lives and no longer, so there is no stale number of a process.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::Pid,
};

use crate::process::{Process, detach, is_own};

/// How long it is waited before one that is not found is looked for again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Starts `program` as the one that holds `lock`. None where another process does.
///
/// # Errors
/// The lock cannot be made, or the program not be started.
pub fn start_holding(lock: &Path, program: &mut Command) -> io::Result<Option<Child>> {
    let file = File::options().create(true).truncate(false).write(true).read(true).mode(0o600).open(lock)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    detach(program);
    program.stdin(file).spawn().map(Some)
}

/// Who holds it, within a time: one that is just dying holds it for a moment after it can no longer be found.
///
/// # Errors
/// As of [`holder`].
pub fn holder_within(lock: &Path, patience: Duration) -> io::Result<Option<Process>> {
    let end = Instant::now() + patience;
    loop {
        match holder(lock) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {}
            looked => return looked,
        }
        thread::park_timeout(BETWEEN_LOOKS);
    }
}

/// Who holds it. None where nobody does.
///
/// # Errors
/// The lock cannot be looked at, or somebody holds it who is not found: not this user's, or dying.
pub fn holder(lock: &Path) -> io::Result<Option<Process>> {
    let file = match File::open(lock) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        free => return free.map(|()| None).map_err(io::Error::from),
    }
    let wanted = file.metadata()?;
    let holds = |pid: &i32| {
        let input = fs::metadata(format!("/proc/{pid}/fd/0"));
        input.is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino())) && is_own(*pid)
    };
    let entries = fs::read_dir("/proc")?.flatten();
    let mut pids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    let found = pids.find(holds).and_then(Pid::from_raw).and_then(Process::find);
    // It may have ended between the two looks.
    match found {
        None if flock(&file, FlockOperation::NonBlockingLockShared).is_err() => {
            let held = format!("{} is held by a process that is not found", lock.display());
            Err(io::Error::new(io::ErrorKind::ResourceBusy, held))
        }
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::*;

    #[test]
    fn the_program_is_found_by_its_lock_and_there_is_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = dir.path().join("lock");
        assert!(holder(&lock).expect("looked").is_none());
        let mut child = start_holding(&lock, Command::new("sleep").arg("1000")).expect("started").expect("free");
        assert!(start_holding(&lock, Command::new("sleep").arg("1000")).expect("looked").is_none());
        let found = holder(&lock).expect("looked").expect("it runs");
        found.signal(Signal::KILL);
        assert!(found.ends_within(Duration::from_secs(10)));
        child.wait().expect("it has ended");
        assert!(holder(&lock).expect("looked").is_none());
    }

    /// A lock that another open file has is as that of a program whose death is not over.
    #[test]
    fn one_that_is_not_found_is_waited_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = dir.path().join("lock");
        let held = File::options().create(true).truncate(false).write(true).open(&lock).expect("made");
        flock(&held, FlockOperation::NonBlockingLockExclusive).expect("locked");
        let refused = holder_within(&lock, Duration::ZERO).err().expect("nobody is found");
        assert!(refused.to_string().contains("is held by a process that is not found"), "{refused}");
        let looking = {
            let lock = lock.clone();
            thread::spawn(move || holder_within(&lock, Duration::from_secs(60)))
        };
        drop(held);
        assert!(looking.join().expect("it looks").expect("it has gone").is_none());
    }
}
