//! The rules of a Service.

use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::Cursor;
use corten_validation::{
    labels, pod_spec,
    rules::{self, address},
};

use super::{cluster_ips, needs};

const KUBELET_PORT: i64 = 10250;
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
/// A day.
const STICKY_SECONDS_MAX: i64 = 86_400;

/// Of the Service that leads to the API servers, which say themselves where they are: nodes believe its endpoints.
pub(super) fn of_the_api(service: Cursor<'_>) {
    let (metadata, spec) = (service.at("metadata"), service.at("spec"));
    if metadata.at("namespace").str() != "default" || metadata.at("name").str() != "kubernetes" {
        return;
    }
    if !spec.at("selector").is_empty() {
        spec.at("selector").forbidden("may not be set for the Service of the API servers");
    }
    if spec.at("type").str() == "ExternalName" {
        spec.at("type").forbidden("may not be `ExternalName` for the Service of the API servers");
    }
}

pub(super) fn service(service: Cursor<'_>) {
    let spec = service.at("spec");
    topology(service.at("metadata").at("annotations"));
    let kind = spec.at("type").str();
    if spec.at("ports").is_empty() && !needs::is_headless(service.value()) && kind != "ExternalName" {
        spec.at("ports").missing("");
    }
    by_type(service, spec);
    ports(spec);
    if spec.at("selector").exists() {
        labels::labels(spec.at("selector"));
    }
    affinity(spec);
    cluster_ips::validate(service);
    for ip in spec.list("externalIPs") {
        if address::address(ip) {
            address::not_special(ip);
        }
    }
    rules::required_one_of(spec.at("type"), &TYPES);
    unique_ports(spec, kind);
    load_balancer(spec, kind);
    traffic(service, spec);
}

fn topology(annotations: Cursor<'_>) {
    let (mode, hints) = (
        annotations.key("service.kubernetes.io/topology-mode"),
        annotations.key("service.kubernetes.io/topology-aware-hints"),
    );
    if mode.exists() && hints.exists() && mode.str() != hints.str() {
        mode.invalid("must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified");
    }
}

fn by_type(service: Cursor<'_>, spec: Cursor<'_>) {
    let is_headless = needs::is_headless(service.value());
    let first = || spec.list("clusterIPs").next().unwrap_or(spec.at("clusterIPs"));
    match spec.at("type").str() {
        "LoadBalancer" => {
            for port in spec.list("ports").filter(|it| it.at("port").int() == KUBELET_PORT) {
                let detail = format!("may not expose port {KUBELET_PORT} externally since it is used by kubelet");
                port.report(Violation::invalid(port.path(), KUBELET_PORT, &detail));
            }
            if is_headless {
                first().invalid("may not be set to 'None' for LoadBalancer services");
            }
        }
        "NodePort" if is_headless => first().invalid("may not be set to 'None' for NodePort services"),
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|it| spec.at(it)) {
                if !field.is_empty() {
                    field.forbidden("may not be set for ExternalName services");
                }
            }
            let name = spec.at("externalName");
            let bare = name.str().strip_suffix('.').unwrap_or(name.str());
            if bare.is_empty() {
                name.missing("");
            } else {
                for reason in field::dns1123_subdomain(bare) {
                    name.invalid_as(bare, &reason);
                }
            }
        }
        _ => {}
    }
}

fn ports(spec: Cursor<'_>) {
    let many = spec.at("ports").items().len() > 1;
    let mut names = BTreeSet::new();
    for port in spec.list("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            name.follows(field::dns1123_label);
            if !names.insert(name.str()) {
                name.duplicate();
            }
        } else if many {
            name.missing("");
        }
        port.at("port").int_between(1, 65535);
        rules::required_one_of(port.at("protocol"), &["SCTP", "TCP", "UDP"]);
        pod_spec::port_number_or_name(port.at("targetPort"));
        if port.at("appProtocol").exists() {
            port.at("appProtocol").follows(field::qualified_name);
        }
    }
}

