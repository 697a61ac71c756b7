//! The rules of a Pod's spec as a whole.

use std::collections::BTreeSet;

use corten_meta::field;
use corten_schema::Cursor;

use super::{
    claims,
    container::{self, Role},
    names, placement, resources, security, sharing, volumes,
};
use crate::rules::address;

/// Whose spec it is: some rules wait until the Pod itself is made.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    /// With the names of ports whose number is still to be chosen.
    Pod(&'a BTreeSet<&'a str>),
    Template,
}

/// `claimed` are volumes that the spec has not, but its Pods will.
pub(super) fn validate<'a>(spec: Cursor<'a>, owner: Owner<'_>, claimed: impl Iterator<Item = &'a str>) {
    let mut volumes = volumes::validate(spec);
    volumes.extend(claimed);
    let claims = claims::validate(spec.at("resourceClaims"));
    containers(spec, owner, &volumes, &claims);
    if spec.at("restartPolicy").required() {
        spec.at("restartPolicy").one_of(&["Always", "OnFailure", "Never"]);
    }
    if spec.at("dnsPolicy").required() {
        spec.at("dnsPolicy").one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    }
    dns_config(spec);
    placement::validate(spec);
    security::of_pod(spec.at("securityContext"));
    resources::of_pod(spec);
    sharing::validate(spec);
    if spec.at("preemptionPolicy").exists() {
        spec.at("preemptionPolicy").one_of(&["Never", "PreemptLowerPriority"]);
    }
    resources::overhead(spec.at("overhead"));
    for name in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"].map(|it| spec.at(it)) {
        if !name.is_empty() {
            name.follows(field::dns1123_subdomain);
        }
    }
    for name in ["hostname", "subdomain"].map(|it| spec.at(it)) {
        if !name.is_empty() {
            name.follows(field::dns1123_label);
        }
    }
    if !spec.at("nodeName").is_empty() && !spec.at("schedulingGates").is_empty() {
        spec.at("nodeName").forbidden("cannot be set until all schedulingGates have been cleared");
    }
    if spec.at("activeDeadlineSeconds").exists() {
        spec.at("activeDeadlineSeconds").int_between(1, i64::from(i32::MAX));
    }
    for alias in spec.list("hostAliases") {
        address::address(alias.at("ip"));
        for name in alias.list("hostnames") {
            name.follows(field::dns1123_subdomain);
        }
    }
    for gate in spec.list("readinessGates") {
        gate.at("conditionType").follows(field::qualified_name);
    }
    let system = spec.at("os").at("name");
    if spec.at("os").exists() && system.required() {
        // `validateOS`: what is wrong with the name is reported at `os`.
        spec.at("os").instead(system).one_of(&["linux", "windows"]);
    }
}

fn containers(spec: Cursor<'_>, owner: Owner<'_>, volumes: &BTreeSet<&str>, claims: &BTreeSet<&str>) {
    if spec.at("containers").is_empty() {
        spec.at("containers").missing("");
    }
    let mut seen = BTreeSet::new();
    let lists =
        [("containers", Role::Regular), ("initContainers", Role::Init), ("ephemeralContainers", Role::Ephemeral)];
    for (list, role) in lists {
        for container in spec.list(list) {
            let name = container.at("name");
            if names::label_name(name) && !seen.insert(name.str()) {
                name.duplicate();
            }
            container::validate(container, role, volumes);
            security::proc_mount(spec, container);
            container::resize_policy(container.at("resizePolicy"), spec.at("restartPolicy").str());
            claims::of_container(container.at("resources").at("claims"), claims);
        }
    }
    container::host_ports(spec.list("containers"));
    if spec.at("hostNetwork").bool() {
        host_network(spec, owner);
    }
}

/// On the node's own network a port is the node's port. A template may leave that to the Pod.
fn host_network(spec: Cursor<'_>, owner: Owner<'_>) {
    for port in spec.list("initContainers").chain(spec.list("containers")).flat_map(|it| it.list("ports")) {
        let (host, own) = (port.at("hostPort"), port.at("containerPort"));
        let may_be_open = match owner {
            Owner::Pod(open) => open.contains(port.at("name").str()),
            Owner::Template => true,
        };
        if host.int() != own.int() && !(may_be_open && host.int() == 0) {
            host.invalid("must match `containerPort` when `hostNetwork` is true");
        }
    }
}

fn dns_config(spec: Cursor<'_>) {
    let (policy, config) = (spec.at("dnsPolicy").str(), spec.at("dnsConfig"));
    let servers = config.at("nameservers");
    if policy == "None" && servers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        if config.exists() { servers.missing(detail) } else { config.missing(detail) }
    }
    if servers.items().len() > 3 {
        servers.invalid("must not have more than 3 nameservers");
    }
    for server in servers.each() {
        if server.str().parse::<::core::net::IpAddr>().is_err() {
            server.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
    }
    for domain in config.list("searches") {
        let reasons = field::dns1123_subdomain(domain.str().strip_suffix('.').unwrap_or(domain.str()));
        if domain.str() != "." {
            domain.invalid_all(reasons);
        }
    }
    for option in config.list("options") {
        if option.at("name").is_empty() {
            option.missing("must not be empty");
        }
    }
}
