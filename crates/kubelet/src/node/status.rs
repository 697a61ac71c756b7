//! This node at the API: its Node, registered and kept up to date, and its Lease, the sign of life.

mod conditions;
mod metadata;

use std::{collections::BTreeSet, time::Duration};

use corten_api::{
    core::v1::{Node, NodeCondition},
    declared_features::{GUARANTEED_CPU_RESIZE, POD_LEVEL_RESIZE, RESTART_ALL, WEB_SOCKETS},
};
use corten_meta::{ObjectReference, Quantity, Time};
use corten_reconcile::EventType;
use serde_json::{Map, Value, json};

use conditions::{OWN, State, conditions, standing, transitions};
use metadata::{annotations, labels, metadata_patch, pod_networks};

pub(crate) use conditions::network_problem;
pub use metadata::LACKS;

use crate::{
    ApiEffect, ApiFailure, Config, Effect, NodeFacts, RuntimeHandler, Signal,
    backoff::pause,
    node::{admission::NodeAdmissionInfo, devices::DeviceCounts},
    spec::requests,
};

const HEARTBEAT: Duration = Duration::from_secs(300);
const LEASE_RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;

/// What is known of the Node and of the machine it stands for.
#[derive(Debug, Default)]
pub(crate) struct NodeMachine {
    /// `None`: the API has not said yet.
    node: Option<Option<Box<Node>>>,
    facts: Option<Box<NodeFacts>>,
    write_in_flight: bool,
    failures: u32,
    retry_at: Option<Time>,
    lease_in_flight: bool,
    lease_at: Option<Time>,
    announced: bool,
    /// Since this start the Node has said once what is the case.
    is_told: bool,
    /// What was last sent, and the version it made: as with a pod's status.
    sent: Value,
    made: u64,
    /// The conditions of shortage that are the case.
    pressed: Vec<&'static str>,
    is_shutting_down: bool,
    volumes_in_use: BTreeSet<String>,
    devices: DeviceCounts,
    /// Until when the Node is known to be as it should, if nothing is heard: this is asked at each step.
    right_until: Option<Time>,
}

impl NodeMachine {
    pub(crate) fn facts(&self) -> Option<&NodeFacts> {
        self.facts.as_deref()
    }

    pub(crate) fn uid(&self) -> Option<&str> {
        self.node.as_ref()?.as_ref()?.metadata.uid.as_deref()
    }

    /// What the conditions are to say.
    pub(crate) fn set_state(&mut self, pressed: Vec<&'static str>, is_shutting_down: bool) {
        if (&self.pressed, self.is_shutting_down) != (&pressed, is_shutting_down) {
            (self.pressed, self.is_shutting_down) = (pressed, is_shutting_down);
            self.right_until = None;
        }
    }

    /// What pods here have, or are about to have, of volumes that are attached.
    pub(crate) fn set_volumes_in_use(&mut self, volumes: BTreeSet<String>) {
        if self.volumes_in_use != volumes {
            self.volumes_in_use = volumes;
            self.right_until = None;
        }
    }

    /// How many devices plugins have, and how many of them can be given.
    pub(crate) fn set_devices(&mut self, devices: DeviceCounts) {
        if self.devices != devices {
            self.devices = devices;
            self.right_until = None;
        }
    }

