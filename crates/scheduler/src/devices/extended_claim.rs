//! The claim that is made for a pod's extended resources where no device plugin of its node has them (KEP-5004).

use std::collections::BTreeSet;

use corten_allocator::{Allocation, ResourceClasses};
use corten_api::{
    core::v1::ContainerExtendedResourceRequest,
    resource::v1::{DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaimSpec},
};
use serde_json::{Value, json};

use super::DeviceNode;
use crate::{
    PodInfo,
    pod_info::{ExtendedRequest, ExtendedResources},
    requests::Amounts,
};

/// Says of a claim that it was made for the extended resources of its pod.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// What a pod needs of the claim for its extended resources on one node.
#[derive(Clone, Debug)]
pub(crate) struct ExtendedClaim {
    pub(crate) spec: ResourceClaimSpec,
    /// Which containers have the devices of which request.
    pub(crate) mappings: Vec<ContainerExtendedResourceRequest>,
}

/// One that has its devices.
#[derive(Clone, Debug)]
pub(crate) struct AllocatedClaim {
    pub(crate) claim: ExtendedClaim,
    pub(crate) allocation: Allocation,
    pub(crate) pod_uid: String,
}

/// What becomes of the claim for a pod's extended resources before the pod is bound.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtendedClaimWrite {
    /// It is made, given its devices, and named by the pod's status.
    Make(Box<NewClaim>),
    /// The pod's status names one that is no more, and the node needs none.
    Forget,
}

/// A claim that is made for a pod's extended resources.
#[derive(Clone, Debug, PartialEq)]
pub struct NewClaim {
    pub claim: Value,
    /// Of the claim's `status`.
    pub status: Value,
    /// Of the pod's `status.extendedResourceClaimStatus`.
    pub mappings: Value,
}

/// The class that has the devices of a resource on a node of which this is allocatable: none where a device plugin has them
/// (`shouldDelegateResourceToDRA`).
pub(crate) fn class_on<'a>(resource: &str, allocatable: &Amounts, classes: &'a ResourceClasses) -> Option<&'a str> {
    let is_of_plugin = allocatable.extended.get(resource).is_some_and(|it| *it > 0);
    classes.class_of(resource).filter(|_| !is_of_plugin)
}

/// Does the pod need such a claim on the node?
pub(crate) fn is_needed(pod: &PodInfo, node: DeviceNode<'_>, classes: &ResourceClasses) -> bool {
    let mut requests = pod.extended.iter().flat_map(|it| &it.requests);
    requests.any(|it| class_on(&it.resource, node.allocatable, classes).is_some())
}

/// The claim that the pod needs on the node (`createRequestsAndMappings`).
pub(crate) fn needed(pod: &PodInfo, node: DeviceNode<'_>, classes: &ResourceClasses) -> Option<ExtendedClaim> {
    let resources: BTreeSet<&str> = pod.extended.iter().flat_map(|it| &it.requests).map(|it| &*it.resource).collect();
    let (mut requests, mut mappings) = (Vec::new(), Vec::new());
    for resource in resources {
        let Some(class) = class_on(resource, node.allocatable, classes) else { continue };
        let of_resource = Requests::of(resource, &pod.extended);
        requests.extend(of_resource.all().map(|it| it.written(class)));
        mappings.extend(of_resource.mappings(resource));
    }
    requests.sort_by(|a, b| a.name.cmp(&b.name));
    let devices = DeviceClaim { requests: Some(requests), ..DeviceClaim::default() };
    let spec = ResourceClaimSpec { devices: Some(devices) };
    (!mappings.is_empty()).then_some(ExtendedClaim { spec, mappings })
}

/// A request of the claim.
struct Request {
    name: String,
    container_idx: usize,
    count: i64,
}

impl Request {
    fn of(container: &ExtendedResources, asked: &ExtendedRequest, count: i64) -> Self {
        let container_idx = container.container_idx;
        Self { name: format!("container-{container_idx}-request-{}", asked.idx), container_idx, count }
    }

