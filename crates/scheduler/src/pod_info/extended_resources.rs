//! What a pod's containers ask for of extended resources: a device plugin has them, or a claim that is made for the pod
//! (KEP-5004).

use crate::projections::{Container, PodSpec};

/// A container that asks for extended resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExtendedResources {
    /// Its place among the init containers, then the containers.
    pub(crate) container_idx: usize,
    pub(crate) container: String,
    /// An init container that ends before the containers begin.
    pub(crate) is_short_lived: bool,
    pub(crate) requests: Vec<ExtendedRequest>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExtendedRequest {
    pub(crate) resource: String,
    /// Its place among all that the container asks for, CPU and memory among them, in the order of names.
    pub(crate) idx: usize,
    pub(crate) amount: i64,
}

impl ExtendedResources {
    /// Those of all containers that ask for any.
    pub(crate) fn all(spec: &PodSpec) -> Vec<Self> {
        let init = spec.init_containers.iter().map(|it| (it, it.restart_policy != "Always"));
        let containers = spec.containers.iter().map(|it| (it, false));
        let all = init.chain(containers).enumerate();
        all.filter_map(|(idx, (container, is_short_lived))| Self::of(idx, container, is_short_lived)).collect()
    }

    fn of(container_idx: usize, container: &Container, is_short_lived: bool) -> Option<Self> {
        let requests = container.resources.requests.iter().enumerate();
        let requests: Vec<ExtendedRequest> = requests
            .map(|(idx, (name, amount))| ExtendedRequest { resource: name.clone(), idx, amount: amount.value() })
            .filter(|it| it.resource.contains('/') && it.amount > 0)
            .collect();
        let container = container.name.clone();
        (!requests.is_empty()).then_some(Self { container_idx, container, is_short_lived, requests })
    }

    pub(crate) fn request(&self, resource: &str) -> Option<&ExtendedRequest> {
        self.requests.iter().find(|it| it.resource == resource)
    }
}
