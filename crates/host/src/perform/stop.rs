//! Ends a container with a signal of its Pod's choice, which this runtime knows no word for: the process itself is told.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use corten_kubelet::{Failure, PodRef};
use corten_machine::Process;
use rustix::process::{Pid, Signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Inner, gone_is_fine};
use crate::{
    CriError,
    shims::{self, Shim},
};

/// In the order of their numbers, from one on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// How many containers of a pod are signalled at once. Each costs processes of the runtime, and all ends of a pod go through one
/// shim, which many at once keep from hearing of any.
const AT_ONCE: usize = 8;
/// So long one holds its turn. Kills come after the grace, so they are spread as the signals were.
const TURN: Duration = Duration::from_millis(250);

/// Whose turn it is to be stopped, among the containers of each pod.
#[derive(Default)]
pub(super) struct StopTurns(Mutex<BTreeMap<String, Weak<Semaphore>>>);

impl StopTurns {
    async fn wait(&self, uid: &str) -> OwnedSemaphorePermit {
        let turns = {
            let mut of_pods = self.0.lock().expect("nobody panics while it is held");
            of_pods.retain(|_, it| it.strong_count() > 0);
            let known = of_pods.get(uid).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turns = Arc::new(Semaphore::new(AT_ONCE));
                of_pods.insert(uid.to_owned(), Arc::downgrade(&turns));
                turns
            })
        };
        turns.acquire_owned().await.expect("it is never closed")
    }
}

impl Inner {
    /// The signal, then after the time SIGKILL. Of one pod only some are signalled at a time.
    pub(super) async fn stop(
        &self,
        pod: &PodRef,
        id: &str,
        grace: Duration,
        signal: Option<&str>,
    ) -> Result<(), Failure> {
        let turn = self.stop_turns.wait(&pod.uid).await;
        let mut stopped = pin!(self.stop_now(id, grace, signal));
        if let Ok(result) = tokio::time::timeout(TURN, &mut stopped).await {
            return result;
        }
        // It takes its time, which is its right: its signal has long been sent.
        drop(turn);
        stopped.await
    }

    async fn stop_now(&self, id: &str, grace: Duration, signal: Option<&str>) -> Result<(), Failure> {
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

    /// Kills all that runs in the pod's cgroup, and the shims of its sandboxes: containerd then says of its containers that they
    /// have ended, without asking anybody.
    pub(super) async fn end_by_force(&self, pod: &PodRef, sandboxes: Vec<String>) {
        let (cgroups, uid, socket) = (self.cgroups.clone(), pod.uid.clone(), self.layout.containerd_socket());
        tracing::warn!(pod = %pod.key, ?sandboxes, "the runtime does not end a pod: all of it is killed, and its shim");
        let work = tokio::task::spawn_blocking(move || {
            let killed = cgroups.kill_pod(&uid);
            shims::of(&socket).iter().filter(|it| sandboxes.iter().any(|id| it.is_of(id))).for_each(Shim::kill);
            killed
        });
        if let Err(error) = work.await.map_err(std::io::Error::other).and_then(|it| it) {
            tracing::warn!(pod = %pod.key, %error, "cannot kill all of a pod");
        }
        self.nudge.notify_one();
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
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn of_one_pod_only_some_are_stopped_at_once_and_no_other_pod_waits_for_them() {
        let turns = StopTurns::default();
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(turns.wait("a").await);
        }
        let mut next = pin!(turns.wait("a"));
        assert!(next.as_mut().now_or_never().is_none(), "all turns of this pod are taken");
        let _other = turns.wait("b").await;
        held.pop();
        assert!(next.as_mut().now_or_never().is_some());
        drop(held);
        assert_eq!(turns.0.lock().expect("held by nobody").len(), 2);
    }

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
