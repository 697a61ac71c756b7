//! Pods that wait for the devices of their claims.

use corten_api::resources::{DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
    findings::device_claims,
    nearest::nearest,
};

/// No node has what is asked for.
pub(super) async fn allocation(case: &Case<'_>) -> Advice {
    if case.wait.message.ends_with("not found") {
        return missing(case).await;
    }
    if case.wait.message.contains("ResourceClaim not created yet") {
        return unmade(case).await;
    }
    if let Some((device, claim)) = device_claims::held(case.reader, case.object).await {
        return Advice::run(format!("corten why resourceclaim/{} -n {}", claim.name, claim.namespace))
            .headline(format!("what would do is taken: {device}"))
            .who(
                "whoever runs the pod that has it: that must end first; or whoever runs the cluster: add such devices",
            );
    }
    Advice::run(kubectl("", &["get", "resourceslices", "-o", "yaml"]))
        .who("whoever runs the cluster: have drivers offer such devices, or whoever wrote the claims: ask for others")
        .hint("a device that another claim has is not given twice")
}

/// A claim that nobody has made.
async fn missing(case: &Case<'_>) -> Advice {
    let name = case.wait.message.split('"').nth(1).unwrap_or_default();
    let claims = case.reader.list(&RESOURCE_CLAIMS, case.namespace).await;
    let near = nearest(name, claims.iter().map(|it| text(it, "/metadata/name")));
    Advice::run(kubectl(case.namespace, &["get", "resourceclaims"]))
        .who(format!("whoever wrote {}: make resourceclaim/{name}, or name another", case.author))
        .hints(near.map(|it| format!("there is a claim {it:?}")))
}

/// The claims that are made of the Pod's templates are not there yet: is a template missing?
async fn unmade(case: &Case<'_>) -> Advice {
    let templates = case.reader.list(&RESOURCE_CLAIM_TEMPLATES, case.namespace).await;
    let names: Vec<_> = templates.iter().map(|it| text(it, "/metadata/name")).collect();
    let named = items(case.object, "/spec/resourceClaims").iter();
    let mut named = named.filter_map(|it| it["resourceClaimTemplateName"].as_str());
    let Some(missing) = named.find(|it| !names.contains(it)) else {
        return Advice::run(kubectl(case.namespace, &["get", "resourceclaims"]))
            .headline("its claims are being made of their templates")
            .who("nobody, if they come soon; else whoever runs the resource claim controller");
    };
    let near = nearest(missing, names.iter().copied());
    Advice::run(kubectl(case.namespace, &["get", "resourceclaimtemplates"]))
        .headline(format!("there is no resourceclaimtemplate/{missing}, of which its claim is to be made"))
        .who(format!("whoever wrote {}: make resourceclaimtemplate/{missing}, or name another", case.author))
        .hints(near.map(|it| format!("there is a template {it:?}")))
}

/// A claim's spec cannot be changed once it is there, so that whoever wrote it makes another.
pub(super) async fn class(case: &Case<'_>) -> Advice {
    let name = case.wait.message.split('"').nth(1).unwrap_or_default();
    let classes = case.reader.list(&DEVICE_CLASSES, "").await;
    let near = nearest(name, classes.iter().map(|it| text(it, "/metadata/name")));
    Advice::run(kubectl("", &["get", "deviceclasses"]))
        .who(format!("whoever runs the cluster: make the class {name}; or whoever wrote {}: name another", case.author))
        .hints(near.map(|it| format!("there is a class {it:?}")))
        .hint("whoever installs a driver usually makes its classes, too")
}

/// An expression asks for what a device does not have.
pub(super) fn selector(case: &Case<'_>) -> Advice {
    Advice::run(kubectl("", &["get", "deviceclasses,resourceslices", "-o", "yaml"]))
        .who(format!("whoever wrote the expression: that of {}, or of the class that it names", case.author))
        .hint("an attribute that not every device has is asked for with `in` or `?` first")
}

/// Its drivers have not made them ready, or say that they cannot.
pub(super) fn readiness(case: &Case<'_>) -> Advice {
    let namespace = text(case.object, "/metadata/namespace");
    Advice::run(kubectl(namespace, &["get", "resourceclaims", "-o", "yaml"]))
        .who("whoever runs the driver: it says in the claim's status.devices when they are ready")
        .hint("the pod is bound to its node by itself as soon as they are")
}

/// The drivers of the node do not prepare them.
pub(super) fn preparation(case: &Case<'_>) -> Advice {
    let node = text(case.object, "/spec/nodeName").to_owned();
    Advice::run(kubectl("", &["get", "pods", "-A", "-o", "wide", "--field-selector", &format!("spec.nodeName={node}")]))
        .who(format!("whoever runs the driver: it has to run on node {node}"))
        .hint("the pod goes on by itself as soon as its driver prepares the claims")
}
