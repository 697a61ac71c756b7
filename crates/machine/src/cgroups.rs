//! The cgroups above Pods' containers, for the kernel's first and second layout alike.
//!
//! Where systemd is in charge of the second layout, it makes them, and nobody else writes to what is its own; elsewhere they
//! are made here. containerd has the containers' own made beneath in the same way.

mod limits;
mod names;
mod pressure;
mod removal;
mod slices;
mod usage;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use corten_kubelet::Qos;

use crate::{Layout, service_manager::systemd_is_in_charge};
pub use names::scope_of;
use names::{CLASSES, Driver, Names, unit};
pub use pressure::{Pressure, Stall};
pub use usage::Usage;

/// What all containers of a Pod may use together; nothing means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLimits {
    pub cpu_shares: Option<u64>,
    /// Of each period of 100 ms.
    pub cpu_quota_micros: Option<i64>,
    pub memory_bytes: Option<u64>,
    pub pids: Option<u64>,
}

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
    names: Names,
}

const MOUNT: &str = "/sys/fs/cgroup";
/// The one way to systemd that our library and crun both know. It is there while the bus is restarted.
const BUS: &str = "/run/dbus/system_bus_socket";

impl Cgroups {
    /// As systemd wants them where it is in charge of the second layout and can be asked. A node that was begun without it
    /// goes on so until it is taken down or the machine starts again: its containers stay where they are.
    pub fn detect(layout: &Layout) -> Self {
        let [cgroupfs, systemd] = [Driver::Cgroupfs, Driver::Systemd].map(|it| Self::at(Path::new(MOUNT), layout, it));
        let is_there = |it: &Self| it.is_there(&it.root());
        let is_in_charge = cgroupfs.is_unified() && systemd_is_in_charge();
        if !is_in_charge || is_there(&cgroupfs) || !(is_there(&systemd) || Path::new(BUS).exists()) {
            return cgroupfs;
        }
        systemd
    }

    /// All that a node of these folders may have made, whoever was in charge then.
    pub fn every(layout: &Layout) -> Vec<Self> {
        let cgroupfs = Self::at(Path::new(MOUNT), layout, Driver::Cgroupfs);
        if !(cgroupfs.is_unified() && systemd_is_in_charge()) {
            return vec![cgroupfs];
        }
        vec![Self::at(Path::new(MOUNT), layout, Driver::Systemd), cgroupfs]
    }

    /// The names that the cgroup above all Pods may have, whoever is in charge.
    pub fn every_root(layout: &Layout) -> [String; 2] {
        [Driver::Cgroupfs, Driver::Systemd].map(|it| Names::of(it, layout).root())
    }