    fn written(&self, class: &str) -> DeviceRequest {
        let exactly = ExactDeviceRequest {
            device_class_name: class.to_owned(),
            allocation_mode: Some("ExactCount".into()),
            count: Some(self.count),
            ..ExactDeviceRequest::default()
        };
        DeviceRequest { name: self.name.clone(), exactly: Some(exactly), ..DeviceRequest::default() }
    }
}

/// The requests for one resource, and which containers have their devices.
///
/// An init container that ends before others begin has the devices of those, and only what it needs beside them is asked for:
/// once for all of its like, as they run one after the other.
struct Requests<'a> {
    lasting: Vec<Request>,
    short_lived: Option<Request>,
    users: Vec<(&'a str, String)>,
}

impl<'a> Requests<'a> {
    fn of(resource: &str, containers: &'a [ExtendedResources]) -> Self {
        let asking = containers.iter().filter_map(|it| Some((it, it.request(resource)?)));
        let (short_lived, lasting): (Vec<_>, Vec<_>) = asking.partition(|it| it.0.is_short_lived);
        let mut requests = Self { lasting: Vec::new(), short_lived: None, users: Vec::new() };
        for (container, asked) in lasting {
            let request = Request::of(container, asked, asked.amount);
            requests.users.push((&container.container, request.name.clone()));
            requests.lasting.push(request);
        }
        let mut with_their_own = Vec::new();
        for (container, asked) in short_lived {
            let left = requests.share(container, asked.amount);
            if left > 0 {
                with_their_own.push(requests.users.len());
                requests.users.push((&container.container, String::new()));
                let own = Request::of(container, asked, left);
                if requests.short_lived.as_ref().is_none_or(|it| it.count < own.count) {
                    requests.short_lived = Some(own);
                }
            }
        }
        let name = requests.short_lived.as_ref().map(|it| it.name.clone()).unwrap_or_default();
        with_their_own.into_iter().for_each(|it| requests.users[it].1.clone_from(&name));
        requests
    }

    /// Gives the container the devices of those that begin later, and says how many it still needs.
    fn share(&mut self, container: &'a ExtendedResources, amount: i64) -> i64 {
        let mut left = amount;
        for later in self.lasting.iter().filter(|it| it.container_idx > container.container_idx) {
            if left <= 0 {
                break;
            }
            self.users.push((&container.container, later.name.clone()));
            left = left.saturating_sub(later.count);
        }
        left
    }

    fn all(&self) -> impl Iterator<Item = &Request> {
        self.short_lived.iter().chain(&self.lasting)
    }

    fn mappings(self, resource: &str) -> impl Iterator<Item = ContainerExtendedResourceRequest> {
        self.users.into_iter().map(move |(container, request_name)| ContainerExtendedResourceRequest {
            container_name: container.to_owned(),
            request_name,
            resource_name: resource.to_owned(),
        })
    }
}

impl AllocatedClaim {
    pub(crate) fn write(&self, pod: &PodInfo) -> ExtendedClaimWrite {
        let name = &pod.key.name;
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod.uid, "controller": true });
        let metadata = json!({
            "generateName": format!("{name}-extended-resources-"),
            "namespace": pod.key.namespace,
            "ownerReferences": [owner],
            "annotations": { ANNOTATION: "true" },
        });
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": self.claim.spec,
        });
        let user = json!({ "resource": "pods", "name": name, "uid": pod.uid });
        let status = json!({ "allocation": self.allocation, "reservedFor": [user] });
        ExtendedClaimWrite::Make(Box::new(NewClaim { claim, status, mappings: json!(self.claim.mappings) }))
    }
}

impl super::DeviceClaim {
    /// Was it made for the extended resources of this pod?
    pub(crate) fn is_for_extended_resources_of(&self, pod_uid: &str) -> bool {
        let is_marked = self.metadata.annotations.get(ANNOTATION).is_some_and(|it| it == "true");
        is_marked && self.metadata.controller().is_some_and(|it| it.uid == pod_uid)
    }
}
