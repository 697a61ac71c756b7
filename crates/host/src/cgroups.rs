//! The cgroups above Pods' containers, for the kernel's first and second layout alike.
//!
//! `kubepods/pod<uid>` for guaranteed Pods, `kubepods/burstable/pod<uid>` and `kubepods/besteffort/pod<uid>` for the others,
//! as upstream with the cgroupfs driver. containerd makes the containers' own beneath.

mod pressure;
mod usage;

use std::{
    ffi::CStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsRawFd, BorrowedFd},
    fs::FileType,
    process::{Pid, Signal},
};

use crate::{
    Process,
    tree::{self, Bound, Entry, Visitor},
};
pub(crate) use pressure::{Pressure, Stall};
pub(crate) use usage::Usage;

/// How strictly a Pod's use of the node is promised to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qos {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// What all containers of a Pod may use together; nothing means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLimits {
    pub cpu_shares: Option<u64>,
    /// Of each period of 100 ms.
    pub cpu_quota_micros: Option<i64>,
    pub memory_bytes: Option<u64>,
    pub pids: Option<u64>,
}

const CPU_PERIOD_MICROS: i64 = 100_000;
/// What a killed process may take to be gone.
const REMOVE_DEADLINE: Duration = Duration::from_secs(10);
/// Shorter than what removing a Pod may take.
const REMOVE_ALL_DEADLINE: Duration = Duration::from_secs(100);
const QOS_FOLDERS: [&str; 3] = ["", "burstable", "besteffort"];

/// Where the kernel shows its cgroups.
#[derive(Clone, Debug)]
enum Hierarchy {
    /// One tree.
    Unified(PathBuf),
    /// A tree per controller: name, mount point.
    PerController(Vec<(String, PathBuf)>),
}

#[derive(Clone, Debug)]
pub struct Cgroups {
    hierarchy: Hierarchy,
    root: String,
}

impl Cgroups {
    /// `root` is the name of the cgroup above all Pods.
    pub fn detect(root: &str) -> Self {
        Self::at(Path::new("/sys/fs/cgroup"), root)
    }

    /// One tree for all controllers: version 2.
    pub(crate) fn is_unified(&self) -> bool {
        matches!(self.hierarchy, Hierarchy::Unified(_))
    }

