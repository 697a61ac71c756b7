//! What the runtime is told of a pod as a whole: name, network, DNS, and what its containers share.

use std::{collections::BTreeMap, net::IpAddr};

use corten_api::core::v1::{Pod, PodSpec, SeccompProfile};

use crate::{
    Config, Hosts, NodeFacts, PodRef, PortMapping, Qos, SandboxSpec, Seccomp,
    spec::{
        pod::{all_containers, spec_of},
        resolv, resources, user_namespace,
    },
};

pub(crate) fn spec(pod: &Pod, attempt: u32, config: &Config, facts: Option<&NodeFacts>) -> SandboxSpec {
    let who = PodRef::of(pod);
    let spec = spec_of(pod);
    let security = spec.security_context.as_ref();
    let mut labels = pod.metadata.labels.clone().unwrap_or_default();
    labels.extend(identity(&who));
    let mut groups = security.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
    groups.extend(security.and_then(|it| it.fs_group));
    let sysctls = security.and_then(|it| it.sysctls.as_ref()).into_iter().flatten();
    SandboxSpec {
        attempt,
        hostname: hostname(pod, config),
        labels,
        annotations: pod.metadata.annotations.clone().unwrap_or_default(),
        dns: resolv::of_pod(pod, config, facts).0,
        ports: ports(spec),
        host_network: spec.host_network == Some(true),
        host_pid: spec.host_pid == Some(true),
        host_ipc: spec.host_ipc == Some(true),
        share_process_namespace: spec.share_process_namespace == Some(true),
        sysctls: sysctls.map(|it| (it.name.clone(), it.value.clone())).collect(),
        qos: qos(pod),
        resources: resources::of_pod(pod),
        run_as_user: security.and_then(|it| it.run_as_user),
        run_as_group: security.and_then(|it| it.run_as_group),
        supplemental_groups: groups,
        strict_groups: keeps_groups_strictly(pod),
        privileged: all_containers(pod)
            .any(|it| it.security_context.as_ref().and_then(|it| it.privileged) == Some(true)),
        // As in `generatePodSandboxLinuxConfig`: the pause container never runs unconfined by omission.
        seccomp: security.and_then(|it| it.seccomp_profile.as_ref()).map_or(Seccomp::RuntimeDefault, seccomp),
        runtime_handler: String::new(),
        own_users: user_namespace::is_own(pod),
        addresses: addresses(pod),
        pod: who,
    }
}

fn addresses(pod: &Pod) -> Vec<IpAddr> {
    if spec_of(pod).host_network == Some(true) {
        return Vec::new();
    }
    let told = pod.status.as_ref().and_then(|it| it.pod_ips.as_ref()).into_iter().flatten();
    told.filter_map(|it| it.ip.parse().ok()).collect()
}

/// `supplementalGroupsPolicy: Strict`.
pub(crate) fn keeps_groups_strictly(pod: &Pod) -> bool {
    let context = spec_of(pod).security_context.as_ref();
    context.and_then(|it| it.supplemental_groups_policy.as_deref()) == Some("Strict")
}

/// The labels by which a sandbox or a container is known to be a pod's.
pub(crate) fn identity(who: &PodRef) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("io.kubernetes.pod.name".into(), who.key.name.clone()),
        ("io.kubernetes.pod.namespace".into(), who.key.namespace.clone()),
        ("io.kubernetes.pod.uid".into(), who.uid.clone()),
    ])
}

pub(crate) fn seccomp(profile: &SeccompProfile) -> Seccomp {
    match profile.type_.as_str() {
        "RuntimeDefault" => Seccomp::RuntimeDefault,
        "Localhost" => Seccomp::Localhost(profile.localhost_profile.clone().unwrap_or_default()),
        _ => Seccomp::Unconfined,
    }
}

pub(crate) fn hostname(pod: &Pod, config: &Config) -> String {
    let spec = spec_of(pod);
    if let Some(name) = spec.hostname_override.as_ref().filter(|it| !it.is_empty()) {
        return name.clone();
    }
    if spec.host_network == Some(true) {
        return config.hostname.clone();
    }
    let name = spec.hostname.clone().filter(|it| !it.is_empty());
    let name = name.unwrap_or_else(|| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        // The kernel keeps 64 bytes, and a label has at most 63.
        let end = name.len().min(63);
        name[..end].trim_end_matches(['-', '.']).to_owned()
    });
    match domain(pod, config) {
        Some(domain) if spec.set_hostname_as_fqdn == Some(true) => format!("{name}.{domain}"),
        _ => name,
    }
}

/// The domain of a pod with a subdomain: `sub.default.svc.cluster.local`.
pub(crate) fn domain(pod: &Pod, config: &Config) -> Option<String> {
    let subdomain = spec_of(pod).subdomain.as_deref().filter(|it| !it.is_empty())?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    Some(format!("{subdomain}.{namespace}.svc.{}", config.cluster_domain))
}

pub(crate) fn hosts(pod: &Pod, config: &Config, pod_ips: &[String]) -> Hosts {
    let spec = spec_of(pod);
    let has_network = spec.host_network != Some(true);
    let short = hostname(pod, config).split('.').next().unwrap_or_default().to_owned();
    let aliases = spec.host_aliases.iter().flatten();
    Hosts {
        ips: if has_network { pod_ips.to_vec() } else { Vec::new() },
        hostname: short,
        domain: domain(pod, config),
        aliases: aliases.map(|it| (it.ip.clone(), it.hostnames.clone().unwrap_or_default())).collect(),
    }
}

fn ports(spec: &PodSpec) -> Vec<PortMapping> {
    if spec.host_network == Some(true) {
        return Vec::new();
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|it| it.restart_policy.as_deref() == Some("Always"));
    let ports = sidecars.chain(&spec.containers).flat_map(|it| it.ports.iter().flatten());
    let mapped = ports.filter_map(|it| {
        Some(PortMapping {
            protocol: it.protocol.clone().unwrap_or_else(|| "TCP".into()),
            container_port: it.container_port,
            host_port: it.host_port.filter(|it| *it > 0)?,
            host_ip: it.host_ip.clone().unwrap_or_default(),
        })
    });
    mapped.collect()
}

/// As the API server decided, or by the same rule where it did not.
pub(crate) fn qos(pod: &Pod) -> Qos {
    match pod.status.as_ref().and_then(|it| it.qos_class.as_deref()) {
        Some("Guaranteed") => return Qos::Guaranteed,
        Some("Burstable") => return Qos::Burstable,
        Some("BestEffort") => return Qos::BestEffort,
        _ => {}
    }
    let quantity = crate::spec::downward::quantity;
    let asks = |name| all_containers(pod).any(|it| quantity(it, false, name).is_some_and(|it| !it.is_zero()));
    if !asks("cpu") && !asks("memory") {
        return Qos::BestEffort;
    }
    let is_fixed = |name: &str| {
        all_containers(pod).all(|it| {
            let limit = quantity(it, true, name).filter(|it| !it.is_zero());
            limit.is_some() && limit == quantity(it, false, name)
        })
    };
    if is_fixed("cpu") && is_fixed("memory") { Qos::Guaranteed } else { Qos::Burstable }
}

pub(crate) fn qos_name(qos: Qos) -> &'static str {
    match qos {
        Qos::Guaranteed => "Guaranteed",
        Qos::Burstable => "Burstable",
        Qos::BestEffort => "BestEffort",
    }
}
