//! What the processes of a cgroup use, in the words of either layout.
//!
//! Upstream's working set is what cannot be taken back at once: all memory less the file pages that nobody touched lately.

use std::{fs, path::Path};

use super::{CLASSES, Cgroups, Hierarchy, Pressure, removal};

/// All counters of one cgroup at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_nanos: u64,
    pub cpu_user_nanos: u64,
    pub cpu_system_nanos: u64,
    pub cpu_periods: u64,
    pub cpu_throttled_periods: u64,
    pub cpu_throttled_nanos: u64,
    pub memory_bytes: u64,
    pub working_set_bytes: u64,
    pub rss_bytes: u64,
    pub cache_bytes: u64,
    pub mapped_bytes: u64,
    pub swap_bytes: u64,
    pub page_faults: u64,
    pub major_page_faults: u64,
    pub oom_kills: u64,
    /// How often memory could not be had, and the most there ever was of it.
    pub memory_failures: u64,
    pub memory_bytes_max: u64,
    /// Absent: as much as there is.
    pub memory_limit_bytes: Option<u64>,
    /// Threads count, too.
    pub tasks: u64,
    pub cpu_shares: u64,
    pub cpu_quota_micros: Option<u64>,
    pub cpu_period_micros: u64,
    /// How long tasks waited; absent with cgroup v1, and where the kernel does not count it.
    pub cpu_pressure: Option<Pressure>,
    pub memory_pressure: Option<Pressure>,
    pub io_pressure: Option<Pressure>,
}

/// A limit this large is none: the kernel's largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

impl Cgroups {
    /// The name of a Pod's cgroup, whichever class it has.
    pub fn pod_cgroup(&self, uid: &str) -> Option<String> {
        let tree = self.tree("memory")?;
        CLASSES.map(|it| self.names.pod(it, uid)).into_iter().find(|it| tree.join(it).is_dir())
    }

    /// The name of a container's, beneath its Pod's.
    pub fn container_cgroup(&self, pod: &str, id: &str) -> String {
        self.names.container(pod, id)
    }

    /// The cgroup above all Pods.
    pub fn root(&self) -> String {
        self.names.root()
    }

    /// The cgroup of the runtime.
    pub fn runtime(&self) -> String {
        self.names.runtime()
    }

    /// What a cgroup and all beneath it use; the empty name is the machine. `None`: there is no such cgroup.
    pub fn usage(&self, cgroup: &str) -> Option<Usage> {
        let mut usage = Usage::default();
        match &self.hierarchy {
            Hierarchy::Unified(mount) => {
                let folder = mount.join(cgroup);
                folder.is_dir().then_some(())?;
                unified(&folder, &mut usage);
                if cgroup.is_empty() {
                    usage.swap_bytes = machine_swap_used();
                }
                let pressure = |resource| Pressure::read(&folder, resource, cgroup.is_empty());
                usage.cpu_pressure = pressure("cpu");
                usage.memory_pressure = pressure("memory");
                usage.io_pressure = pressure("io");
            }
            Hierarchy::PerController(_) => {
                let memory = self.tree("memory")?.join(cgroup);
                memory.is_dir().then_some(())?;
                per_controller(&memory, &mut usage);
                if let Some(folder) = self.tree("cpuacct") {
                    cpu_of_accounts(&folder.join(cgroup), &mut usage);
                }
                if let Some(folder) = self.tree("cpu") {
                    shares(&folder.join(cgroup), &mut usage);
                }
                if let Some(folder) = self.tree("pids") {
                    usage.tasks = number(&folder.join(cgroup).join("pids.current"));
                }
            }
        }
        // The root is not counted in either layout.
        if cgroup.is_empty() {
            usage.tasks = machine_tasks();
        }
        Some(usage)
    }

    /// The processes of a container. A runtime that has systemd make the cgroup, or an init system in there, has them in one
    /// beneath.
    pub fn processes(&self, cgroup: &str) -> Vec<u32> {
        self.tree("memory").map(|it| removal::processes(&it.join(cgroup))).unwrap_or_default()
    }