    /// Can a cgroup be kept from the machine's swap? Not with version 1, and not without the kernel's accounting.
    pub(crate) fn limits_swap(&self) -> bool {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => mount.join(&self.root).join("memory.swap.max").exists(),
            Hierarchy::PerController(_) => false,
        }
    }

    fn at(mount: &Path, root: &str) -> Self {
        let hierarchy = if mount.join("cgroup.controllers").exists() {
            Hierarchy::Unified(mount.to_owned())
        } else {
            let entries = fs::read_dir(mount).into_iter().flatten().flatten();
            let mut trees: Vec<(String, PathBuf)> = entries
                // `unified` beside the others has no controllers, but runc makes cgroups there too. Links such as
                // `cpu -> cpu,cpuacct` lead to trees that are met as themselves.
                .filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
                .map(|it| (it.file_name().to_string_lossy().into_owned(), it.path()))
                .collect();
            trees.sort();
            Hierarchy::PerController(trees)
        };
        Self { hierarchy, root: root.to_owned() }
    }

    fn trees(&self) -> Vec<&Path> {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => vec![mount],
            Hierarchy::PerController(trees) => trees.iter().map(|(_, mount)| mount.as_path()).collect(),
        }
    }

    /// Makes the cgroups above all Pods.
    pub fn prepare(&self) -> io::Result<()> {
        for folder in QOS_FOLDERS {
            self.create(&join(&self.root, folder))?;
        }
        Ok(())
    }

    /// A Pod's `cgroup_parent`.
    pub fn parent(&self, qos: Qos, uid: &str) -> String {
        format!("/{}", self.pod(qos, uid))
    }

    fn pod(&self, qos: Qos, uid: &str) -> String {
        let folder = match qos {
            Qos::Guaranteed => "",
            Qos::Burstable => "burstable",
            Qos::BestEffort => "besteffort",
        };
        join(&join(&self.root, folder), &format!("pod{uid}"))
    }

    pub fn create_pod(&self, qos: Qos, uid: &str, limits: &PodLimits) -> io::Result<()> {
        let pod = self.pod(qos, uid);
        self.create(&pod)?;
        self.write(&pod, settings(&self.hierarchy, limits))
    }

    /// Gives a Pod other limits while it runs; nothing means no limit now.
    pub fn update_pod(&self, qos: Qos, uid: &str, limits: &PodLimits) -> io::Result<()> {
        let unified = matches!(self.hierarchy, Hierarchy::Unified(_));
        let mut all = settings(&self.hierarchy, limits);
        if limits.memory_bytes.is_none() {
            all.push(if unified {
                ("memory", "memory.max", "max".to_owned())
            } else {
                ("memory", "memory.limit_in_bytes", "-1".to_owned())
            });
        }
        if limits.cpu_quota_micros.is_none() {
            all.push(if unified {
                ("cpu", "cpu.max", format!("max {CPU_PERIOD_MICROS}"))
            } else {
                ("cpu", "cpu.cfs_quota_us", "-1".to_owned())
            });
        }
        self.write(&self.pod(qos, uid), all)
    }

    /// The memory that a Pod, or one of its containers, uses; nothing where that cannot be told.
    pub fn memory_used(&self, qos: Qos, uid: &str, container: Option<&str>) -> Option<u64> {
        let pod = self.pod(qos, uid);
        let cgroup = container.map_or(pod.clone(), |it| join(&pod, it));
        let file = match self.hierarchy {
            Hierarchy::Unified(_) => "memory.current",
            Hierarchy::PerController(_) => "memory.usage_in_bytes",
        };
        fs::read_to_string(self.tree("memory")?.join(cgroup).join(file)).ok()?.trim().parse().ok()
    }

    fn write(&self, cgroup: &str, settings: Vec<(&'static str, &'static str, String)>) -> io::Result<()> {
        for (controller, file, value) in settings {
            let Some(tree) = self.tree(controller) else { continue };
            let path = tree.join(cgroup).join(file);
            fs::write(&path, value)
                .map_err(|it| io::Error::new(it.kind(), format!("write {}: {it}", path.display())))?;
        }
        Ok(())
    }

    /// Removes a Pod's cgroups, whichever class it had; what still runs in them is killed.
    pub fn remove_pod(&self, uid: &str) -> io::Result<()> {
        for qos in [Qos::Guaranteed, Qos::Burstable, Qos::BestEffort] {
            self.remove(&self.pod(qos, uid))?;
        }
        Ok(())
    }

    /// The uids of all Pods that have cgroups.
    pub fn pods(&self) -> Vec<String> {
        let mut uids = Vec::new();
        for tree in self.trees() {
            for folder in QOS_FOLDERS {
                let entries = fs::read_dir(tree.join(join(&self.root, folder))).into_iter().flatten().flatten();
                let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
                uids.extend(names.filter_map(|it| it.strip_prefix("pod").map(str::to_owned)));
            }
        }
        uids.sort();
        uids.dedup();
        uids
    }

    /// Removes everything beneath the root, and it; what still runs there is killed.
    pub fn remove_all(&self) -> io::Result<()> {
        self.remove(&self.root)
    }

    /// Moves a process to a cgroup of its own, so that it does not end with whoever started it.
    pub fn isolate(&self, pid: u32, cgroup: &str) -> io::Result<()> {
        self.create(cgroup)?;
        for tree in self.trees() {
            match fs::write(tree.join(cgroup).join("cgroup.procs"), pid.to_string()) {
                // A cpuset without CPUs takes nobody; the process then stays where it is in that tree.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes one cgroup with all beneath it, in every tree.
    pub fn remove(&self, cgroup: &str) -> io::Result<()> {
        for tree in self.trees() {
            remove_tree(&tree.join(cgroup))?;
        }
        Ok(())
    }

    fn create(&self, cgroup: &str) -> io::Result<()> {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => {
                let mut above = mount.clone();
                for name in cgroup.split('/') {
                    delegate(&above);
                    above.push(name);
                    make_dir(&above)?;
                }
                Ok(())
            }
            Hierarchy::PerController(trees) => {
                for (controller, mount) in trees {
                    create_beneath(mount, cgroup, controller == "cpuset")?;
                }
                Ok(())
            }
        }
    }
}

fn join(above: &str, name: &str) -> String {
    if name.is_empty() { above.to_owned() } else { format!("{above}/{name}") }
}

/// Those above are there for all Pods but the first.
fn create_beneath(mount: &Path, cgroup: &str, is_cpuset: bool) -> io::Result<()> {
    let path = mount.join(cgroup);
    match (fs::create_dir(&path), cgroup.rsplit_once('/')) {
        (Err(error), Some((above, _))) if error.kind() == io::ErrorKind::NotFound => {
            create_beneath(mount, above, is_cpuset)?;
            make_dir(&path)?;
        }
        (Err(error), _) if error.kind() != io::ErrorKind::AlreadyExists => return Err(not_created(&path, &error)),
        _ => {}
    }
    if is_cpuset {
        inherit_cpuset(&path);
    }
    Ok(())
}

fn not_created(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("create {}: {error}", path.display()))
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(not_created(path, &error)),
        _ => Ok(()),
    }
}

