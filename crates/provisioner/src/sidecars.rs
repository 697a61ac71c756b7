//! What sidecars do for a driver of others, which Corten then leaves to them: upstream's csi-provisioner, csi-attacher, csi-resizer,
//! csi-snapshotter and csi-external-health-monitor-controller, each its own part.
//!
//! No Pod says of which driver it is. It is a driver's where it mounts the folder of the driver's socket from the node; and another Pod
//! of the same namespace is where it runs the same image as such a Pod beside the sidecar: so drivers are deployed whose controller
//! has a socket of its own. Who may make Pods elsewhere has no say in what Corten does for a driver.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::Key;

use crate::words::{DriverFacts, DriverPod, PodContainer};

/// What a sidecar is called, in an image's name or a command's.
pub const PROVISIONER: [&str; 2] = ["csi-provisioner", "external-provisioner"];
const ATTACHER: [&str; 2] = ["csi-attacher", "external-attacher"];
const RESIZER: [&str; 2] = ["csi-resizer", "external-resizer"];
const SNAPSHOTTER: [&str; 2] = ["csi-snapshotter", "external-snapshotter"];
const HEALTH_MONITOR: [&str; 2] = ["csi-external-health-monitor-controller", "external-health-monitor-controller"];
/// Beside many drivers, and so no sign of one.
const HELPERS: [&str; 3] = ["registrar", "livenessprobe", "pause"];

/// A driver as it is to Corten: without what sidecars do. `pods`: `None` where they are not known yet.
pub(crate) fn without_theirs(driver: &DriverFacts, node: &str, pods: Option<&BTreeMap<Key, DriverPod>>) -> DriverFacts {
    let Some(socket) = &driver.socket else { return driver.clone() };
    let Some(pods) = pods else {
        // Nothing is begun that another may be doing.
        return DriverFacts {
            provisions: false,
            expands: false,
            expands_nothing: false,
            tells_capacity: false,
            attaches: false,
            attaches_nothing: false,
            tells_attached: false,
            snapshots: false,
            modifies: false,
            tells_conditions: false,
            ..driver.clone()
        };
    };
    let sidecars = sidecars(socket, node, pods);
    let has = |names: [&str; 2]| sidecars.iter().any(|it| names.iter().any(|name| it.contains(name)));
    let (provisions, expands, attaches) = (!has(PROVISIONER), !has(RESIZER), !has(ATTACHER));
    DriverFacts {
        provisions: driver.provisions && provisions,
        tells_capacity: driver.tells_capacity && provisions,
        expands: driver.expands && expands,
        expands_nothing: driver.expands_nothing && expands,
        modifies: driver.modifies && expands,
        attaches: driver.attaches && attaches,
        attaches_nothing: driver.attaches_nothing && attaches,
        tells_attached: driver.tells_attached && attaches,
        snapshots: driver.snapshots && !has(SNAPSHOTTER),
        tells_conditions: driver.tells_conditions && !has(HEALTH_MONITOR),
        ..driver.clone()
    }
}

/// The names of containers that run beside the driver with this socket.
fn sidecars(socket: &str, node: &str, pods: &BTreeMap<Key, DriverPod>) -> BTreeSet<String> {
    let folder = socket.rsplit_once('/').map_or("", |it| it.0);
    let alive = || pods.iter().filter(|it| !it.1.is_finished);
    let is_own = |pod: &DriverPod| pod.node == node && pod.folders.iter().any(|it| it.trim_end_matches('/') == folder);
    let images = |pod: &DriverPod| -> BTreeSet<String> {
        let own = pod.containers.iter().filter(|it| !is_helper(it));
        own.map(|it| it.image.clone()).filter(|it| !it.is_empty()).collect()
    };
    let mut own: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (key, pod) in alive().filter(|it| is_own(it.1)) {
        own.entry(&key.namespace).or_default().extend(images(pod));
    }
    let runs_driver = |(key, pod): &(&Key, &DriverPod)| {
        own.get(&*key.namespace).is_some_and(|own| is_own(pod) || !images(pod).is_disjoint(own))
    };
    alive().filter(runs_driver).flat_map(|it| it.1.containers.iter().flat_map(names)).collect()
}

/// The namespaces of Pods that may be drivers': a Pod without folders of the node's that is in none of them says nothing.
pub(crate) fn namespaces(pods: &BTreeMap<Key, DriverPod>) -> BTreeSet<String> {
    pods.iter().filter(|it| !it.1.folders.is_empty()).map(|it| it.0.namespace.to_string()).collect()
}

