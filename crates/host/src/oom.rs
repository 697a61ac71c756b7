//! Whom the kernel has killed for want of memory, by the kernel's own log.
//!
//! containerd hears it from the container's cgroup. Where that is gone first, or the word of it comes after the
//! container's end, containerd says `Error`. The kernel writes its line before it kills, so after the end it is there.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};

const LOG: &str = "/dev/kmsg";
/// The kernel gives no record longer than this.
const RECORD_MAX: usize = 8 << 10;

/// Whether a process of the container was killed so. Where the log may not be read, nobody can say.
pub(crate) fn was_killed_for_memory(container: &str) -> bool {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let log = OpenOptions::new().read(true).custom_flags(flags).open(LOG);
    log.is_ok_and(|mut log| has_record(&mut log, |it| is_kill_of(it, container)))
}

/// Each read gives one record; the oldest may be overwritten meanwhile.
fn has_record(log: &mut File, is_sought: impl Fn(&str) -> bool) -> bool {
    let mut record = [0; RECORD_MAX];
    loop {
        match log.read(&mut record) {
            Ok(0) => return false,
            Ok(length) if is_sought(&String::from_utf8_lossy(&record[..length])) => return true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(_) => return false,
        }
    }
}

/// `…;oom-kill:constraint=…,task_memcg=/kubepods/…/<container>,task=…`
fn is_kill_of(record: &str, container: &str) -> bool {
    let Some((_, kill)) = record.split_once(";oom-kill:") else { return false };
    let cgroup = kill.split(',').find_map(|it| it.strip_prefix("task_memcg="));
    cgroup.is_some_and(|it| it.split('/').any(|it| it.contains(container)))
}

#[cfg(test)]
mod tests {
    use super::is_kill_of;

    #[test]
    fn a_kill_is_known_by_the_cgroup_of_the_killed() {
        let kill = |cgroup: &str| {
            format!(
                "6,902,52411,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c0ffee,mems_allowed=0,\
                 oom_memcg=/kubepods/burstable/pod7,task_memcg={cgroup},task=tail,pid=812,uid=0\n"
            )
        };
        assert!(is_kill_of(&kill("/kubepods/burstable/pod7/c0ffee"), "c0ffee"));
        assert!(is_kill_of(&kill("/kubepods.slice/cri-containerd-c0ffee.scope/inner"), "c0ffee"));
        assert!(!is_kill_of(&kill("/kubepods/burstable/pod7/decaf"), "c0ffee"), "the set of CPUs is only named so");
        assert!(!is_kill_of("6,903,52412,-;Memory cgroup out of memory: Killed process 812 (c0ffee)", "c0ffee"));
    }
}
