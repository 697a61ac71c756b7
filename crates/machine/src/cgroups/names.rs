//! What cgroups are called: by the kubelet's cgroupfs driver, or by its systemd driver.
//!
//! ```text
//! kubepods/burstable/pod<uid>/<container>
//! kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<container>.scope
//! ```
//!
//! A slice's name has those above it in it, parted by dashes, so a uid's dashes become underscores.

use std::fmt::Write as _;

use corten_kubelet::Qos;

use crate::Layout;

/// Who makes the cgroups, and so what they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// Whoever wants one.
    Cgroupfs,
    /// systemd alone, which owns the tree.
    Systemd,
}

pub(super) const CLASSES: [Qos; 3] = [Qos::Guaranteed, Qos::Burstable, Qos::BestEffort];

/// The names below one root.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) driver: Driver,
    /// Above all Pods.
    root: String,
    /// The node's own processes.
    service: String,
    /// Keeps the node running.
    unit: String,
}

impl Names {
    pub(super) fn of(driver: Driver, layout: &Layout) -> Self {
        let root = &layout.cgroup_root;
        let (root, service) = match driver {
            Driver::Cgroupfs => (root.clone(), format!("{root}-runtime")),
            // A dash would put one node's Pods below another's.
            Driver::Systemd => (root.replace('-', "_"), layout.service_slice().trim_end_matches(".slice").to_owned()),
        };
        Self { driver, root, service, unit: layout.service_unit() }
    }

    /// The cgroup above all Pods.
    pub(super) fn root(&self) -> String {
        match self.driver {
            Driver::Cgroupfs => self.root.clone(),
            Driver::Systemd => format!("{}.slice", self.root),
        }
    }

    /// The one above all Pods of a class.
    pub(super) fn class(&self, qos: Qos) -> String {
        let root = self.root();
        match (self.driver, folder(qos)) {
            (_, "") => root,
            (Driver::Cgroupfs, folder) => format!("{root}/{folder}"),
            (Driver::Systemd, folder) => format!("{root}/{}-{folder}.slice", self.root),
        }
    }

    pub(super) fn pod(&self, qos: Qos, uid: &str) -> String {
        let class = self.class(qos);
        match self.driver {
            Driver::Cgroupfs => format!("{class}/pod{uid}"),
            Driver::Systemd => format!("{class}/{}{}.slice", self.prefix(qos), escaped(uid)),
        }
    }

    /// What the name of a Pod's slice begins with.
    fn prefix(&self, qos: Qos) -> String {
        match folder(qos) {
            "" => format!("{}-pod", self.root),
            folder => format!("{}-{folder}-pod", self.root),
        }
    }

    pub(super) fn container(&self, pod: &str, id: &str) -> String {
        match self.driver {
            Driver::Cgroupfs => format!("{pod}/{id}"),
            // containerd's word; the runtime makes it.
            Driver::Systemd => format!("{pod}/cri-containerd-{id}.scope"),
        }
    }

    /// Whose cgroup in the folder of a class this is.
    pub(super) fn uid(&self, qos: Qos, name: &str) -> Option<String> {
        match self.driver {
            Driver::Cgroupfs => name.strip_prefix("pod").map(str::to_owned),
            Driver::Systemd => name.strip_prefix(&self.prefix(qos))?.strip_suffix(".slice").map(unescaped),
        }
    }

    /// containerd's and its shims' cgroup.
    pub(super) fn runtime(&self) -> String {
        match self.driver {
            Driver::Cgroupfs => self.service.clone(),
            Driver::Systemd => format!("{}/{}-containerd.scope", self.service_slice(), self.service),
        }
    }

    /// The unit that keeps the node running.
    pub(super) fn service_unit(&self) -> String {
        self.unit.clone()
    }

    /// What the node's own processes live in.
    pub(super) fn service_slice(&self) -> String {
        format!("{}.slice", self.service)
    }
}

fn folder(qos: Qos) -> &'static str {
    match qos {
        Qos::Guaranteed => "",
        Qos::Burstable => "burstable",
        Qos::BestEffort => "besteffort",
    }
}