fn is_helper(container: &PodContainer) -> bool {
    let sidecars = [PROVISIONER, ATTACHER, RESIZER, SNAPSHOTTER, HEALTH_MONITOR];
    let is_named = |name: &String| HELPERS.iter().chain(sidecars.iter().flatten()).any(|it| name.contains(it));
    names(container).iter().any(is_named)
}

/// An image without its registry and tag, and a program without its folder.
fn names(container: &PodContainer) -> Vec<String> {
    let last = |it: &str| it.rsplit('/').next().unwrap_or_default().to_owned();
    let image = container.image.split('@').next().unwrap_or_default();
    let image = last(image).split(':').next().unwrap_or_default().to_owned();
    vec![image, last(&container.program)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: &str, folders: &[&str], containers: &[&str]) -> (Key, DriverPod) {
        let container = |it: &&str| {
            let (image, program) = it.split_once(' ').unwrap_or((it, ""));
            PodContainer { image: image.into(), program: program.into() }
        };
        let pod = DriverPod {
            node: node.into(),
            folders: folders.iter().map(|it| (*it).to_owned()).collect(),
            containers: containers.iter().map(container).collect(),
            is_finished: false,
        };
        (Key::new("kube-system", containers.join("-")), pod)
    }

    fn left(pods: &[(Key, DriverPod)]) -> String {
        let driver = DriverFacts {
            name: "d".into(),
            provisions: true,
            expands: true,
            attaches: true,
            snapshots: true,
            tells_attached: true,
            tells_conditions: true,
            socket: Some("/var/lib/kubelet/plugins/d/csi.sock".into()),
            ..DriverFacts::default()
        };
        let left = without_theirs(&driver, "n1", Some(&pods.iter().cloned().collect()));
        assert_eq!(left.attaches, left.tells_attached, "one sidecar does both");
        let parts = [("provision", left.provisions), ("expand", left.expands), ("attach", left.attaches)];
        let parts = parts
            .into_iter()
            .chain([("snapshot", left.snapshots), ("health", left.tells_conditions)])
            .filter(|it| it.1)
            .map(|it| it.0);
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_sidecar_keeps_its_own_part() {
        let folder = &["/var/lib/kubelet/plugins/d/"][..];
        let driver = pod("n1", folder, &["registry.k8s.io/sig-storage/csi-node-driver-registrar:v2", "vendor/d:v1"]);
        let all = "provision expand attach snapshot health";
        assert_eq!(left(&[]), all);
        assert_eq!(left(std::slice::from_ref(&driver)), all);
        // In the driver's own Pod.
        let sidecar = "registry.k8s.io:5000/sig-storage/csi-provisioner:v5@sha256:0";
        assert_eq!(left(&[pod("n1", folder, &["vendor/d:v1", sidecar])]), "expand attach snapshot health");
        assert_eq!(
            left(&[pod("n1", folder, &["vendor/all:v1 /bin/csi-attacher"])]),
            "provision expand snapshot health"
        );
        // In a Pod elsewhere that runs the driver, too.
        let controller = pod("n2", &[], &["vendor/d:v1", "mirror/external-resizer", "mirror/csi-snapshotter:v8"]);
        let controller_again = controller.clone();
        assert_eq!(left(&[driver.clone(), controller.clone()]), "provision attach health");
        let monitor = "registry.k8s.io/sig-storage/csi-external-health-monitor-controller:v0";
        assert_eq!(left(&[pod("n1", folder, &["vendor/d:v1", monitor])]), "provision expand attach snapshot");
        assert_eq!(left(&[controller]), all, "of another driver");
        // Who may make Pods in another namespace says nothing of the driver.
        let (Key { name, .. }, stranger) = controller_again;
        assert_eq!(left(&[driver.clone(), (Key::new("tenant", name), stranger)]), all);
        // What runs beside every driver is no sign of one.
        let registrar = "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2";
        let other = pod("n2", &[], &[registrar, "vendor/other", "mirror/csi-provisioner"]);
        assert_eq!(left(&[driver, other]), all);
        // Another node's folder of that name, and a Pod that has ended.
        assert_eq!(left(&[pod("n2", folder, &["csi-provisioner"])]), all);
        let (key, ended) = pod("n1", folder, &["csi-provisioner"]);
        assert_eq!(left(&[(key, DriverPod { is_finished: true, ..ended })]), all);
    }

    #[test]
    fn nothing_is_done_before_pods_are_known() {
        let socket = Some("/x/csi.sock".to_owned());
        let driver = DriverFacts { provisions: true, attaches: true, socket, ..DriverFacts::default() };
        let left = without_theirs(&driver, "n1", None);
        assert!(!left.provisions && !left.attaches);
        let built_in = DriverFacts { socket: None, ..driver };
        assert!(without_theirs(&built_in, "n1", None).provisions);
    }
}