fn affinity(spec: Cursor<'_>) {
    let (kind, config) = (spec.at("sessionAffinity"), spec.at("sessionAffinityConfig"));
    rules::required_one_of(kind, &["ClientIP", "None"]);
    if kind.str() == "None" && config.exists() {
        config.forbidden("must not be set when session affinity is None");
    }
    if kind.str() != "ClientIP" {
        return;
    }
    let seconds = config.at("clientIP").at("timeoutSeconds");
    if !config.exists() {
        config.missing("when session affinity type is ClientIP");
    } else if !seconds.exists() {
        seconds.missing("when session affinity type is ClientIP");
    } else if !(1..=STICKY_SECONDS_MAX).contains(&seconds.int()) {
        seconds.invalid(&format!("must be greater than 0 and less than {STICKY_SECONDS_MAX}"));
    }
}

fn unique_ports(spec: Cursor<'_>, kind: &str) {
    let (mut on_nodes, mut own) = (BTreeSet::new(), BTreeSet::new());
    if kind == "ClusterIP" {
        for port in spec.list("ports").filter(|it| it.at("nodePort").int() != 0) {
            port.at("nodePort").forbidden("may not be used when `type` is 'ClusterIP'");
        }
    }
    for port in spec.list("ports") {
        let on_node = port.at("nodePort");
        if on_node.int() != 0 && !on_nodes.insert((port.at("protocol").str(), on_node.int())) {
            on_node.duplicate();
        }
    }
    for port in spec.list("ports") {
        let (protocol, number) = (port.at("protocol").str(), port.at("port").int());
        if !own.insert((protocol, number)) {
            let shown = serde_json::json!({"protocol": protocol, "port": number, "targetPort": 0});
            port.report(Violation::duplicate(port.path(), shown));
        }
    }
}

fn load_balancer(spec: Cursor<'_>, kind: &str) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balancer = kind == "LoadBalancer";
    let ranges = spec.at("loadBalancerSourceRanges");
    // Kubernetes's path is written in capitals.
    let shown = spec.at("LoadBalancerSourceRanges").instead(ranges);
    if !ranges.is_empty() && !is_balancer {
        shown.forbidden(ONLY);
    }
    for range in shown.each() {
        address::range(range);
    }
    let allocate = spec.at("allocateLoadBalancerNodePorts");
    if is_balancer && !allocate.exists() {
        allocate.missing("");
    } else if !is_balancer && allocate.exists() {
        allocate.forbidden(ONLY);
    }
    let class = spec.at("loadBalancerClass");
    if class.exists() && is_balancer {
        class.follows(field::qualified_name);
    } else if class.exists() {
        class.forbidden(ONLY);
    }
}

fn traffic(service: Cursor<'_>, spec: Cursor<'_>) {
    let (external, health) = (spec.at("externalTrafficPolicy"), spec.at("healthCheckNodePort"));
    if needs::external_traffic_policy(service.value()) {
        rules::required_one_of(external, &["Cluster", "Local"]);
    } else if !external.is_empty() {
        external.invalid("may only be set for externally-accessible services");
    }
    if needs::health_check_port(service.value()) {
        if health.int() == 0 {
            health.missing("");
        } else {
            health.int_between(1, 65535);
        }
    } else if health.int() != 0 {
        health.invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
    }
    let internal = spec.at("internalTrafficPolicy");
    if internal.exists() {
        internal.one_of(&["Cluster", "Local"]);
    } else if needs::cluster_ip(service.value()) {
        internal.missing("");
    }
    rules::optional_one_of(spec.at("trafficDistribution"), &["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

/// What a load balancer's controller reports.
pub(super) fn status(service: Cursor<'_>) {
    let kind = service.at("spec").at("type").str();
    let ingress = service.at("status").at("loadBalancer").at("ingress");
    if kind != "LoadBalancer" && !ingress.is_empty() {
        return ingress.forbidden("may only be used when `spec.type` is LoadBalancer");
    }
    for point in ingress.each() {
        let (ip, mode, host) = (point.at("ip"), point.at("ipMode"), point.at("hostname"));
        if !ip.is_empty() {
            address::address(ip);
            if !mode.exists() {
                mode.missing("must be specified when `ip` is set");
            }
        } else if mode.exists() {
            mode.forbidden("may not be specified when `ip` is not set");
        }
        if mode.exists() && !["Proxy", "VIP"].contains(&mode.str()) {
            mode.unsupported(&["Proxy", "VIP"]);
        }
        if !host.is_empty() {
            host.follows(field::dns1123_subdomain);
            if address::is_address(host.str()) {
                host.invalid("must be a DNS name, not an IP address");
            }
        }
    }
}