    fn state(&self) -> State<'_> {
        let (pressed, volumes_in_use) = (&*self.pressed, &self.volumes_in_use);
        State { pressed, is_shutting_down: self.is_shutting_down, volumes_in_use, devices: &self.devices }
    }

    pub(crate) fn set_facts(&mut self, facts: Box<NodeFacts>) {
        self.facts = Some(facts);
        self.right_until = None;
    }

    pub(crate) fn set_node(&mut self, node: Option<Box<Node>>) {
        if version(self.node.as_ref().and_then(|it| it.as_deref())) <= version(node.as_deref()) || node.is_none() {
            self.node = Some(node);
            self.right_until = None;
        }
    }

    pub(crate) fn known(&self) -> Option<&Node> {
        self.node.as_ref()?.as_deref()
    }

    /// There is a Node at the API, as far as is known here.
    pub(crate) fn is_registered(&self) -> bool {
        matches!(self.node, Some(Some(_)))
    }

    pub(crate) fn written(&mut self, result: Result<Box<Node>, ApiFailure>, now: Time) {
        self.write_in_flight = false;
        match result {
            Ok(node) => {
                (self.failures, self.retry_at) = (0, None);
                self.made = version(Some(&node));
                self.set_node(Some(node));
            }
            Err(_) => {
                self.failures += 1;
                self.retry_at = Some(now.after(pause(self.failures, 30)));
            }
        }
    }

    pub(crate) fn lease_renewed(&mut self, result: &Result<(), ApiFailure>, now: Time) {
        self.lease_in_flight = false;
        let wait = if result.is_ok() { LEASE_RENEWAL } else { Duration::from_secs(2) };
        self.lease_at = Some(now.after(wait));
    }

    /// What the node is to a pod that wants in; `None` while that is not known. A pod that selects nodes waits for the
    /// Node, whose labels may be others' work.
    pub(crate) fn admission_info(&self, config: &Config, is_selective: bool) -> Option<NodeAdmissionInfo> {
        let facts = self.facts.as_ref()?;
        if is_selective && self.node.is_none() {
            return None;
        }
        let node = self.node.as_ref().and_then(Option::as_ref);
        let allocatable = allocatable(config, facts);
        let amount = |(name, text): (&String, &Value)| {
            let quantity: Quantity = text.as_str()?.parse().ok()?;
            Some((name.clone(), requests::amount(name, quantity)))
        };
        Some(NodeAdmissionInfo {
            name: config.node_name.clone(),
            labels: node.and_then(|it| it.metadata.labels.clone()).unwrap_or_else(|| labels(config, facts)),
            taints: node.and_then(|it| it.spec.as_ref()?.taints.clone()).unwrap_or_default(),
            operating_system: facts.operating_system.clone(),
            allocatable: allocatable.as_object().into_iter().flatten().filter_map(amount).collect(),
            pods_max: config.max_pods,
            allowed_sysctls: config.allowed_unsafe_sysctls.clone(),
            has_app_armor: facts.app_armor,
            keeps_groups_policy: facts.keeps_groups_policy,
            pressed: self.pressed.clone(),
            is_shutting_down: self.is_shutting_down,
        })
    }

    /// Registers, corrects, renews, as far as nothing is under way; and says when to look again.
    pub(crate) fn look(&mut self, config: &Config, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        let (Some(node), Some(facts)) = (&self.node, &self.facts) else { return None };
        let Some(node) = node else {
            return self.register(config, now, effects);
        };
        if !self.announced {
            self.announced = true;
            effects.push(event(config, "Starting", "Starting kubelet.".into()));
            effects.extend(standing(config, facts, self.state(), node, now));
        }
        let (corrected_at, renewed_at) = (self.correct(config, now, effects), self.renew(config, now, effects));
        [corrected_at, renewed_at].into_iter().flatten().min()
    }

    /// Writes what the Node says wrongly; and when to look again.
    fn correct(&mut self, config: &Config, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        let (node, facts) = (self.node.as_ref()?.as_ref()?, self.facts.as_ref()?);
        if self.write_in_flight {
            return None;
        }
        if let Some(later) = self.retry_at.max(self.right_until).filter(|it| *it > now) {
            return Some(later);
        }
        let (changes, heartbeat_at) = changes(config, facts, self.state(), node, now);
        let unheard = |patch: &Value| self.made == version(Some(node)) && self.sent == *patch;
        if let Some((status, patch, events)) = changes.filter(|it| !unheard(&it.1)) {
            self.sent = patch.clone();
            self.write_in_flight = true;
            effects.push(Effect::Api(ApiEffect::PatchNode { name: config.node_name.clone(), status, patch }));
            effects.extend(events);
        } else {
            self.right_until = Some(heartbeat_at);
            self.is_told = true;
        }
        Some(heartbeat_at)
    }

    /// Renews the Lease, the first time once the Node says what has been the case since this start: who waits for a sign of life
    /// of it then reads nothing of before. Where the Node cannot be written that is waited for no longer.
    fn renew(&mut self, config: &Config, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        let node = self.node.as_ref()?.as_ref()?;
        if self.lease_in_flight || !(self.is_told || self.failures > 0) {
            return None;
        }
        if let Some(later) = self.lease_at.filter(|it| *it > now) {
            return Some(later);
        }
        self.lease_in_flight = true;
        effects.push(lease(config, node, now));
        None
    }

    fn register(&mut self, config: &Config, now: Time, effects: &mut Vec<Effect>) -> Option<Time> {
        let facts = self.facts.as_ref()?;
        if self.write_in_flight {
            return None;
        }
        if let Some(retry_at) = self.retry_at.filter(|it| *it > now) {
            return Some(retry_at);
        }
        self.write_in_flight = true;
        let node = json!({
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {
                "name": config.node_name,
                "labels": labels(config, facts),
                "annotations": annotations(facts),
            },
            "spec": pod_networks(config),
            "status": status(config, facts, self.state(), &[], now),
        });
        effects.push(Effect::Api(ApiEffect::CreateNode { node }));
        None
    }
}

