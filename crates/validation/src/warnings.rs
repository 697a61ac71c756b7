//! What the author of an object should know of it, though it is accepted; of Pods and templates `pod_spec::warnings` knows.
//!
//! They are what `WarningsOnCreate` and `WarningsOnUpdate` of the kind's strategy say.

use corten_schema::Cursor;
use serde_json::Value;

use crate::{
    pod_spec::{self, fraction, old_label, old_terms},
    read::text,
    rules::address::not_canonical,
};

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Collects what `say` finds of an object.
fn said(object: &Value, say: impl FnOnce(Cursor<'_>, &mut Vec<String>)) -> Vec<String> {
    let mut found = Vec::new();
    corten_schema::violations(object, |cursor| say(cursor, &mut found));
    found
}

pub fn ingress(new: &Value, old: Option<&Value>) -> Vec<String> {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let is_named = !new["metadata"]["annotations"][CLASS].is_null() && new["spec"]["ingressClassName"].is_null();
    let told = || format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead");
    (is_named && old.is_none()).then(told).into_iter().collect()
}

pub fn service(service: &Value) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    said(service, |service, found| {
        let (spec, kind) = (service.at("spec"), service.at("spec").at("type").str());
        let is_headless = kind == "ClusterIP" && spec.at("clusterIP").str() == "None";
        let is_external_name = kind == "ExternalName";
        if service.at("metadata").at("annotations").at(HINTS).exists() {
            found.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
        }
        found.extend(spec.list("clusterIPs").filter_map(not_canonical));
        let has_external_ips = !spec.at("externalIPs").is_empty();
        let ignored = [
            ("loadBalancerIP", !spec.at("loadBalancerIP").is_empty()),
            ("externalIPs", has_external_ips),
            ("SessionAffinity", !matches!(spec.at("sessionAffinity").str(), "" | "None")),
        ];
        let ignored = ignored.iter().filter(|it| it.1 && is_headless);
        found.extend(ignored.map(|(field, _)| format!("spec.{field} is ignored for headless services")));
        found.extend(spec.list("externalIPs").filter_map(not_canonical));
        if has_external_ips && !is_headless && !is_external_name {
            found.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".into());
        }
        found.extend(not_canonical(spec.at("loadBalancerIP")));
        found.extend(spec.list("loadBalancerSourceRanges").filter_map(not_canonical));
        if has_external_ips && is_external_name {
            found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
        }
        if !spec.at("externalName").is_empty() && !is_external_name {
            found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
        }
        if spec.at("trafficDistribution").str() == "PreferClose" {
            found.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".into());
        }
    })
}

fn beta_class(object: Cursor<'_>, found: &mut Vec<String>) {
    let annotations = object.at("metadata").at("annotations");
    if annotations.at(BETA_CLASS).exists() {
        let path = annotations.path();
        found.push(format!("{path}[{BETA_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"));
    }
}

pub fn persistent_volume_claim(claim: &Value) -> Vec<String> {
    said(claim, |claim, found| {
        beta_class(claim, found);
        found.extend(claim_spec(claim.at("spec"), "spec"));
    })
}

/// Of a claim's spec that is said to be at `path`.
fn claim_spec(spec: Cursor<'_>, path: &str) -> Vec<String> {
    let amounts = ["requests", "limits"].map(|it| (it, spec.at("resources").at(it).key("storage")));
    let told = amounts.iter().filter_map(|(list, it)| fraction(*it, &format!("{path}.resources.{list}[storage]")));
    told.collect()
}

pub fn persistent_volume(volume: &Value) -> Vec<String> {
    said(volume, |volume, found| {
        let spec = volume.at("spec");
        beta_class(volume, found);
        let reclaim = spec.at("persistentVolumeReclaimPolicy");
        if reclaim.str() == "Recycle" {
            let what = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
            found.push(format!("{}: {what}", reclaim.path()));
        }
        old_terms(spec.at("nodeAffinity").at("required").list("nodeSelectorTerms"), found);
        pod_spec::old_sources(spec, found);
    })
}

pub fn storage_class(class: &Value) -> Vec<String> {
    said(class, |class, found| {
        let terms = class.list("allowedTopologies").flat_map(|it| it.list("matchLabelExpressions"));
        for key in terms.map(|it| it.at("key")) {
            found.extend(old_label(key.str()).map(|what| format!("{}: {what}", key.path())));
        }
    })
}

