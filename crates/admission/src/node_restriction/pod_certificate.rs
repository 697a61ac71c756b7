//! A node asks for certificates of its own Pods only (upstream's `admitPodCertificateRequest`).

use corten_api::resources::{MIRROR_POD, NODES, PODS, SERVICE_ACCOUNTS};
use corten_meta::{Resource, Status};
use serde_json::Value;

use super::{Attributes, Judged, Operation, YES, no};

pub(super) fn judge(request: &Attributes<'_>, node: &str, object: &Value) -> Judged {
    if request.operation != Operation::Create {
        return no("unexpected operation: a node may only create PodCertificateRequests");
    }
    if let Some(subresource) = request.subresource {
        return no(format!("unexpected subresource {}", subresource.as_str()));
    }
    let spec = &object["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let (pod_name, account_name) = (text("podName"), text("serviceAccountName"));
    let pod_key = format!("{}/{pod_name}", request.namespace);
    if text("nodeName") != node {
        return no(format!(
            "PodCertificateRequest.Spec.NodeName={:?}, which is not the requesting node {node:?}",
            text("nodeName")
        ));
    }
    let stored = named(request, &NODES, "", node, "node")?;
    if stored["metadata"]["uid"] != text("nodeUID") {
        return Err(Status::internal(format!(
            "PodCertificateRequest for pod {pod_key:?} names node UID {:?}, inconsistent with the running node ({})",
            text("nodeUID"),
            stored["metadata"]["uid"]
        )));
    }
    let pod = named(request, &PODS, request.namespace, pod_name, "pod")?;
    // Another uid may be news that has not come yet: upstream's node tries again.
    if pod["metadata"]["uid"] != text("podUID") {
        return Err(Status::internal(format!(
            "PodCertificateRequest for pod {pod_key:?} contains pod UID ({:?}) which differs from running pod {}",
            text("podUID"),
            pod["metadata"]["uid"]
        )));
    }
    if pod["spec"]["nodeName"] != node {
        return no(format!("pod {pod_key:?} is not running on node {node:?} named in the PodCertificateRequest"));
    }
    if !pod["metadata"]["annotations"][MIRROR_POD].is_null() {
        return no(format!("pod {pod_key:?} is a mirror pod"));
    }
    if pod["spec"]["serviceAccountName"] != account_name {
        return no(format!(
            "PodCertificateRequest for pod {pod_key:?} contains serviceAccountName ({account_name:?}) that differs from running pod ({})",
            pod["spec"]["serviceAccountName"]
        ));
    }
    let account = named(request, &SERVICE_ACCOUNTS, request.namespace, account_name, "service account")?;
    if account["metadata"]["uid"] != text("serviceAccountUID") {
        return Err(Status::internal(format!(
            "PodCertificateRequest for pod {pod_key:?} names service account UID {:?}, which differs from the running service account ({})",
            text("serviceAccountUID"),
            account["metadata"]["uid"]
        )));
    }
    YES
}

/// What the request names; where it is not there, upstream's node tries again.
fn named(
    request: &Attributes<'_>,
    resource: &Resource,
    namespace: &str,
    name: &str,
    what: &str,
) -> Result<Value, Status> {
    let stored = request.cluster.caches().get(resource).and_then(|it| it.get(namespace, name));
    let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let missing = || {
        let plural = &resource.plural;
        Status::internal(format!(
            "while retrieving {what} {key:?} named in the PodCertificateRequest: {plural} {name:?} not found"
        ))
    };
    stored.map(|it| it.parse()).ok_or_else(missing)
}