fn version(node: Option<&Node>) -> u64 {
    node.and_then(|it| it.metadata.resource_version.as_ref()?.parse().ok()).unwrap_or(0)
}

/// To the status or not, what, and whom to tell.
type Change = (bool, Value, Vec<Effect>);

/// The first thing of the Node that is not as it should be; and when its status is due in any case.
fn changes(config: &Config, facts: &NodeFacts, state: State<'_>, node: &Node, now: Time) -> (Option<Change>, Time) {
    let old = node.status.as_ref().and_then(|it| it.conditions.clone()).unwrap_or_default();
    let heartbeats = old.iter().filter(|it| OWN.contains(&it.type_.as_str()));
    let last = heartbeats.filter_map(|it| it.last_heartbeat_time.as_ref().map(|it| Time(it.0))).min();
    let heartbeat_at = last.map_or(now, |it| it.after(HEARTBEAT));
    if let Some(patch) = metadata_patch(config, facts, node) {
        return (Some((false, patch, Vec::new())), heartbeat_at);
    }
    let current = node.status.as_ref().and_then(|it| serde_json::to_value(it).ok()).unwrap_or_else(|| json!({}));
    let mut wanted = status(config, facts, state, &old, now);
    // The list goes with its last entry.
    if state.volumes_in_use.is_empty() && current.get("volumesInUse").is_some_and(|it| *it != json!([])) {
        wanted["volumesInUse"] = Value::Null;
    }
    let patch: Map<String, Value> = wanted
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| {
            let is_same = match name.as_str() {
                "conditions" => {
                    without_heartbeats(value) == without_heartbeats(&current["conditions"]) && heartbeat_at > now
                }
                name => current.get(name) == Some(*value),
            };
            !is_same
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if patch.is_empty() {
        return (None, heartbeat_at);
    }
    let events = transitions(config, &old, patch.get("conditions"));
    (Some((true, json!({"status": patch}), events)), now.after(HEARTBEAT))
}

fn without_heartbeats(conditions: &Value) -> Vec<Value> {
    let strip = |it: &Value| {
        let mut it = it.clone();
        if let Some(it) = it.as_object_mut() {
            it.remove("lastHeartbeatTime");
        }
        it
    };
    conditions.as_array().into_iter().flatten().map(strip).collect()
}

fn status(config: &Config, facts: &NodeFacts, state: State<'_>, old: &[NodeCondition], now: Time) -> Value {
    let disk = facts.ephemeral_storage_bytes;
    let mut capacity = json!({
        "cpu": facts.cpus.to_string(),
        "memory": format!("{}Ki", facts.memory_bytes >> 10),
        "ephemeral-storage": format!("{}Ki", disk >> 10),
        "pods": config.max_pods.to_string(),
    });
    for (size, bytes) in &facts.hugepages {
        capacity[format!("hugepages-{size}")] = json!(whole_ki(*bytes));
    }
    let mut allocatable = allocatable(config, facts);
    for (resource, (all, healthy)) in state.devices {
        capacity[resource] = json!(all.to_string());
        allocatable[resource] = json!(healthy.to_string());
    }
    let mut addresses: Vec<Value> =
        config.node_ips.iter().map(|it| json!({"type": "InternalIP", "address": it})).collect();
    addresses.push(json!({"type": "Hostname", "address": config.hostname}));
    let images: Vec<Value> =
        facts.images.iter().take(50).map(|it| json!({"names": it.names, "sizeBytes": it.size_bytes})).collect();
    let mut status = json!({
        "addresses": addresses,
        "allocatable": allocatable,
        "capacity": capacity,
        "conditions": conditions(facts, state, old, now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": config.port}},
        "nodeInfo": {
            "architecture": facts.architecture,
            "bootID": facts.boot_id,
            "containerRuntimeVersion": facts.container_runtime_version,
            "kernelVersion": facts.kernel_version,
            "kubeProxyVersion": "",
            "kubeletVersion": config.version,
            "machineID": facts.machine_id,
            "operatingSystem": facts.operating_system,
            "osImage": facts.os_image,
            "systemUUID": facts.system_uuid,
        },
    });
    if facts.swap_bytes > 0 {
        status["nodeInfo"]["swap"] = json!({"capacity": facts.swap_bytes});
    }
    if !images.is_empty() {
        status["images"] = json!(images);
    }
    if !facts.runtime_handlers.is_empty() {
        status["runtimeHandlers"] = facts.runtime_handlers.iter().map(runtime_handler).collect();
    }
    if !state.volumes_in_use.is_empty() {
        status["volumesInUse"] = json!(state.volumes_in_use);
    }
    status["declaredFeatures"] = json!(declared_features(config));
    status["features"] = json!({"supplementalGroupsPolicy": facts.keeps_groups_policy});
    status
}

/// In the order of names. A feature that is off here, or that the node lacks as it is set to, is not among them.
fn declared_features(config: &Config) -> Vec<&'static str> {
    let managers = &config.managers;
    // Upstream asks for the CPU manager alone; here the memory manager, too, has Guaranteed Pods keep what they were given.
    let can_resize = !managers.cpu.is_static && !managers.memory.is_static;
    let all = [(WEB_SOCKETS, true), (GUARANTEED_CPU_RESIZE, can_resize), (POD_LEVEL_RESIZE, true), (RESTART_ALL, true)];
    all.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}

fn runtime_handler(it: &RuntimeHandler) -> Value {
    let features = json!({
        "recursiveReadOnlyMounts": it.recursive_read_only_mounts,
        "userNamespaces": it.user_namespaces,
    });
    // The empty name is `omitempty` in `NodeRuntimeHandler`.
    if it.name.is_empty() { json!({"features": features}) } else { json!({"name": it.name, "features": features}) }
}

/// What pods may have of the node: all there is, but for what is kept for the system, and for what must be left.
fn allocatable(config: &Config, facts: &NodeFacts) -> Value {
    let floor = |signal: Signal, capacity: i64| {
        let thresholds = config.eviction.thresholds.iter().filter(|it| it.signal == signal && it.is_hard());
        thresholds.map(|it| it.limit.of(capacity).value()).max().unwrap_or(0)
    };
    let (memory, disk) = (facts.memory_bytes, facts.ephemeral_storage_bytes);
    let memory =
        memory.saturating_sub(config.reserved_memory_bytes).saturating_sub(floor(Signal::MemoryAvailable, memory));
    // What is set aside as huge pages is nothing else any more (`nodestatus.MachineInfo`).
    let memory = facts.hugepages.values().fold(memory, |left, it| left.saturating_sub(*it));
    let disk = disk.saturating_sub(config.reserved_storage_bytes).saturating_sub(floor(Signal::NodeFsAvailable, disk));
    let mut allocatable = json!({
        "cpu": Quantity::millis(facts.cpus.saturating_mul(1000).saturating_sub(config.reserved_cpu_millis)).to_string(),
        "memory": format!("{}Ki", memory.max(0) >> 10),
        "ephemeral-storage": disk.max(0).to_string(),
        "pods": config.max_pods.to_string(),
    });
    for (size, bytes) in &facts.hugepages {
        allocatable[format!("hugepages-{size}")] = json!(whole_ki(*bytes));
    }
    allocatable
}

fn whole_ki(bytes: i64) -> String {
    Quantity::bytes(bytes >> 10 << 10).to_string()
}

fn event(config: &Config, reason: &'static str, message: String) -> Effect {
    event_of(config, EventType::Normal, reason, message)
}

/// An event about the node.
pub(crate) fn event_of(config: &Config, event_type: EventType, reason: &'static str, message: String) -> Effect {
    let about = ObjectReference {
        kind: "Node".into(),
        name: config.node_name.clone(),
        // As in the kubelet's `nodeRef`: events of nodes carry the name for the uid.
        uid: config.node_name.clone(),
        api_version: "v1".into(),
        ..ObjectReference::default()
    };
    Effect::Api(ApiEffect::Event { about, event_type, reason, message })
}

fn lease(config: &Config, node: &Node, now: Time) -> Effect {
    let spec = json!({
        "holderIdentity": config.node_name,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": now.micro(),
    });
    let create = json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": config.node_name,
            "namespace": "kube-node-lease",
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": config.node_name, "uid": node.metadata.uid,
            }],
        },
        "spec": spec,
    });
    Effect::Api(ApiEffect::RenewLease { patch: json!({"spec": spec}), create })
}
