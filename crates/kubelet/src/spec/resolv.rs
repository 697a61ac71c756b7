//! How a pod's names are resolved: its policy, the node's own way, and what the pod adds, within what resolvers can take.

use std::collections::BTreeMap;

use corten_api::core::v1::{Pod, PodDNSConfig, PodDNSConfigOption};

use crate::{Config, Dns, NodeFacts, PodRef, spec::pod::spec_of};

const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// Of the whole line, and of one domain: more makes some resolvers abort.
const SEARCH_BYTES_MAX: usize = 2048;
const DOMAIN_BYTES_MAX: usize = 253;

/// What goes into the pod's resolv.conf, and the warnings that its making deserves: reason and message.
pub(crate) fn of_pod(pod: &Pod, config: &Config, facts: Option<&NodeFacts>) -> (Dns, Vec<(&'static str, String)>) {
    let spec = spec_of(pod);
    let node = facts.map(|it| it.resolv.clone()).unwrap_or_default();
    let mut warnings = Vec::new();
    let is_in_cluster = match spec.dns_policy.as_deref() {
        // As in `getPodDNSType`: who has the node's network has its names, too, unless the policy says otherwise.
        None | Some("ClusterFirst") => spec.host_network != Some(true),
        Some("ClusterFirstWithHostNet") => true,
        _ => false,
    };
    let mut dns = if spec.dns_policy.as_deref() == Some("None") {
        Dns::default()
    } else if !is_in_cluster {
        node
    } else if config.cluster_dns.is_empty() {
        warnings.push(("MissingClusterDNS", missing(pod)));
        node
    } else {
        in_cluster(pod, config, node)
    };
    if let Some(more) = &spec.dns_config {
        add(&mut dns, more);
    }
    warnings.extend(fit(&mut dns).into_iter().map(|it| ("DNSConfigForming", it)));
    (dns, warnings)
}

fn in_cluster(pod: &Pod, config: &Config, node: Dns) -> Dns {
    let (namespace, domain) = (pod.metadata.namespace.as_deref().unwrap_or_default(), &config.cluster_domain);
    let mut searches = vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()];
    add_new(&mut searches, node.searches);
    Dns { servers: config.cluster_dns.clone(), searches, options: vec!["ndots:5".into()] }
}

fn missing(pod: &Pod) -> String {
    let PodRef { key, uid } = PodRef::of(pod);
    format!(
        "pod: \"{}_{}({uid})\". kubelet does not have ClusterDNS IP configured and cannot create Pod using \
         \"ClusterFirst\" policy. Falling back to \"Default\" policy.",
        key.name, key.namespace
    )
}

fn add(dns: &mut Dns, more: &PodDNSConfig) {
    add_new(&mut dns.servers, more.nameservers.iter().flatten().cloned());
    add_new(&mut dns.searches, more.searches.iter().flatten().cloned());
    let name_of = |it: &PodDNSConfigOption| it.name.clone().unwrap_or_default();
    // An option given twice has the pod's value, and of two of the pod's the last.
    let mut last: BTreeMap<String, &PodDNSConfigOption> = BTreeMap::new();
    for option in more.options.iter().flatten() {
        last.insert(name_of(option), option);
    }
    dns.options.retain(|it| !last.contains_key(it.split(':').next().unwrap_or_default()));
    for option in more.options.iter().flatten() {
        let name = name_of(option);
        if last.get(&name).is_some_and(|it| std::ptr::eq(*it, option)) {
            let value = option.value.as_ref().filter(|it| !it.is_empty());
            dns.options.push(value.map_or(name.clone(), |value| format!("{name}:{value}")));
        }
    }
}

fn add_new(list: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for it in more {
        if !list.contains(&it) {
            list.push(it);
        }
    }
}

/// Leaves out what resolvers would not take; says so.
fn fit(dns: &mut Dns) -> Vec<String> {
    let mut told = Vec::new();
    if dns.servers.len() > SERVERS_MAX {
        dns.servers.truncate(SERVERS_MAX);
        told.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {}",
            dns.servers.join(" ")
        ));
    }
    let n_asked = dns.searches.len();
    dns.searches.truncate(SEARCHES_MAX);
    dns.searches.retain(|it| it.len() <= DOMAIN_BYTES_MAX);
    while dns.searches.join(" ").len() > SEARCH_BYTES_MAX {
        dns.searches.pop();
    }
    if dns.searches.len() < n_asked {
        told.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {}",
            dns.searches.join(" ")
        ));
    }
    told
}

#[cfg(test)]
mod tests;
