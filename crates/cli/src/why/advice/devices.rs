//! Pods that wait for the devices of their claims.

use super::case::{Advice, Case};
use crate::why::{command::kubectl, fields::text};

/// No node has what is asked for.
pub(super) fn allocation(_: &Case<'_>) -> Advice {
    Advice::run(kubectl("", &["get", "resourceslices", "-o", "yaml"]))
        .who("whoever runs the cluster: have drivers offer such devices, or whoever wrote the claims: ask for others")
        .hint("a device that another claim has is not given twice")
}

/// The drivers of the node do not prepare them.
pub(super) fn preparation(case: &Case<'_>) -> Advice {
    let node = text(case.object, "/spec/nodeName").to_owned();
    Advice::run(kubectl("", &["get", "pods", "-A", "-o", "wide", "--field-selector", &format!("spec.nodeName={node}")]))
        .who(format!("whoever runs the driver: it has to run on node {node}"))
        .hint("the pod goes on by itself as soon as its driver prepares the claims")
}
