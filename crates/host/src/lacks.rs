//! What this machine cannot do of what Kubernetes knows: its kernel, its runtime, what runs it. Said once, in a table, instead
//! of Pod by Pod.

use std::path::Path;

/// One thing that a machine may lack.
#[derive(Debug)]
pub struct Lack {
    /// As the Node's annotation names it.
    pub id: &'static str,
    is_there: fn(MachineFeatures) -> bool,
    /// What follows for Pods and their people.
    pub without: &'static str,
    /// What would change it.
    pub remedy: &'static str,
}

/// The Node's annotation that lists what its machine lacks, by commas.
pub use corten_kubelet::LACKS as ANNOTATION;

/// Everything that is looked for, in the order in which it is told.
pub const LACKS: [Lack; 13] = [
    Lack {
        id: "AppArmor",
        is_there: |it| it.app_armor,
        without: "Pods that ask for an AppArmor profile are refused, all others run without one",
        remedy: "a kernel with AppArmor on, and the package apparmor",
    },
    Lack {
        id: "Seccomp",
        is_there: |_| is_there("/proc/sys/kernel/seccomp/actions_avail"),
        without: "no container's system calls are filtered",
        remedy: "a kernel with CONFIG_SECCOMP_FILTER",
    },
    Lack {
        id: "CgroupV2",
        is_there: |it| it.is_unified,
        without: "a child that is killed for want of memory leaves its container running, and memory has no soft limit",
        remedy: "a machine that boots with cgroup v2 alone, the default of Debian since 11",
    },
    Lack {
        id: "PressureStallInformation",
        is_there: |it| it.is_unified && is_there("/proc/pressure/memory"),
        without: "neither metrics nor summaries say how long processes wait for CPU, memory and disks",
        remedy: "cgroup v2, and a kernel with CONFIG_PSI, booted with psi=1",
    },
    Lack {
        id: "RecursiveReadOnlyMounts",
        is_there: |it| it.recursive_read_only,
        without: "Pods that demand `recursiveReadOnly: Enabled` wait",
        remedy: "containerd 2.0 or later, and Linux 5.12 or later",
    },
    Lack {
        id: "SupplementalGroupsPolicy",
        is_there: |it| it.keeps_groups_policy,
        without: "Pods with `supplementalGroupsPolicy: Strict` are refused",
        remedy: "containerd 2.0 or later",
    },
    Lack {
        id: "UserNamespaces",
        is_there: |it| it.user_namespaces,
        without: "Pods with `hostUsers: false` wait",
        remedy: "containerd 2.0 or later, runc 1.2 or crun 1.9 or later, and Linux 6.3 or later",
    },
    Lack {
        id: "SharedMounts",
        is_there: |it| it.shared_mounts,
        without: "Pods do not see what is mounted on the machine after Corten began, and volumes of CSI drivers that run as processes of \
                  the machine are refused",
        remedy: "`mount --make-rshared /` (and the same for the disk of the data folder, where it has its own) after `corten down`, \
                 before `corten up`",
    },
    Lack {
        id: "IPv6",
        is_there: |_| has_ipv6(),
        without: "Pods and Services have IPv4 addresses alone",
        remedy: "a kernel with IPv6 that is not disabled",
    },
    Lack {
        id: "WireGuard",
        is_there: |it| it.wireguard,
        without: "no Pod runs while the node's `--pod-network` is wireguard",
        remedy: "a kernel with CONFIG_WIREGUARD, Linux 5.6 or later",
    },
    Lack {
        id: "Tun",
        is_there: |_| is_there("/dev/net/tun"),
        without: "Pods of a cluster of IPv6 alone do not reach what has IPv4 alone",
        remedy: "a kernel with CONFIG_TUN, and the device /dev/net/tun (`modprobe tun`)",
    },
    Lack {
        id: "Systemd",
        is_there: |_| is_there("/run/systemd/system"),
        without: "nothing starts the cluster when the machine starts: `corten up` must be run",
        remedy: "a machine that systemd runs",
    },
    Lack {
        id: "Logind",
        is_there: |_| is_there("/run/systemd/seats"),
        without: "a shutdown of the machine waits for no container: `corten down --drain` ends them in order",
        remedy: "systemd-logind, and D-Bus",
    },
];

/// What is known of the machine by whoever asks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineFeatures {
    pub(crate) app_armor: bool,
    pub(crate) is_unified: bool,
    pub(crate) recursive_read_only: bool,
    pub(crate) keeps_groups_policy: bool,
    pub(crate) user_namespaces: bool,
    pub(crate) shared_mounts: bool,
    /// Also where nothing asks for it, and nobody has looked.
    pub(crate) wireguard: bool,
}

/// The ids of what this machine lacks.
pub(crate) fn lacks(known: MachineFeatures) -> Vec<&'static str> {
    LACKS.iter().filter(|it| !(it.is_there)(known)).map(|it| it.id).collect()
}

fn is_there(path: &str) -> bool {
    Path::new(path).exists()
}

/// Where it is disabled the file is there, and empty.
fn has_ipv6() -> bool {
    std::fs::read_to_string("/proc/net/if_inet6").is_ok_and(|it| !it.is_empty())
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
        let all = MachineFeatures {
            app_armor: true,
            is_unified: true,
            recursive_read_only: true,
            keeps_groups_policy: true,
            user_namespaces: true,
            shared_mounts: true,
            wireguard: true,
        };
        let (best, worst) = (lacks(all), lacks(MachineFeatures::default()));
        for id in [
            "AppArmor",
            "CgroupV2",
            "RecursiveReadOnlyMounts",
            "SharedMounts",
            "SupplementalGroupsPolicy",
            "UserNamespaces",
            "WireGuard",
        ] {
            assert!(!best.contains(&id) && worst.contains(&id), "{id}");
        }
        assert!(best.iter().all(|it| worst.contains(it)));
        let rows = lacks_of(&format!("{},FromTheFuture", worst.join(",")));
        assert_eq!(rows.iter().map(|it| it.id).collect::<Vec<_>>(), worst);
        assert!(lacks_of("").is_empty());
    }
}