/// Hands every controller down to the cgroups beneath; one that cannot be is not there for them.
fn delegate(cgroup: &Path) {
    let controllers = fs::read_to_string(cgroup.join("cgroup.controllers")).unwrap_or_default();
    for controller in controllers.split_whitespace() {
        let _ = fs::write(cgroup.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// A new cpuset is empty and takes no process until it has its parent's CPUs and memory nodes.
fn inherit_cpuset(cgroup: &Path) {
    let Some(parent) = cgroup.parent() else { return };
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = fs::read_to_string(cgroup.join(file)).unwrap_or_default();
        if own.trim().is_empty() {
            let _ = fs::read_to_string(parent.join(file)).and_then(|it| fs::write(cgroup.join(file), it.trim()));
        }
    }
}

/// Which file of which controller says what.
fn settings(hierarchy: &Hierarchy, limits: &PodLimits) -> Vec<(&'static str, &'static str, String)> {
    let unified = matches!(hierarchy, Hierarchy::Unified(_));
    let mut settings = Vec::new();
    if let Some(shares) = limits.cpu_shares {
        settings.push(match unified {
            true => ("cpu", "cpu.weight", weight(shares).to_string()),
            false => ("cpu", "cpu.shares", shares.to_string()),
        });
    }
    if let Some(quota) = limits.cpu_quota_micros {
        if unified {
            settings.push(("cpu", "cpu.max", format!("{quota} {CPU_PERIOD_MICROS}")));
        } else {
            settings.push(("cpu", "cpu.cfs_period_us", CPU_PERIOD_MICROS.to_string()));
            settings.push(("cpu", "cpu.cfs_quota_us", quota.to_string()));
        }
    }
    if let Some(bytes) = limits.memory_bytes {
        let file = if unified { "memory.max" } else { "memory.limit_in_bytes" };
        settings.push(("memory", file, bytes.to_string()));
    }
    if let Some(pids) = limits.pids {
        settings.push(("pids", "pids.max", pids.to_string()));
    }
    settings
}

/// `cpu.shares` (2 to 262144) as `cpu.weight` (1 to 10000), on the line runc draws between them.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// Kills what runs in a cgroup and those beneath it, then removes them, the innermost first. A privileged container makes as
/// many as it likes, however deep.
fn remove_tree(cgroup: &Path) -> io::Result<()> {
    struct Removal;
    impl Visitor for Removal {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            Ok(entry.kind == FileType::Directory)
        }

        fn leaves(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
            let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
            remove_emptied(&parent.join(std::ffi::OsStr::from_bytes(name.to_bytes())))
        }
    }
    let top = match tree::open_folder(cgroup) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    tree::walk(top, &mut Bound::of_time(REMOVE_ALL_DEADLINE), &mut Removal)?;
    remove_emptied(cgroup)
}

/// Kills what runs in a cgroup that has none beneath it, and removes it.
fn remove_emptied(cgroup: &Path) -> io::Result<()> {
    let end = Instant::now() + REMOVE_DEADLINE;
    loop {
        let ended = kill_all(cgroup);
        match fs::remove_dir(cgroup) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("remove {}: {error}", cgroup.display()))),
        }
        // They leave the cgroup a moment after the signal; one that is gone already has left.
        for process in &ended {
            process.ends_within(Duration::from_millis(100));
        }
        // Nobody to wait for: the kernel itself is still at it.
        if ended.is_empty() {
            std::thread::yield_now();
        }
    }
}

