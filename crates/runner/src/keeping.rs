//! What a node keeps of the cluster for a start while no server answers: of its own Pods and what they are started with all of it
//! and at once, of what their packets follow from the fields that count, and not as often.

use std::time::Duration;

use corten_client::{InformerParams, Keeping};
use corten_meta::Resource;

/// What a Pod cannot be started without.
const AT_ONCE: Duration = Duration::from_secs(1);
const AT_TIMES: Duration = Duration::from_secs(60);

/// Where one tenant's Pods are too large, the others' are kept all the same.
///
/// Of their status what a start goes by: whether they are over, how often their containers have begun, which address they had.
pub(crate) const OWN_PODS: Keeping = Keeping {
    by: "kubelet",
    fields: &[],
    essence: &[
        "metadata.annotations",
        "metadata.deletionGracePeriodSeconds",
        "metadata.deletionTimestamp",
        "metadata.labels",
        "spec",
        "status.containerStatuses.allocatedResources",
        "status.containerStatuses.restartCount",
        "status.ephemeralContainerStatuses.containerID",
        "status.initContainerStatuses.restartCount",
        "status.phase",
        "status.podIPs",
        "status.resourceClaimStatuses",
        "status.startTime",
    ],
    pause: AT_ONCE,
    leaves_out: true,
};

/// Its status is told anew all the time, by this node itself.
pub(crate) const OWN_NODE: Keeping = Keeping {
    by: "kubelet",
    fields: &[],
    essence: &["metadata.annotations", "metadata.labels", "spec"],
    pause: AT_ONCE,
    leaves_out: false,
};

/// ConfigMaps and Secrets.
pub(crate) const SOURCES: Keeping =
    Keeping { by: "kubelet", fields: &[], essence: &["binaryData", "data"], pause: AT_ONCE, leaves_out: false };

/// What containers are told of Services.
pub(crate) const LINKED_SERVICES: Keeping =
    by_fields("kubelet", &["spec.clusterIP", "spec.ports.name", "spec.ports.port", "spec.ports.protocol"]);

pub(crate) const RUNTIME_CLASSES: Keeping = by_fields("kubelet", &["handler"]);

pub(crate) const TRUST_BUNDLES: Keeping = by_fields("kubelet", &["metadata.labels", "spec"]);

/// Services, EndpointSlices and the ranges of Services.
pub(crate) const PROXIED: Keeping = by_fields(
    corten_proxy::NAME,
    &[
        "addressType",
        "endpoints",
        "metadata.annotations",
        "metadata.creationTimestamp",
        "metadata.labels",
        "ports",
        "spec",
        "status",
    ],
);

pub(crate) const PROXIED_NODE: Keeping = by_fields(corten_proxy::NAME, &["metadata.labels"]);

pub(crate) const ROUTED_NODES: Keeping = by_fields(
    "pod-routes",
    &["metadata.annotations", "metadata.creationTimestamp", "spec.podCIDRs", "status.addresses"],
);

pub(crate) const NETWORK_POLICIES: Keeping = by_fields(corten_netpolicy::NAME, &["spec"]);

pub(crate) const NAMESPACES: Keeping = by_fields(corten_netpolicy::NAME, &["metadata.labels"]);

/// As policies see Pods of the whole cluster.
pub(crate) const SELECTED_PODS: Keeping = by_fields(
    corten_netpolicy::NAME,
    &[
        "metadata.annotations.kubernetes.io/config.mirror",
        "metadata.labels",
        "spec.containers.ports",
        "spec.hostNetwork",
        "spec.initContainers.ports",
        "spec.initContainers.restartPolicy",
        "spec.nodeName",
        "status.phase",
        "status.podIPs",
    ],
);

const fn by_fields(by: &'static str, fields: &'static [&'static str]) -> Keeping {
    Keeping { by, fields, essence: &[], pause: AT_TIMES, leaves_out: false }
}

/// All of a resource, kept so.
pub(crate) fn params(resource: Resource, keeping: Keeping) -> InformerParams {
    InformerParams { keeping: Some(keeping), ..InformerParams::all(resource) }
}
