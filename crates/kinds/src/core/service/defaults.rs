//! What a Service's author may leave out.

use corten_validation::fill::{each, fill, fill_pointer, inner, made, text};
use serde_json::{Value, json};

use super::needs;

/// Three hours: how long a client stays with its Pod.
const STICKY_SECONDS: i64 = 3 * 60 * 60;

pub(super) fn default(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
    fill(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.shift_remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            if let Some(client) = made(spec, "sessionAffinityConfig").and_then(|it| made(it, "clientIP")) {
                fill(client, "timeoutSeconds", STICKY_SECONDS);
            }
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        fill(port, "protocol", "TCP");
        if matches!(port.get("targetPort"), None | Some(Value::Null))
            || port["targetPort"] == 0
            || port["targetPort"] == ""
        {
            let number = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".into(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if matches!(&*kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill_pointer(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    if needs::external_traffic_policy(object)
        && let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec"))
    {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    ip_modes(object, &kind);
}

fn ip_modes(object: &mut Value, kind: &str) {
    let ingress = object.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for point in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if kind == "LoadBalancer" && !text(point, "ip").is_empty() {
            fill(point, "ipMode", json!("VIP"));
        }
    }
}
