//! Workloads that somebody stopped, or that others look after.

use serde_json::json;

use super::case::{Advice, Case};
use crate::why::{
    command::{kubectl, merge},
    fields::text,
    findings::manager_of,
};

pub(super) fn paused(case: &Case<'_>) -> Advice {
    let by = manager_of(case.object, "f:paused", "").map(|it| format!("paused by {it}"));
    Advice::run(kubectl(case.namespace, &["rollout", "resume", &case.at.subject]))
        .headline("it is paused: its new template is not rolled out until it is resumed")
        .hints(by)
}

pub(super) fn suspended(case: &Case<'_>) -> Advice {
    let by = manager_of(case.object, "f:suspend", "").map(|it| format!("spec.suspend was set by {it}"));
    Advice::run(merge(case.namespace, &case.at.subject, &json!({"spec": {"suspend": false}}))).hints(by)
}

pub(super) fn managed_elsewhere(case: &Case<'_>) -> Advice {
    let manager = text(case.object, "/spec/managedBy");
    Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "yaml"]))
        .headline(format!("it is managed by {manager:?}, and no loop of the cluster touches it"))
        .who(format!("the program {manager:?}: it is not part of this cluster"))
        .hint("spec.managedBy cannot be changed: make the Job anew without it to have the cluster run it")
}

/// Nobody serves the metrics that an autoscaler asks for.
pub(super) fn metrics(case: &Case<'_>) -> Advice {
    let group = case.wait.message.split_whitespace().next().unwrap_or_default();
    Advice::run(kubectl("", &["get", "apiservices"])).who(format!(
        "whoever runs the cluster: a server of {group} must be installed, with its APIService; or whoever wrote {}: it must ask for \
         another metric",
        case.author
    ))
}

/// A server of metrics answers, and does not have the one that an autoscaler asks for.
pub(super) fn is_metric_unknown(case: &Case<'_>) -> bool {
    let is_of_metric = case.wait.reason.starts_with("FailedGet") && case.wait.reason.ends_with("Metric");
    let words = ["could not find the metric", "no metrics returned from"];
    is_of_metric && words.iter().any(|it| case.wait.message.contains(it))
}

pub(super) fn metric(case: &Case<'_>) -> Advice {
    if case.wait.message.contains("resource metrics API") {
        return Advice::run(kubectl(case.namespace, &["top", "pods"]))
            .who("nobody, if Pods of its target have just begun to run; else whoever wrote its target, which has none")
            .hint("what a Pod uses is known within a minute after it has begun to run");
    }
    let api = if case.wait.reason == "FailedGetExternalMetric" { "external" } else { "custom" };
    Advice::run(format!("kubectl get --raw /apis/{api}.metrics.k8s.io")).who(format!(
        "whoever runs the server of {api}.metrics.k8s.io: it answers, and does not have the metric; or whoever wrote {}: name another",
        case.author
    ))
}

pub(super) fn approval(case: &Case<'_>) -> Advice {
    let name = text(case.object, "/metadata/name");
    let (user, signer) = (text(case.object, "/spec/username"), text(case.object, "/spec/signerName"));
    let approve = kubectl("", &["certificate", "approve", name]);
    if signer == "kubernetes.io/kubelet-serving" {
        // Nodes' own are approved without a person: what is left is not to be approved unseen.
        return Advice::run(kubectl("", &["describe", "csr", name]))
            .headline(case.wait.message.clone())
            .who(format!("whoever may approve certificates of {signer}"))
            .hint(format!("{user:?} asks for it, and could stand in for what it names; if that is right: {approve}"));
    }
    Advice::run(approve)
        .headline("it has been neither approved nor denied")
        .who(format!("whoever may approve certificates of {signer}"))
        .hint(format!("{user:?} asks for it; look first: {}", kubectl("", &["describe", "csr", name])))
}

pub(super) fn unsigned(case: &Case<'_>) -> Advice {
    let name = text(case.object, "/metadata/name");
    let advice = Advice::run(kubectl("", &["describe", "csr", name]));
    let user = text(case.object, "/spec/username");
    match &*case.wait.reason {
        "CertificateMissing" => advice,
        "Denied" => advice.who(format!("{user:?}, who asked: a decision is not taken back, but it may ask anew")),
        _ => advice.who(format!("{user:?}, who asked: it must ask anew for what the signer signs")),
    }
}

pub(super) fn budget(case: &Case<'_>) -> Advice {
    if case.wait.reason == "EvictionRefused" {
        return refused(case);
    }
    let (min, max) = (&case.object["spec"]["minAvailable"], &case.object["spec"]["maxUnavailable"]);
    let rule = if min.is_null() { format!("maxUnavailable is {max}") } else { format!("minAvailable is {min}") };
    Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "wide"]))
        .headline(case.wait.message.clone())
        .hint(format!("its {rule}: an eviction is answered 429 until more pods are ready than that"))
}

/// The message has the Pod that stays, where it is, and the budget: `pod/NAME in NAMESPACE stays: poddisruptionbudget/NAME …`.
fn refused(case: &Case<'_>) -> Advice {
    let message = &case.wait.message;
    let word_after = |mark: &str| message.split_once(mark).and_then(|it| it.1.split(' ').next()).unwrap_or_default();
    let (pod, namespace) = (message.split(' ').next().unwrap_or_default(), word_after(" in "));
    let budget = word_after(" stays: ");
    Advice::run(format!("corten why {budget} -n {namespace}"))
        .who(format!(
            "whoever runs {pod} in {namespace}: have more pods of {budget} ready on other nodes, or let it allow that one goes"
        ))
        .hint(format!("a drain waits for it; no budget keeps {pod} from being deleted, with what that interrupts"))
}

pub(super) fn running(case: &Case<'_>) -> Advice {
    let next = match case.wait.on.as_deref() {
        Some(on) if on.starts_with("pod/") => {
            kubectl(case.namespace, &["logs", on.trim_start_matches("pod/"), "--all-containers", "--tail=20"])
        }
        Some(on) => kubectl(case.namespace, &["describe", on]),
        None => case.describe(),
    };
    Advice::run(next)
}