    /// What a kubelet calls whoever makes them.
    pub fn driver(&self) -> &'static str {
        if self.are_systemds() { "systemd" } else { "cgroupfs" }
    }

    /// Is it systemd that makes them? The runtime must be told, too.
    pub fn are_systemds(&self) -> bool {
        self.names.driver == Driver::Systemd
    }

    /// One tree for all controllers: version 2.
    pub fn is_unified(&self) -> bool {
        matches!(self.hierarchy, Hierarchy::Unified(_))
    }

    /// Can a cgroup be kept from the machine's swap? Not with version 1, and not without the kernel's accounting.
    pub fn limits_swap(&self) -> bool {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => mount.join(self.names.root()).join("memory.swap.max").exists(),
            Hierarchy::PerController(_) => false,
        }
    }

    fn at(mount: &Path, layout: &Layout, driver: Driver) -> Self {
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
        Self { hierarchy, names: Names::of(driver, layout) }
    }

    fn trees(&self) -> Vec<&Path> {
        match &self.hierarchy {
            Hierarchy::Unified(mount) => vec![mount],
            Hierarchy::PerController(trees) => trees.iter().map(|(_, mount)| mount.as_path()).collect(),
        }
    }

    /// Makes the cgroups above all Pods.
    pub fn prepare(&self) -> io::Result<()> {
        for class in CLASSES {
            let cgroup = self.names.class(class);
            match self.names.driver {
                Driver::Cgroupfs => self.create(&cgroup)?,
                Driver::Systemd => slices::start_slice(unit(&cgroup), "Pods of Corten", Vec::new())?,
            }
        }
        Ok(())
    }

    /// A Pod's `cgroup_parent`.
    pub fn parent(&self, qos: Qos, uid: &str) -> String {
        format!("/{}", self.names.pod(qos, uid))
    }

    pub fn create_pod(&self, qos: Qos, uid: &str, limits: &PodLimits) -> io::Result<()> {
        let pod = self.names.pod(qos, uid);
        match self.names.driver {
            Driver::Cgroupfs => {
                self.create(&pod)?;
                self.write(&pod, limits::files(self.is_unified(), limits))
            }
            Driver::Systemd => {
                slices::start_slice(unit(&pod), &format!("Pod {uid} of Corten"), limits::properties(limits))
            }
        }
    }

    /// Gives a Pod other limits while it runs; nothing means no limit now.
    pub fn update_pod(&self, qos: Qos, uid: &str, limits: &PodLimits) -> io::Result<()> {
        let pod = self.names.pod(qos, uid);
        match self.names.driver {
            Driver::Cgroupfs => self.write(&pod, limits::changed_files(self.is_unified(), limits)),
            Driver::Systemd => slices::set(unit(&pod), &limits::changed_properties(limits)),
        }
    }

    /// The memory that a Pod, or one of its containers, uses; nothing where that cannot be told.
    pub fn memory_used(&self, qos: Qos, uid: &str, container: Option<&str>) -> Option<u64> {
        let pod = self.names.pod(qos, uid);
        let cgroup = container.map_or(pod.clone(), |it| self.names.container(&pod, it));
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
        CLASSES.into_iter().try_for_each(|it| self.remove(&self.names.pod(it, uid)))
    }

    /// Kills what runs in a Pod's cgroups, and leaves them.
    pub fn kill_pod(&self, uid: &str) -> io::Result<()> {
        let cgroups = CLASSES.map(|it| self.names.pod(it, uid));
        let trees = self.trees();
        let mut places = trees.iter().flat_map(|tree| cgroups.iter().map(|it| tree.join(it)));
        places.try_for_each(|it| removal::kill_tree(&it))
    }

    /// The uids of all Pods that have cgroups.
    pub fn pods(&self) -> Vec<String> {
        let mut uids = Vec::new();
        for (tree, class) in self.trees().iter().flat_map(|tree| CLASSES.map(|class| (tree, class))) {
            let entries = fs::read_dir(tree.join(self.names.class(class))).into_iter().flatten().flatten();
            let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
            uids.extend(names.filter_map(|it| self.names.uid(class, &it)));
        }
        uids.sort();
        uids.dedup();
        uids
    }

    /// Removes everything beneath the root, and it; what still runs there is killed.
    pub fn remove_all(&self) -> io::Result<()> {
        self.remove(&self.names.root())
    }

    /// Moves the runtime to a cgroup of its own, so that it does not end with whoever started it. What it starts follows.
    pub fn isolate_runtime(&self, pid: u32) -> io::Result<()> {
        let cgroup = self.names.runtime();
        match self.names.driver {
            Driver::Cgroupfs => {
                self.create(&cgroup)?;
                self.join(pid, &cgroup)
            }
            // An earlier runtime's shims keep the scope, which was delegated to us.
            Driver::Systemd => self.join(pid, &cgroup).or_else(|_| {
                let (slice, service) = (self.names.service_slice(), self.names.service_unit());
                let description = "containerd of Corten, and the shims of its containers";
                slices::start_scope(unit(&cgroup), description, &slice, &service, pid)
            }),
        }
    }

    /// Removes the runtime's cgroup; what still runs there is killed.
    pub fn remove_runtime(&self) -> io::Result<()> {
        self.remove(&self.names.runtime())?;
        let slice = self.names.service_slice();
        // The node's own unit may still be in there.
        if self.are_systemds() && self.is_there(&slice) && !self.is_populated(&slice) {
            slices::stop(&slice)?;
        }
        Ok(())
    }

    fn is_there(&self, cgroup: &str) -> bool {
        self.trees().into_iter().any(|it| it.join(cgroup).is_dir())
    }

    fn is_populated(&self, cgroup: &str) -> bool {
        let events = |it: &Path| fs::read_to_string(it.join(cgroup).join("cgroup.events")).unwrap_or_default();
        self.trees().into_iter().any(|it| events(it).lines().any(|it| it == "populated 1"))
    }

    fn join(&self, pid: u32, cgroup: &str) -> io::Result<()> {
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
    fn remove(&self, cgroup: &str) -> io::Result<()> {
        let trees = self.trees();
        if self.are_systemds() && self.is_there(cgroup) {
            // systemd would first ask all in it to end, and wait long.
            trees.iter().try_for_each(|it| removal::kill_tree(&it.join(cgroup)))?;
            slices::stop(unit(cgroup))?;
        }
        trees.iter().try_for_each(|it| removal::remove_tree(&it.join(cgroup)))
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
            let cgroups = Cgroups::at(dir.path(), &Layout::new("/d", "/run/corten"), Driver::Cgroupfs);
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
        let mut layout = Layout::new("/d", "/run/corten-test");
        layout.cgroup_root = format!("corten-test-{}", std::process::id());
        let cgroups = Cgroups::detect(&layout);
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
