//! Does the node take a pod that was given to it? A pod that came past the scheduler, with `spec.nodeName` set by hand,
//! must not overcommit the node unseen: it fails, with upstream's reasons and words, before anything of it begins. For a
//! critical one others leave: see `critical.rs`.
//!
//! Decided once, when the pod is first seen: `status.startTime` is the mark of a pod that was taken.

use std::collections::BTreeMap;

use corten_api::core::v1::{Pod, Taint};

use crate::{
    Qos,
    node::{
        critical::{Shortage, is_critical},
        shutdown,
    },
    spec::{
        node_selection::{allows, tolerates, tolerates_taint},
        pod::{all_containers, is_static, is_system_critical, spec_of},
        requests::{UsedHostPorts, host_ports, requests},
        sandbox::{self, qos},
    },
};

const NODE_AFFINITY: &str = "NodeAffinity";
const TAINT_TOLERATION: &str = "TaintToleration";

const OUT_OF_PODS: &str = "OutOfpods";
/// What is counted, and the reason of a pod that asks for more of it than there is. As in `removeMissingExtendedResources`, extended
/// resources, which a device plugin would have made the node's, are not looked at.
const RESOURCES: [(&str, &str); 5] = [
    ("cpu", "OutOfcpu"),
    ("memory", "OutOfmemory"),
    ("ephemeral-storage", "OutOfephemeral-storage"),
    ("hugepages-2Mi", "OutOfhugepages-2Mi"),
    ("hugepages-1Gi", "OutOfhugepages-1Gi"),
];

pub(crate) const EVICTED: &str = "Evicted";

/// What admission of a pod needs to know of the node.
pub(crate) struct NodeAdmissionInfo {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) operating_system: String,
    /// CPU in thousandths, all else in units.
    pub(crate) allocatable: BTreeMap<String, i64>,
    pub(crate) pods_max: i64,
    pub(crate) allowed_sysctls: Vec<String>,
    pub(crate) has_app_armor: bool,
    /// The runtime keeps to `supplementalGroupsPolicy`.
    pub(crate) keeps_groups_policy: bool,
    /// The conditions of shortage that are the case.
    pub(crate) pressed: Vec<&'static str>,
    pub(crate) is_shutting_down: bool,
}

/// Why a pod is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Rejection {
    /// What nobody has foreseen, as `GetPodAdmitResult` tells it.
    pub(crate) fn unexpected(why: &str) -> Self {
        let message = format!("Allocate failed due to {why}, which is unexpected");
        Self { reason: "UnexpectedAdmissionError", message }
    }

    pub(crate) fn is_of_resources(&self) -> bool {
        self.reason == OUT_OF_PODS || RESOURCES.iter().any(|it| it.1 == self.reason)
    }

    pub(crate) fn is_of_the_node_object(&self) -> bool {
        [NODE_AFFINITY, TAINT_TOLERATION].contains(&self.reason)
    }
}

/// Of several reasons the first is told (`predicateAdmitHandler.Admit`).
pub(crate) fn verdict(pod: &Pod, info: &NodeAdmissionInfo, taken: &[&Pod]) -> Result<(), Rejection> {
    check_pressure(pod, info)?;
    check_sysctls(pod, &info.allowed_sysctls)?;
    check_security(pod, info)?;
    let room = check_room(pod, info, taken);
    // For a critical pod room is made, if nothing else is in its way.
    if !is_critical(pod) {
        room.clone()?;
    }
    check_place(pod, info, taken)?;
    room
}

