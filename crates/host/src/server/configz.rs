//! `GET /configz`: what this kubelet is told, in upstream's words. Only what is in effect here is said.

use std::collections::BTreeMap;

use corten_kubelet::{ManagersConfig, TopologyConfig, TopologyPolicy, TopologyScope};
use http::Response;
use serde_json::{Map, Value, json};

use super::{Body, PlainTextError, json_body, routes::Call};
use crate::logs::RotateLimits;

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let hands = call.server.hands();
    let rotation = RotateLimits::default();
    let mut config = json!({
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "enableServer": true,
        "port": call.server.port(),
        "authentication": {
            "x509": {},
            "webhook": { "enabled": true, "cacheTTL": "2m0s" },
            "anonymous": { "enabled": false },
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": { "cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s" },
        },
        "serverTLSBootstrap": true,
        "rotateCertificates": false,
        "streamingConnectionIdleTimeout": "4h0m0s",
        "cgroupDriver": hands.cgroups().driver(),
        "cgroupsPerQOS": true,
        "singleProcessOOMKill": !hands.kills_together(),
        "containerLogMaxSize": format!("{}Mi", rotation.bytes_max >> 20),
        "containerLogMaxFiles": rotation.files_max,
        "enableDebuggingHandlers": true,
        "enableSystemLogHandler": false,
        "enableSystemLogQuery": false,
        "enableProfilingHandler": false,
        "enableDebugFlagsHandler": false,
    });
    if let Some(config) = config.as_object_mut() {
        config.extend(managers(call.server.managers()));
    }
    Ok(json_body(&json!({ "kubeletconfig": config })))
}

fn managers(managers: &ManagersConfig) -> Map<String, Value> {
    let ManagersConfig { topology, cpu, memory, .. } = managers;
    let mut told = Map::new();
    let mut tell = |name: &str, value: Value| told.insert(name.to_owned(), value);
    tell("cpuManagerPolicy", json!(if cpu.is_static { "static" } else { "none" }));
    let options = options(&[
        ("full-pcpus-only", cpu.full_cores_only),
        ("strict-cpu-reservation", cpu.strict_reservation),
        ("prefer-align-cpus-by-uncorecache", cpu.prefers_uncore_cache),
        ("distribute-cpus-across-numa", cpu.spreads),
    ]);
    if !options.is_empty() {
        tell("cpuManagerPolicyOptions", json!(options));
    }
    if !cpu.reserved.is_empty() {
        tell("reservedSystemCPUs", json!(cpu.reserved.to_string()));
    }
    tell("memoryManagerPolicy", json!(if memory.is_static { "Static" } else { "None" }));
    if !memory.reserved.is_empty() {
        let limits = |it: &BTreeMap<String, u64>| -> BTreeMap<String, String> {
            it.iter().map(|(kind, bytes)| (kind.clone(), bytes.to_string())).collect()
        };
        let nodes = memory.reserved.iter().map(|(node, it)| json!({ "numaNode": node, "limits": limits(it) }));
        tell("reservedMemory", nodes.collect());
    }
    let policy = match topology.policy {
        TopologyPolicy::None => "none",
        TopologyPolicy::BestEffort => "best-effort",
        TopologyPolicy::Restricted => "restricted",
        TopologyPolicy::SingleNumaNode => "single-numa-node",
    };
    tell("topologyManagerPolicy", json!(policy));
    let scope = if topology.scope == TopologyScope::Pod { "pod" } else { "container" };
    tell("topologyManagerScope", json!(scope));
    let mut options = self::options(&[("prefer-closest-numa-nodes", topology.prefers_closest_numa_nodes)]);
    if topology.numa_nodes_max != TopologyConfig::default().numa_nodes_max {
        options.insert("max-allowable-numa-nodes", topology.numa_nodes_max.to_string());
    }
    if !options.is_empty() {
        tell("topologyManagerPolicyOptions", json!(options));
    }
    told
}

/// Those that are on.
fn options(all: &[(&'static str, bool)]) -> BTreeMap<&'static str, String> {
    all.iter().filter(|it| it.1).map(|it| (it.0, "true".to_owned())).collect()
}
