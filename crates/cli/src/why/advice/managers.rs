//! Pods that a node has turned away because its managers could give no CPUs, memory or devices as they are set to.

use super::case::{Advice, Case};
use crate::why::{command::kubectl, fields::text};

/// A node turns a Pod away for good: what owns it makes another one, which may be placed elsewhere.
pub(super) fn of(case: &Case<'_>) -> Advice {
    let node = text(case.object, "/spec/nodeName");
    let (subject, message) = (&case.at.subject, &case.wait.message);
    let on_node = format!("spec.nodeName={node}");
    let advice = Advice::run(kubectl("", &["get", "pods", "-A", "--field-selector", &on_node]));
    let again = if case.is_bare_pod() {
        "a Pod that a node has turned away stays Failed: make it anew"
    } else {
        "what made it makes another one: the scheduler does not see how a node's CPUs lie"
    };
    let advice = advice.hint(again);
    match &*case.wait.reason {
        "TopologyAffinityError" => advice
            .headline(format!("node {node} has turned {subject} away: no NUMA node has all that it asks for"))
            .hint("--topology-manager-policy of the node says how near each other they must be")
            .who(format!("{}, who may ask for less; or whoever runs {node}, who sets the policy", author(case))),
        "SMTAlignmentError" if message.contains("not multiple") => advice
            .headline(format!("node {node} has turned {subject} away: it gives whole cores only: {message}"))
            .hint("--cpu-manager-policy-options=full-pcpus-only=true of the node says so")
            .who(format!("{}, who must ask for whole cores", author(case))),
        "SMTAlignmentError" => advice
            .headline(format!("node {node} has turned {subject} away: too few whole cores are free: {message}"))
            .who(format!("nobody, once other Pods have left; else whoever runs {node}")),
        _ => advice
            .headline(format!("node {node} has turned {subject} away: {message}"))
            .who(format!("nobody, if another one is made; else {}, who makes it anew", author(case))),
    }
}

fn author(case: &Case<'_>) -> String {
    format!("whoever wrote {}", case.author)
}
