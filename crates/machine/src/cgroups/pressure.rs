//! How long tasks wait for CPU, memory and disks: the kernel's pressure stall information (`Documentation/accounting/psi.rst`),
//! which cgroups of version 2 have each.

use std::{fs, path::Path};

/// Of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Stall,
    /// All tasks that were not idle waited at once.
    pub full: Stall,
}

/// For how long, and what part of the last seconds, in hundredths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    pub total_micros: u64,
    pub avg10: u32,
    pub avg60: u32,
    pub avg300: u32,
}

impl Pressure {
    /// Of `cpu`, `memory` or `io`. The root of the tree may have no such file: the machine's is its.
    pub(super) fn read(folder: &Path, resource: &str, is_root: bool) -> Option<Self> {
        let of_cgroup = fs::read_to_string(folder.join(format!("{resource}.pressure"))).ok();
        let of_machine = || is_root.then(|| fs::read_to_string(format!("/proc/pressure/{resource}")).ok()).flatten();
        Self::of(&of_cgroup.or_else(of_machine)?)
    }

    /// A kernel that was booted without it has the files, and reading them fails.
    fn of(text: &str) -> Option<Self> {
        let line = |name: &str| text.lines().find_map(|it| it.strip_prefix(name)).map(Stall::of);
        // Older kernels do not count for CPUs when all tasks wait.
        Some(Self { some: line("some ")?, full: line("full ").unwrap_or_default() })
    }
}

impl Stall {
    fn of(line: &str) -> Self {
        let field = |name: &str| line.split(' ').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        let hundredths = |name: &str| field(name).and_then(|it| it.replace('.', "").parse().ok()).unwrap_or(0);
        Self {
            total_micros: field("total").and_then(|it| it.trim().parse().ok()).unwrap_or(0),
            avg10: hundredths("avg10"),
            avg60: hundredths("avg60"),
            avg300: hundredths("avg300"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kernels_write() {
        let text =
            "some avg10=1.50 avg60=0.07 avg300=100.00 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.01 total=9\n";
        let some = Stall { total_micros: 1_234_567, avg10: 150, avg60: 7, avg300: 10_000 };
        let full = Stall { total_micros: 9, avg300: 1, ..Stall::default() };
        assert_eq!(Pressure::of(text), Some(Pressure { some, full }));
        let old = "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
        assert_eq!(Pressure::of(old).map(|it| (it.some.total_micros, it.full)), Some((3, Stall::default())));
        assert_eq!(Pressure::of(""), None);
    }

    #[test]
    fn the_root_is_the_machine() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(Pressure::read(dir.path(), "memory", false), None);
        let machine = fs::read_to_string("/proc/pressure/memory").is_ok();
        assert_eq!(Pressure::read(dir.path(), "memory", true).is_some(), machine);
    }
}
