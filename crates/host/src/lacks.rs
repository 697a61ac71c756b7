//! What this machine cannot do of what Kubernetes knows: its kernel, its runtime, what runs it. Said once, in a table, instead
//! of Pod by Pod.

use std::path::Path;

/// One thing that a machine may lack.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    /// As the Node's annotation names it.
    pub id: &'static str,
    /// What follows for Pods and their people.
    pub without: &'static str,
    /// What would change it.
    pub remedy: &'static str,
}

/// The Node's annotation that lists what its machine lacks, by commas.
pub use corten_kubelet::LACKS as ANNOTATION;

/// Everything that is looked for, in the order in which it is told.
pub const LACKS: [Lack; 9] = [
    Lack {
        id: "AppArmor",
        without: "Pods that ask for an AppArmor profile are refused, all others run without one",
        remedy: "a kernel with AppArmor on, and the package apparmor",
    },
    Lack {
        id: "Seccomp",
        without: "no container's system calls are filtered",
        remedy: "a kernel with CONFIG_SECCOMP_FILTER",
    },
    Lack {
        id: "CgroupV2",
        without: "a child that is killed for want of memory leaves its container running, and memory has no soft limit",
        remedy: "a machine that boots with cgroup v2 alone, the default of Debian since 11",
    },
    Lack {
        id: "PressureStallInformation",
        without: "neither metrics nor summaries say how long processes wait for CPU, memory and disks",
        remedy: "cgroup v2, and a kernel with CONFIG_PSI, booted with psi=1",
    },
    Lack {
        id: "RecursiveReadOnlyMounts",
        without: "Pods that demand `recursiveReadOnly: Enabled` wait",
        remedy: "containerd 2.0 or later, and Linux 5.12 or later",
    },
    Lack {
        id: "SupplementalGroupsPolicy",
        without: "Pods with `supplementalGroupsPolicy: Strict` are refused",
        remedy: "containerd 2.0 or later",
    },
    Lack {
        id: "IPv6",
        without: "Pods and Services have IPv4 addresses alone",
        remedy: "a kernel with IPv6 that is not disabled",
    },
    Lack {
        id: "Systemd",
        without: "nothing starts the cluster when the machine starts: `corten up` must be run",
        remedy: "a machine that systemd runs",
    },
    Lack {
        id: "Logind",
        without: "a shutdown of the machine waits for no container: `corten down --drain` ends them in order",
        remedy: "systemd-logind, and D-Bus",
    },
];

/// What is known of the machine by whoever asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) app_armor: bool,
    pub(crate) is_unified: bool,
    pub(crate) recursive_read_only: bool,
    pub(crate) keeps_groups_policy: bool,
}

/// The ids of what this machine lacks.
pub(crate) fn lacks(known: Known) -> Vec<&'static str> {
    LACKS.iter().map(|it| it.id).filter(|it| !has(it, known)).collect()
}

fn has(id: &str, known: Known) -> bool {
    let is_there = |path: &str| Path::new(path).exists();
    match id {
        "AppArmor" => known.app_armor,
        "Seccomp" => is_there("/proc/sys/kernel/seccomp/actions_avail"),
        "CgroupV2" => known.is_unified,
        "PressureStallInformation" => known.is_unified && is_there("/proc/pressure/memory"),
        "RecursiveReadOnlyMounts" => known.recursive_read_only,
        "SupplementalGroupsPolicy" => known.keeps_groups_policy,
        // Where it is disabled the file is there, and empty.
        "IPv6" => std::fs::read_to_string("/proc/net/if_inet6").is_ok_and(|it| !it.is_empty()),
        "Systemd" => is_there("/run/systemd/system"),
        "Logind" => is_there("/run/systemd/seats"),
        _ => unreachable!("every row has its look"),
    }
}

/// The rows of the annotation's value. What another version wrote and this one does not know is left out.
pub fn lacks_of(annotation: &str) -> Vec<&'static Lack> {
    annotation.split(',').filter_map(|id| LACKS.iter().find(|it| it.id == id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_looked_for() {
        let all = Known { app_armor: true, is_unified: true, recursive_read_only: true, keeps_groups_policy: true };
        let (best, worst) = (lacks(all), lacks(Known::default()));
        for id in ["AppArmor", "CgroupV2", "RecursiveReadOnlyMounts", "SupplementalGroupsPolicy"] {
            assert!(!best.contains(&id) && worst.contains(&id), "{id}");
        }
        assert!(best.iter().all(|it| worst.contains(it)));
        let rows = lacks_of(&format!("{},FromTheFuture", worst.join(",")));
        assert_eq!(rows.iter().map(|it| it.id).collect::<Vec<_>>(), worst);
        assert!(lacks_of("").is_empty());
    }
}