/// Kills what runs in one cgroup; who that was.
fn kill_all(cgroup: &Path) -> Vec<Process> {
    let pids = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let pids = pids.lines().filter_map(|it| it.parse().ok()).filter_map(Pid::from_raw);
    let processes: Vec<Process> = pids.filter_map(Process::find).collect();
    for process in &processes {
        process.signal(Signal::KILL);
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_limits_where_each_layout_wants_them() {
        let limits = PodLimits {
            cpu_shares: Some(1024),
            cpu_quota_micros: Some(50_000),
            memory_bytes: Some(1 << 20),
            pids: Some(100),
        };
        for (marker, expected) in [
            (
                "cgroup.controllers",
                &[("cpu.weight", "39"), ("cpu.max", "50000 100000"), ("memory.max", "1048576"), ("pids.max", "100")][..],
            ),
            (
                "cpu,cpuacct/tasks",
                &[
                    ("cpu,cpuacct:cpu.shares", "1024"),
                    ("cpu,cpuacct:cpu.cfs_quota_us", "50000"),
                    ("memory:memory.limit_in_bytes", "1048576"),
                    ("pids:pids.max", "100"),
                ],
            ),
        ] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            for controller in ["cpu,cpuacct", "memory", "pids"].iter().filter(|_| marker.contains('/')) {
                fs::create_dir(dir.path().join(controller)).expect("a folder");
            }
            fs::write(dir.path().join(marker), "").expect("a file");
            let cgroups = Cgroups::at(dir.path(), "kubepods");
            cgroups.prepare().expect("prepared");
            cgroups.create_pod(Qos::Burstable, "u1", &limits).expect("created");
            for (file, value) in expected {
                let (tree, file) = file.split_once(':').unwrap_or(("", file));
                let path = dir.path().join(tree).join("kubepods/burstable/podu1").join(file);
                assert_eq!(fs::read_to_string(&path).expect("written"), *value, "{}", path.display());
            }
            assert_eq!(cgroups.pods(), ["u1"]);
            assert_eq!(cgroups.parent(Qos::Guaranteed, "u2"), "/kubepods/podu2");
        }
    }

    #[test]
    fn makes_and_removes_real_cgroups() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let cgroups = Cgroups::detect(&format!("corten-test-{}", std::process::id()));
        if let Err(error) = cgroups.prepare() {
            eprintln!("skipped: needs writable cgroups: {error}");
            return;
        }
        let limits = PodLimits { memory_bytes: Some(64 << 20), pids: Some(10), ..PodLimits::default() };
        cgroups.create_pod(Qos::BestEffort, "u1", &limits).expect("created");
        assert_eq!(cgroups.pods(), ["u1"]);
        cgroups.remove_pod("u1").expect("removed");
        assert!(cgroups.pods().is_empty());
        cgroups.remove_all().expect("removed");
        cgroups.remove_all().expect("harmless");
    }
}