fn check_place(pod: &Pod, info: &NodeAdmissionInfo, taken: &[&Pod]) -> Result<(), Rejection> {
    if !allows(pod, &info.name, &info.labels) {
        return Err(predicate(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector"));
    }
    let given = UsedHostPorts::of(taken.iter().flat_map(|it| host_ports(it)));
    if host_ports(pod).any(|wanted| given.collides(wanted)) {
        return Err(predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
    }
    if !tolerates(pod, &info.taints) {
        return Err(predicate(TAINT_TOLERATION, "node(s) had untolerated taint(s)"));
    }
    if spec_of(pod).os.as_ref().is_some_and(|it| it.name != info.operating_system) {
        let message = "Failed to admit pod as the OS field doesn't match node OS".into();
        return Err(Rejection { reason: "PodOSNotSupported", message });
    }
    Ok(())
}

/// As the eviction manager's `Admit`: while memory is short, nobody who asks for none of it; while anything else is, nobody
/// the system can be without.
fn check_pressure(pod: &Pod, info: &NodeAdmissionInfo) -> Result<(), Rejection> {
    if info.is_shutting_down {
        return Err(Rejection { reason: shutdown::NOT_ADMITTED, message: shutdown::NOT_ADMITTED_MESSAGE.into() });
    }
    if info.pressed.is_empty() || is_static(pod) || is_system_critical(pod) {
        return Ok(());
    }
    if info.pressed == ["MemoryPressure"] {
        let key = "node.kubernetes.io/memory-pressure".to_owned();
        let taint = Taint { key, effect: "NoSchedule".into(), ..Taint::default() };
        if qos(pod) != Qos::BestEffort || tolerates_taint(pod, &taint) {
            return Ok(());
        }
    }
    let message = format!("The node had condition: [{}]. ", info.pressed.join(" "));
    Err(Rejection { reason: EVICTED, message })
}

fn predicate(name: &'static str, why: &str) -> Rejection {
    Rejection { reason: name, message: format!("Predicate {name} failed: {why}") }
}

pub(crate) fn check_room(pod: &Pod, info: &NodeAdmissionInfo, taken: &[&Pod]) -> Result<(), Rejection> {
    match lacking(pod, info, taken).into_iter().next() {
        None => Ok(()),
        Some(Lacking { name, reason, requested, used, capacity }) => {
            let numbers = format!("requested: {requested}, used: {used}, capacity: {capacity}");
            Err(Rejection { reason, message: format!("Node didn't have enough resource: {name}, {numbers}") })
        }
    }
}

/// How much must be free for the pod that is not (`GetInsufficientAmount`).
pub(crate) fn shortage(pod: &Pod, info: &NodeAdmissionInfo, taken: &[&Pod]) -> Shortage {
    let short = |it: Lacking| (it.name, it.requested.saturating_sub(it.capacity.saturating_sub(it.used)));
    lacking(pod, info, taken).into_iter().map(short).collect()
}

struct Lacking {
    name: &'static str,
    reason: &'static str,
    requested: i64,
    used: i64,
    capacity: i64,
}

fn lacking(pod: &Pod, info: &NodeAdmissionInfo, taken: &[&Pod]) -> Vec<Lacking> {
    let mut all = Vec::new();
    let n_pods = i64::try_from(taken.len()).unwrap_or(i64::MAX);
    if n_pods >= info.pods_max {
        all.push(Lacking { name: "pods", reason: OUT_OF_PODS, requested: 1, used: n_pods, capacity: info.pods_max });
    }
    let wanted = requests(pod);
    let used: Vec<_> = taken.iter().map(|it| requests(it)).collect();
    for (name, reason) in RESOURCES {
        let requested = wanted.get(name).copied().unwrap_or(0);
        let used = used.iter().filter_map(|it| it.get(name)).fold(0_i64, |sum, it| sum.saturating_add(*it));
        let capacity = info.allocatable.get(name).copied().unwrap_or(0);
        if requested > 0 && requested > capacity.saturating_sub(used) {
            all.push(Lacking { name, reason, requested, used, capacity });
        }
    }
    all
}

/// The kernel parameters a pod may set without harm to others, each with what keeps it the pod's own.
const SAFE_SYSCTLS: [(&str, Scope); 12] = [
    ("kernel.shm_rmid_forced", Scope::Ipc),
    ("net.ipv4.ip_local_port_range", Scope::Net),
    ("net.ipv4.tcp_syncookies", Scope::Net),
    ("net.ipv4.ping_group_range", Scope::Net),
    ("net.ipv4.ip_unprivileged_port_start", Scope::Net),
    ("net.ipv4.ip_local_reserved_ports", Scope::Net),
    ("net.ipv4.tcp_keepalive_time", Scope::Net),
    ("net.ipv4.tcp_fin_timeout", Scope::Net),
    ("net.ipv4.tcp_keepalive_intvl", Scope::Net),
    ("net.ipv4.tcp_keepalive_probes", Scope::Net),
    ("net.ipv4.tcp_rmem", Scope::Net),
    ("net.ipv4.tcp_wmem", Scope::Net),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Ipc,
    Net,
}

/// What only some runtimes and kernels have. A pod that needs it fails where they have not.
fn check_security(pod: &Pod, info: &NodeAdmissionInfo) -> Result<(), Rejection> {
    if !info.keeps_groups_policy && sandbox::keeps_groups_strictly(pod) {
        let message = "SupplementalGroupsPolicy=Strict is not supported in this node".into();
        return Err(Rejection { reason: "SupplementalGroupsPolicyNotSupported", message });
    }
    if !info.has_app_armor && wants_app_armor(pod) {
        let message = "Cannot enforce AppArmor: AppArmor is not enabled on the host".into();
        return Err(Rejection { reason: "AppArmor", message });
    }
    Ok(())
}

fn wants_app_armor(pod: &Pod) -> bool {
    let contexts = all_containers(pod).filter_map(|it| it.security_context.as_ref()?.app_armor_profile.as_ref());
    let of_pod = spec_of(pod).security_context.as_ref().and_then(|it| it.app_armor_profile.as_ref());
    // The old form of the field: what it asks for is the same.
    let old = pod.metadata.annotations.iter().flatten();
    let mut old = old.filter(|(name, _)| name.starts_with("container.apparmor.security.beta.kubernetes.io/"));
    contexts.chain(of_pod).any(|it| it.type_ != "Unconfined") || old.any(|(_, profile)| profile != "unconfined")
}

fn check_sysctls(pod: &Pod, allowed: &[String]) -> Result<(), Rejection> {
    let spec = spec_of(pod);
    let sysctls = spec.security_context.as_ref().and_then(|it| it.sysctls.as_ref());
    for sysctl in sysctls.into_iter().flatten() {
        // Both separators mean the same.
        let name = sysctl.name.replace('/', ".");
        let why = match SAFE_SYSCTLS.iter().find(|it| it.0 == name).map(|it| it.1) {
            None if !allowed.iter().any(|it| is_allowed_by(it, &name)) => "not allowlisted",
            None if name.starts_with("net.") && spec.host_network == Some(true) => "not allowed with host net enabled",
            None if is_of_ipc(&name) && spec.host_ipc == Some(true) => "not allowed with host ipc enabled",
            None => continue,
            Some(Scope::Net) if spec.host_network == Some(true) => "not allowed with host net enabled",
            Some(Scope::Ipc) if spec.host_ipc == Some(true) => "not allowed with host ipc enabled",
            Some(_) => continue,
        };
        let message = format!("forbidden sysctl: {name:?} {why}");
        return Err(Rejection { reason: "SysctlForbidden", message });
    }
    Ok(())
}

fn is_allowed_by(pattern: &str, name: &str) -> bool {
    let pattern = pattern.replace('/', ".");
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Which parameters belong to a namespace of IPC: the kubelet's list (`pkg/kubelet/sysctl`).
fn is_of_ipc(name: &str) -> bool {
    ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|it| name.starts_with(it)) || name == "kernel.sem"
}
