//! Nothing stays behind: not when a run ends or is interrupted, and what one that was killed left goes before the next.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::{folder, guest::Settings};

/// The guests that end with this process.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How long the kernel may take to end a process that was killed.
const END_DEADLINE: Duration = Duration::from_secs(20);

/// Marks a guest as one that this process removes. It is one as long as the answer lives.
pub(super) fn own(dir: &Path) -> Result<File> {
    let owner = File::create(dir.join("owner"))?;
    owner.try_lock().with_context(|| format!("{} belongs to somebody else", dir.display()))?;
    OWN.lock().push(dir.to_owned());
    Ok(owner)
}

pub(super) fn disown(dir: &Path) {
    OWN.lock().retain(|it| it != dir);
}

/// From here on an interrupt takes this process's guests with it.
pub(crate) fn remove_on_signals() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let waiting = move || {
        let ended = runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hangup = signal(SignalKind::hangup())?;
            let number = tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
            };
            std::io::Result::Ok(number.as_raw_value())
        });
        let Ok(number) = ended else { return };
        for dir in OWN.lock().drain(..) {
            let _ = remove(&dir);
        }
        std::process::exit(128 + number);
    };
    std::thread::Builder::new().name("signals".into()).spawn(waiting).context("starting a thread")?;
    Ok(())
}

/// Removes guests whose owner is gone.
pub(super) fn sweep() {
    let Ok(entries) = fs::read_dir(folder().join("guests")) else { return };
    for dir in entries.filter_map(|it| it.ok().map(|it| it.path())) {
        if Settings::read(&dir).is_ok_and(|it| it.is_kept) {
            continue;
        }
        // No file: its owner has only begun with it, or has nearly done.
        let Ok(owner) = File::open(dir.join("owner")) else { continue };
        if owner.try_lock().is_ok() {
            let _ = remove(&dir);
        }
    }
}

fn remove(dir: &Path) -> Result<()> {
    end(dir)?;
    Ok(fs::remove_dir_all(dir)?)
}

/// QEMU's process, while it runs the guest of this folder.
pub(super) fn qemu_of(dir: &Path) -> Option<Pid> {
    let pid = fs::read_to_string(dir.join("pid")).ok()?.trim().parse().ok().and_then(Pid::from_raw)?;
    // The number may be another process's by now. One that has ended and was not waited for has no command line.
    let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let disk = format!("file={},", dir.join("disk").display());
    words.windows(disk.len()).any(|it| it == disk.as_bytes()).then_some(pid)
}

/// Ends QEMU as a plug that is pulled ends a machine, and returns when it is gone.
pub(super) fn end(dir: &Path) -> Result<()> {
    let Some(pid) = qemu_of(dir) else { return Ok(()) };
    kill_process(pid, Signal::KILL)?;
    let end = Instant::now() + END_DEADLINE;
    while qemu_of(dir).is_some() {
        if Instant::now() >= end {
            bail!("QEMU, process {}, does not end", pid.as_raw_nonzero());
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let _ = fs::remove_file(dir.join("pid"));
    Ok(())
}