pub fn storage_capacity(capacity: &Value) -> Vec<String> {
    said(capacity, |capacity, found| {
        let topology = capacity.at("nodeTopology");
        old_terms(std::iter::once(topology), found);
        for (label, _) in topology.at("matchLabels").entries() {
            found.extend(old_label(label).map(|what| format!("nodeTopology.matchLabels.{label}: {what}")));
        }
    })
}

pub fn runtime_class(class: &Value) -> Vec<String> {
    let selector = class["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
    selector.filter_map(|(label, _)| old_label(label).map(|it| format!("scheduling.nodeSelector: {it}"))).collect()
}

pub fn service_account(new: &Value, old: Option<&Value>) -> Vec<String> {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let says = |it: &Value| !it["metadata"]["annotations"][ENFORCE].is_null();
    let told = || {
        format!(
            "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        )
    };
    (says(new) && !old.is_some_and(says)).then(told).into_iter().collect()
}

pub fn endpoints(endpoints: &Value) -> Vec<String> {
    // What its own controller writes needs no second look.
    if endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
        return Vec::new();
    }
    said(endpoints, |endpoints, found| {
        for subset in endpoints.list("subsets") {
            let all = subset.list("addresses").chain(subset.list("notReadyAddresses"));
            found.extend(all.filter_map(|it| not_canonical(it.at("ip"))));
        }
    })
}

pub fn endpoint_slice(new: &Value, old: Option<&Value>) -> Vec<String> {
    said(new, |slice, found| {
        if old.is_none() && slice.at("addressType").str() == "FQDN" {
            found.push("spec.addressType: FQDN endpoints are deprecated".into());
        }
        let manager = slice.at("metadata").at("labels").at("endpointslice.kubernetes.io/managed-by");
        if matches!(manager.str(), "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
            return;
        }
        found.extend(slice.list("endpoints").flat_map(|it| it.list("addresses")).filter_map(not_canonical));
    })
}

pub fn network_policy(policy: &Value) -> Vec<String> {
    said(policy, |policy, found| {
        for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
            let peers = policy.at("spec").list(direction).flat_map(|it| it.list(peers));
            for block in peers.map(|it| it.at("ipBlock")) {
                found.extend(not_canonical(block.at("cidr")));
                found.extend(block.list("except").filter_map(not_canonical));
            }
        }
    })
}

pub fn node(node: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if !node["spec"]["configSource"].is_null() {
        found.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(node, "/spec/externalID").is_empty() {
        found.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    found
}

/// Of a Job, or of what makes Jobs, with a Job's spec at the end of `steps`.
pub fn job(new: &Value, old: Option<&Value>, steps: &[&'static str]) -> Vec<String> {
    const COMPLETIONS_MAX: i64 = 100_000;
    const PARALLELISM_MAX: i64 = 10_000;
    let mut found = pod_spec::warnings(new, old, &[steps, &["template", "spec"]].concat(), pod_spec::Name::OfPods);
    let spec = steps.iter().fold(new, |value, step| &value[*step]);
    let is_over = |field: &str, max: i64| spec[field].as_i64().is_some_and(|it| it > max);
    if old.is_none_or(|old| old["spec"] != new["spec"])
        && spec["completionMode"] == "Indexed"
        && is_over("completions", COMPLETIONS_MAX)
        && is_over("parallelism", PARALLELISM_MAX)
    {
        let path = steps.join(".");
        found.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    found
}

/// Of a StatefulSet, beside what its template says.
pub fn stateful_set(new: &Value, old: Option<&Value>) -> Vec<String> {
    said(new, |set, found| {
        for claim in set.at("spec").list("volumeClaimTemplates") {
            // An update says it otherwise (`statefulSetStrategy.WarningsOnUpdate`).
            let path = claim.path() + if old.is_some() { ".Spec" } else { "" };
            found.extend(claim_spec(claim.at("spec"), &path));
        }
        if set.at("spec").at("revisionHistoryLimit").int() < 0 {
            let what = "a negative value retains all historical revisions; a value >= 0 is recommended";
            found.push(format!("spec.revisionHistoryLimit: {what}"));
        }
    })
}
