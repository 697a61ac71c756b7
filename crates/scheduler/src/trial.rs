//! One node as it would be with other pods on it: what preemption asks about, and pods that are nominated to it.

use std::{collections::BTreeMap, sync::Arc};

use corten_meta::Key;

use crate::{PodInfo, among::Among, pod_info::HostPort, requests::Amounts, snapshot::Row};

/// See the module's documentation. What the filters do not read for the pod is not copied.
pub(crate) struct Trial<'a> {
    pod: &'a PodInfo,
    base: Row<'a>,
    pub(crate) among: Among<'a>,
    n_pods: usize,
    requested: Amounts,
    pods: Option<BTreeMap<Key, Arc<PodInfo>>>,
    ports: Option<BTreeMap<HostPort, usize>>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(pod: &'a PodInfo, base: Row<'a>, among: Among<'a>) -> Self {
        let pods = (!pod.claims.is_empty()).then(|| base.pods.clone());
        let ports = (!pod.ports.is_empty()).then(|| base.ports.clone());
        Self { pod, base, among, n_pods: base.n_pods, requested: base.requested.clone(), pods, ports }
    }

    pub(crate) fn row(&self) -> Row<'_> {
        Row {
            requested: &self.requested,
            n_pods: self.n_pods,
            pods: self.pods.as_ref().unwrap_or(self.base.pods),
            ports: self.ports.as_ref().unwrap_or(self.base.ports),
            ..self.base
        }
    }

    pub(crate) fn add(&mut self, other: &'a Arc<PodInfo>) {
        self.n_pods += 1;
        self.requested.add(&other.requested);
        if let Some(pods) = &mut self.pods {
            pods.insert(other.key.clone(), Arc::clone(other));
        }
        if let Some(ports) = &mut self.ports {
            other.ports.iter().for_each(|it| *ports.entry(it.clone()).or_default() += 1);
        }
        self.among.add(self.pod, other, &self.base);
    }

    /// A sum that has stopped at the end of all numbers stays there: what is left is not known, and nobody is evicted for it.
    pub(crate) fn remove(&mut self, other: &'a Arc<PodInfo>) {
        self.n_pods -= 1;
        if !self.requested.is_full() {
            self.requested.subtract(&other.requested);
        }
        if let Some(pods) = &mut self.pods {
            pods.remove(&other.key);
        }
        if let Some(ports) = &mut self.ports {
            for port in &other.ports {
                if let Some(count) = ports.get_mut(port) {
                    *count -= 1;
                    if *count == 0 {
                        ports.remove(port);
                    }
                }
            }
        }
        self.among.remove(self.pod, other, &self.base);
    }
}