    /// Where the kernel shows what a controller does.
    pub(super) fn tree(&self, controller: &str) -> Option<&Path> {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => Some(mount),
            Hierarchy::PerController(trees) => {
                let has = |names: &str| names.split(',').any(|it| it == controller);
                trees.iter().find(|(names, _)| has(names)).map(|(_, mount)| mount.as_path())
            }
        }
    }
}

fn number(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

/// A file of lines with a name and a number each.
struct Fields(String);

impl Fields {
    fn read(path: &Path) -> Self {
        Self(fs::read_to_string(path).unwrap_or_default())
    }

    fn get(&self, name: &str) -> u64 {
        let mut lines = self.0.lines().filter_map(|it| it.split_once(' '));
        lines.find(|it| it.0 == name).and_then(|it| it.1.trim().parse().ok()).unwrap_or(0)
    }
}

fn limit(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|it| *it > 0 && *it < UNLIMITED)
}

fn unified(folder: &Path, usage: &mut Usage) {
    let stat = Fields::read(&folder.join("memory.stat"));
    let current = folder.join("memory.current");
    // The root has no such file; then the machine's own numbers are the ones.
    usage.memory_bytes = if current.exists() { number(&current) } else { machine_memory_used() };
    usage.working_set_bytes = usage.memory_bytes.saturating_sub(stat.get("inactive_file"));
    usage.rss_bytes = stat.get("anon");
    usage.cache_bytes = stat.get("file");
    usage.mapped_bytes = stat.get("file_mapped");
    usage.page_faults = stat.get("pgfault");
    usage.major_page_faults = stat.get("pgmajfault");
    usage.swap_bytes = number(&folder.join("memory.swap.current"));
    usage.memory_bytes_max = number(&folder.join("memory.peak"));
    let events = Fields::read(&folder.join("memory.events"));
    usage.memory_failures = events.get("max");
    usage.oom_kills = events.get("oom_kill");
    usage.memory_limit_bytes = limit(number(&folder.join("memory.max")));
    let cpu = Fields::read(&folder.join("cpu.stat"));
    usage.cpu_nanos = cpu.get("usage_usec") * 1000;
    usage.cpu_user_nanos = cpu.get("user_usec") * 1000;
    usage.cpu_system_nanos = cpu.get("system_usec") * 1000;
    usage.cpu_periods = cpu.get("nr_periods");
    usage.cpu_throttled_periods = cpu.get("nr_throttled");
    usage.cpu_throttled_nanos = cpu.get("throttled_usec") * 1000;
    usage.tasks = number(&folder.join("pids.current"));
    let max = fs::read_to_string(folder.join("cpu.max")).unwrap_or_default();
    if let Some((quota, period)) = max.trim().split_once(' ') {
        usage.cpu_quota_micros = quota.parse().ok();
        usage.cpu_period_micros = period.parse().unwrap_or(0);
    }
    // The line between weights and shares, the other way.
    let weight = number(&folder.join("cpu.weight"));
    usage.cpu_shares = if weight == 0 { 0 } else { 2 + (weight - 1) * 262_142 / 9_999 };
}

fn machine_memory_used() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    bytes_of(&meminfo, "MemTotal:").saturating_sub(bytes_of(&meminfo, "MemFree:"))
}

fn machine_swap_used() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    bytes_of(&meminfo, "SwapTotal:").saturating_sub(bytes_of(&meminfo, "SwapFree:"))
}