/// The unit that has a cgroup.
pub(super) fn unit(cgroup: &str) -> &str {
    cgroup.rsplit_once('/').map_or(cgroup, |it| it.1)
}

/// Where the scope lies that a runtime is told of as `SLICE:PREFIX:NAME`, and its unit.
pub fn scope_of(cgroups_path: &str) -> Option<(String, String)> {
    let mut parts = cgroups_path.split(':');
    let (slice, prefix, name) = (parts.next()?.strip_suffix(".slice")?, parts.next()?, parts.next()?);
    // Each dash is a level.
    let ends = slice.match_indices('-').map(|it| it.0).chain([slice.len()]);
    let slices: String = ends.map(|end| format!("{}.slice/", &slice[..end])).collect();
    let scope = format!("{prefix}-{name}.scope");
    Some((format!("{slices}{scope}"), scope))
}

/// Dashes as in `escapeSystemdCgroupName`; what else a unit's name cannot have, and what a dash becomes, as systemd itself does.
fn escaped(uid: &str) -> String {
    let mut name = String::new();
    for byte in uid.bytes() {
        match byte {
            b'-' => name.push('_'),
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b':' => name.push(char::from(byte)),
            other => write!(name, "\\x{other:02x}").expect("writing to a string never fails"),
        }
    }
    name
}

fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let code = rest.strip_prefix("\\x").and_then(|it| it.get(..2)).and_then(|it| u8::from_str_radix(it, 16).ok());
        let n = match (first, code) {
            (_, Some(byte)) => {
                bytes.push(byte);
                4
            }
            ('_', None) => {
                bytes.push(b'-');
                1
            }
            (other, None) => {
                bytes.extend(other.to_string().bytes());
                other.len_utf8()
            }
        };
        rest = &rest[n..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_know_the_names() {
        let layout = Layout::new("/d", "/run/corten");
        let names = Names::of(Driver::Systemd, &layout);
        let pod = names.pod(Qos::Burstable, "0a-1b");
        assert_eq!(pod, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice");
        assert_eq!(names.container(&pod, "c0ffee"), format!("{pod}/cri-containerd-c0ffee.scope"));
        assert_eq!(names.pod(Qos::Guaranteed, "0a-1b"), "kubepods.slice/kubepods-pod0a_1b.slice");
        assert_eq!(names.runtime(), "corten.slice/corten-containerd.scope");
        assert_eq!(names.service_slice(), layout.service_slice());
        let told = "kubepods-burstable-pod0a_1b.slice:cri-containerd:c0ffee";
        assert_eq!(scope_of(told).map(|it| it.0), Some(names.container(&pod, "c0ffee")));
        assert_eq!(scope_of("/kubepods/podu/c0ffee"), None);
        let other = Names::of(Driver::Cgroupfs, &layout);
        assert_eq!(other.container(&other.pod(Qos::BestEffort, "u"), "c"), "kubepods/besteffort/podu/c");
        assert_eq!(other.runtime(), "kubepods-runtime");
    }

    #[test]
    fn no_node_lies_within_another() {
        let names = Names::of(Driver::Systemd, &Layout::new("/d", "/run/other"));
        let all = [names.root(), names.class(Qos::BestEffort), names.pod(Qos::Burstable, "u"), names.runtime()];
        for it in all {
            // systemd reads off the dashes what a slice is in.
            assert!(
                !unit(&it).starts_with("kubepods-") && !it.starts_with("kubepods.") && !it.starts_with("corten."),
                "{it}"
            );
        }
    }

    #[test]
    fn a_name_says_whose_it_is() {
        for driver in [Driver::Cgroupfs, Driver::Systemd] {
            let names = Names::of(driver, &Layout::new("/d", "/run/corten"));
            for qos in CLASSES {
                for uid in ["0a-1b", "with_both-of.them", "\\x5f_%-é", "f00"] {
                    assert_eq!(names.uid(qos, unit(&names.pod(qos, uid))).as_deref(), Some(uid), "{driver:?} {qos:?}");
                }
            }
            assert_eq!(names.uid(Qos::Guaranteed, unit(&names.class(Qos::Burstable))), None);
        }
    }
}
