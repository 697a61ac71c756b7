//! Ends a container with a signal of its Pod's choice, which this runtime knows no word for: the process itself is told.

use std::time::Duration;

use corten_kubelet::Failure;
use rustix::process::{Pid, Signal};

use super::{Inner, gone_is_fine};
use crate::{CriError, Process};

/// In the order of their numbers, from one on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

impl Inner {
    /// The signal, then after the time SIGKILL.
    pub(super) async fn stop(&self, id: &str, grace: Duration, signal: Option<&str>) -> Result<(), Failure> {
        let Some(signal) = signal else { return self.end(|| self.cri.stop_container(id, grace)).await };
        let Some(signal) = signal_named(signal) else { return Err(Failure::new(format!("unknown signal {signal:?}"))) };
        match self.process_of(id).await {
            Ok(Some(process)) => {
                process.signal(signal);
                // Whether it ended or time did: what follows ends what is left.
                let _ = tokio::time::timeout(grace, process.ended()).await;
            }
            Ok(None) => {}
            Err(error) => return gone_is_fine(Err(error)),
        }
        self.end(|| self.cri.stop_container(id, Duration::ZERO)).await
    }

    /// The container's first process, where it runs.
    async fn process_of(&self, id: &str) -> Result<Option<Process>, CriError> {
        let Some(pid) = self.cri.container_pid(id).await? else { return Ok(None) };
        let process = Pid::from_raw(pid).and_then(Process::find);
        // Asked again: between the two the number may have come to mean another.
        let is_it = self.cri.container_pid(id).await? == Some(pid);
        Ok(process.filter(|_| is_it))
    }
}

/// `SIGUSR1`, `SIGRTMIN+3`.
fn signal_named(name: &str) -> Option<Signal> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    if let Some(offset) = name.strip_prefix("RTMIN") {
        let above: i32 = offset.strip_prefix('+').unwrap_or("0").parse().ok()?;
        return real_time(REAL_TIME_MIN.checked_add(above)?);
    }
    if let Some(offset) = name.strip_prefix("RTMAX") {
        let below: i32 = offset.strip_prefix('-').unwrap_or("0").parse().ok()?;
        return real_time(REAL_TIME_MAX.checked_sub(below)?);
    }
    let name = match name {
        "IOT" => "ABRT",
        "CLD" => "CHLD",
        "POLL" => "IO",
        other => other,
    };
    let number = NAMES.iter().position(|it| *it == name)? + 1;
    Signal::from_named_raw(i32::try_from(number).ok()?)
}

/// As libc counts them: the first two are its own.
const REAL_TIME_MIN: i32 = 34;
const REAL_TIME_MAX: i32 = 64;

#[expect(unsafe_code, reason = "libc keeps two real-time signals to itself; these are not sent to ourselves")]
fn real_time(number: i32) -> Option<Signal> {
    // SAFETY: the number is one of the kernel's and none of libc's own.
    (REAL_TIME_MIN..=REAL_TIME_MAX).contains(&number).then(|| unsafe { Signal::from_raw_unchecked(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_by_name() {
        for (name, number) in [
            ("SIGHUP", 1),
            ("SIGUSR1", 10),
            ("SIGTERM", 15),
            ("SIGSYS", 31),
            ("SIGPOLL", 29),
            ("SIGRTMIN+3", 37),
            ("SIGRTMAX", 64),
        ] {
            assert_eq!(signal_named(name).map(Signal::as_raw), Some(number), "{name}");
        }
        assert!(signal_named("SIGNONE").is_none() && signal_named("SIGRTMIN+99").is_none());
    }
}