fn bytes_of(meminfo: &str, name: &str) -> u64 {
    let line = meminfo.lines().find_map(|it| it.strip_prefix(name));
    line.and_then(|it| it.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Threads count, too: the second number of the fourth word (`proc_loadavg(5)`).
fn machine_tasks() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().nth(3).and_then(|it| it.split_once('/')?.1.parse().ok()).unwrap_or(0)
}

fn per_controller(folder: &Path, usage: &mut Usage) {
    let stat = Fields::read(&folder.join("memory.stat"));
    usage.memory_bytes = number(&folder.join("memory.usage_in_bytes"));
    usage.working_set_bytes = usage.memory_bytes.saturating_sub(stat.get("total_inactive_file"));
    usage.rss_bytes = stat.get("total_rss");
    usage.cache_bytes = stat.get("total_cache");
    usage.mapped_bytes = stat.get("total_mapped_file");
    usage.page_faults = stat.get("total_pgfault");
    usage.major_page_faults = stat.get("total_pgmajfault");
    usage.swap_bytes = stat.get("total_swap");
    usage.memory_failures = number(&folder.join("memory.failcnt"));
    usage.memory_bytes_max = number(&folder.join("memory.max_usage_in_bytes"));
    usage.memory_limit_bytes = limit(number(&folder.join("memory.limit_in_bytes")));
    usage.oom_kills = Fields::read(&folder.join("memory.oom_control")).get("oom_kill");
}

fn cpu_of_accounts(folder: &Path, usage: &mut Usage) {
    usage.cpu_nanos = number(&folder.join("cpuacct.usage"));
    usage.cpu_user_nanos = number(&folder.join("cpuacct.usage_user"));
    usage.cpu_system_nanos = number(&folder.join("cpuacct.usage_sys"));
}

fn shares(folder: &Path, usage: &mut Usage) {
    let stat = Fields::read(&folder.join("cpu.stat"));
    usage.cpu_periods = stat.get("nr_periods");
    usage.cpu_throttled_periods = stat.get("nr_throttled");
    usage.cpu_throttled_nanos = stat.get("throttled_time");
    usage.cpu_shares = number(&folder.join("cpu.shares"));
    usage.cpu_period_micros = number(&folder.join("cpu.cfs_period_us"));
    let quota = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok();
    usage.cpu_quota_micros = quota.and_then(|it| it.trim().parse().ok());
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Driver, Stall},
        *,
    };
    use crate::Layout;

    #[test]
    fn reads_both_layouts() {
        let files = |marker: &str| -> &[(&str, &str)] {
            match marker {
                "unified" => &[
                    ("cgroup.controllers", "cpu memory pids"),
                    ("kubepods/podu/memory.current", "1000"),
                    ("kubepods/podu/memory.stat", "anon 300\nfile 500\ninactive_file 200\npgfault 7\n"),
                    ("kubepods/podu/memory.max", "max"),
                    ("kubepods/podu/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"),
                    ("kubepods/podu/pids.current", "4"),
                    ("kubepods/podu/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=8\n"),
                ],
                _ => &[
                    ("memory/kubepods/podu/memory.usage_in_bytes", "1000"),
                    (
                        "memory/kubepods/podu/memory.stat",
                        "rss 1\ntotal_rss 300\ntotal_cache 500\ntotal_inactive_file 200\ntotal_pgfault 7\n",
                    ),
                    ("memory/kubepods/podu/memory.limit_in_bytes", "9223372036854771712"),
                    ("cpu,cpuacct/kubepods/podu/cpuacct.usage", "5000"),
                    ("cpu,cpuacct/kubepods/podu/cpuacct.usage_user", "3000"),
                    ("cpu,cpuacct/kubepods/podu/cpuacct.usage_sys", "2000"),
                    ("pids/kubepods/podu/pids.current", "4"),
                ],
            }
        };
        for marker in ["unified", "per controller"] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            for (path, text) in files(marker) {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
                fs::write(path, text).expect("a file");
            }
            let cgroups = Cgroups::at(dir.path(), &Layout::new("/d", "/run/corten"), Driver::Cgroupfs);
            let cgroup = cgroups.pod_cgroup("u").expect("it is there");
            let expected = Usage {
                cpu_nanos: 5000,
                cpu_user_nanos: 3000,
                cpu_system_nanos: 2000,
                memory_bytes: 1000,
                working_set_bytes: 800,
                rss_bytes: 300,
                cache_bytes: 500,
                page_faults: 7,
                tasks: 4,
                io_pressure: (marker == "unified")
                    .then(|| Pressure { some: Stall { total_micros: 8, ..Stall::default() }, full: Stall::default() }),
                ..Usage::default()
            };
            assert_eq!(cgroups.usage(&cgroup), Some(expected), "{marker}");
            assert_eq!((cgroups.usage("kubepods/other"), cgroups.pod_cgroup("other")), (None, None));
        }
    }
}
