//! Whom the kernel has killed for want of memory, by the kernel's own log.
//!
//! containerd hears it from the container's cgroup. Where that is gone first, or the word of it comes after the
//! container's end, containerd says `Error`. The kernel writes its line before it kills, so after the end it is there.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};

const LOG: &str = "/dev/kmsg";
/// The kernel gives no record longer than this.
const RECORD_MAX: usize = 8 << 10;
/// Whoever asks does so soon after the kill.
const REMEMBERED: usize = 1024;

/// The kubelet's `oomScoreAdj`: any container is killed for want of memory before this process. Without
/// CAP_SYS_RESOURCE the kernel refuses.
pub fn shield_from_oom() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "-999") {
        tracing::info!(%error, "corten is not shielded from the kernel's want of memory");
    }
}

/// The kernel's kills as far as its log has been read; each record is read once.
#[derive(Debug)]
pub struct Kills<L = File> {
    /// Where the log may not be read, nobody can say.
    log: Option<L>,
    /// In which cgroups processes were killed, the newest last.
    cgroups: VecDeque<String>,
}

impl Kills {
    pub fn open() -> Self {
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        Self::of(OpenOptions::new().read(true).custom_flags(flags).open(LOG).ok())
    }
}

impl<L: Read> Kills<L> {
    fn of(log: Option<L>) -> Self {
        Self { log, cgroups: VecDeque::new() }
    }

    /// Whether a process of the container was killed so.
    pub fn has(&mut self, container: &str) -> bool {
        self.read_on();
        self.cgroups.iter().any(|it| it.contains(container))
    }

    /// Each read gives one record; the oldest may have been overwritten before it was read.
    fn read_on(&mut self) {
        let Some(log) = &mut self.log else { return };
        let mut record = [0; RECORD_MAX];
        loop {
            match log.read(&mut record) {
                Ok(0) => return,
                Ok(length) => {
                    let record = String::from_utf8_lossy(&record[..length]);
                    self.cgroups.extend(cgroup_of_killed(&record).map(str::to_owned));
                    let n_old = self.cgroups.len().saturating_sub(REMEMBERED);
                    self.cgroups.drain(..n_old);
                }
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
                Err(_) => return,
            }
        }
    }
}

/// `…;oom-kill:constraint=…,task_memcg=/kubepods/…/<container>,task=…`
fn cgroup_of_killed(record: &str) -> Option<&str> {
    let (_, kill) = record.split_once(";oom-kill:")?;
    kill.split(',').find_map(|it| it.strip_prefix("task_memcg="))
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        io::{self, ErrorKind, Read},
    };

    use super::{Kills, REMEMBERED};

    /// As the kernel: a record for each read, an error where there is none yet or where some were lost.
    #[derive(Default)]
    struct Log(VecDeque<Result<String, ErrorKind>>);

    impl Read for Log {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let record = self.0.pop_front().unwrap_or(Err(ErrorKind::WouldBlock))?;
            buffer[..record.len()].copy_from_slice(record.as_bytes());
            Ok(record.len())
        }
    }

    fn kill(cgroup: &str) -> Result<String, ErrorKind> {
        Ok(format!(
            "6,902,52411,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c0ffee,mems_allowed=0,\
             oom_memcg=/kubepods/burstable/pod7,task_memcg={cgroup},task=tail,pid=812,uid=0\n"
        ))
    }

    fn kills(records: impl IntoIterator<Item = Result<String, ErrorKind>>) -> Kills<Log> {
        Kills::of(Some(Log(records.into_iter().collect())))
    }

    #[test]
    fn a_kill_is_known_by_the_cgroup_of_the_killed() {
        assert!(kills([kill("/kubepods/burstable/pod7/c0ffee")]).has("c0ffee"));
        assert!(kills([kill("/kubepods.slice/cri-containerd-c0ffee.scope/inner")]).has("c0ffee"));
        assert!(!kills([kill("/kubepods/burstable/pod7/decaf")]).has("c0ffee"), "the set of CPUs is only named so");
        let other = Ok("6,903,52412,-;Memory cgroup out of memory: Killed process 812 (c0ffee)".to_owned());
        assert!(!kills([other]).has("c0ffee"));
        assert!(!Kills::<Log>::of(None).has("c0ffee"));
    }

    #[test]
    fn what_was_read_is_remembered_and_what_was_lost_is_no_end() {
        let mut kills = kills([kill("/pod1/first"), Err(ErrorKind::BrokenPipe), kill("/pod2/second")]);
        assert!(kills.has("second"));
        assert!(kills.has("first"));
        assert!(!kills.has("third"));
        kills.log.as_mut().expect("a log").0.extend([kill("/pod3/third")]);
        assert!(kills.has("third"), "what is new is read on");
    }

    #[test]
    fn of_many_the_newest_are_remembered() {
        let mut kills = kills((0..=REMEMBERED).map(|it| kill(&format!("/pod/c{it:06}"))));
        assert!(!kills.has("c000000"));
        assert!(kills.has("c000001"));
        assert!(kills.has(&format!("c{REMEMBERED:06}")));
    }
}
