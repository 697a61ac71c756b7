//! Which pods belong together, for pods that have no topology spread constraints of their own: those of the same Services and of
//! the same workload (`helper.DefaultSelector`).

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::{REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS};
use corten_meta::{Key, LabelSelector, Named, ObjectMeta, Resource, Selector, selector::Requirement};
use corten_reconcile::Projection;
use serde::Deserialize;

use crate::pod_info::{PodInfo, Workload};

macro_rules! by_labels {
    ($name:ident, $resource:ident) => {
        #[doc = concat!("The fields of a ", stringify!($name), " that the scheduler reads.")]
        #[derive(Clone, Debug, Default, Deserialize)]
        pub struct $name {
            pub metadata: ObjectMeta,
            #[serde(default)]
            spec: LabelsSpec,
        }

        impl Named for $name {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
        }
        impl Projection for $name {
            const RESOURCE: Resource = $resource;
        }
    };
}

macro_rules! by_selector {
    ($name:ident, $resource:ident) => {
        #[doc = concat!("The fields of a ", stringify!($name), " that the scheduler reads.")]
        #[derive(Clone, Debug, Default, Deserialize)]
        pub struct $name {
            pub metadata: ObjectMeta,
            #[serde(default)]
            spec: SelectorSpec,
        }

        impl Named for $name {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
        }
        impl Projection for $name {
            const RESOURCE: Resource = $resource;
        }
    };
}

by_labels!(Service, SERVICES);
by_labels!(ReplicationController, REPLICATION_CONTROLLERS);
by_selector!(ReplicaSet, REPLICA_SETS);
by_selector!(StatefulSet, STATEFUL_SETS);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LabelsSpec {
    selector: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SelectorSpec {
    selector: Option<LabelSelector>,
}

/// An object that groups pods.
#[derive(Clone, Debug)]
pub enum Grouping {
    Service(Service),
    ReplicationController(ReplicationController),
    ReplicaSet(ReplicaSet),
    StatefulSet(StatefulSet),
}

/// All that group pods.
#[derive(Default)]
pub(crate) struct Groupings {
    /// The labels that each Service selects by.
    services: BTreeMap<Key, BTreeMap<String, String>>,
    workloads: BTreeMap<(Workload, Key), Vec<Requirement>>,
}

impl Groupings {
    pub(crate) fn set(&mut self, grouping: Grouping) {
        let labels = |it: Option<BTreeMap<String, String>>| it.unwrap_or_default();
        let selected = |it: Option<LabelSelector>| it.map(|it| it.requirements().collect()).unwrap_or_default();
        let (kind, key, requirements) = match grouping {
            Grouping::Service(it) => {
                self.services.insert(it.metadata.key(), labels(it.spec.selector));
                return;
            }
            Grouping::ReplicationController(it) => {
                let requirements = labels(it.spec.selector).iter().map(is_equal).collect();
                (Workload::ReplicationController, it.metadata.key(), requirements)
            }
            Grouping::ReplicaSet(it) => (Workload::ReplicaSet, it.metadata.key(), selected(it.spec.selector)),
            Grouping::StatefulSet(it) => (Workload::StatefulSet, it.metadata.key(), selected(it.spec.selector)),
        };
        self.workloads.insert((kind, key), requirements);
    }

    pub(crate) fn remove(&mut self, resource: &Resource, key: &Key) {
        if *resource == SERVICES {
            self.services.remove(key);
        } else if let Some(workload) = Workload::of(resource) {
            self.workloads.remove(&(workload, key.clone()));
        }
    }

    /// Does the pod belong together with others, perhaps?
    pub(crate) fn is_grouped(&self, pod: &PodInfo) -> bool {
        let namespace = &*pod.key.namespace;
        let first = self.services.range(Key::new(namespace, "")..).next();
        pod.owner.is_some() || first.is_some_and(|it| it.0.namespace == namespace)
    }

    /// What the pods have in common with which this one belongs together; nothing where it belongs to none.
    pub(crate) fn selector_of(&self, pod: &PodInfo) -> Option<Selector> {
        let namespace = &*pod.key.namespace;
        let services = self.services.range(Key::new(namespace, "")..).take_while(|it| it.0.namespace == namespace);
        // A Service without a selector is about no pod.
        let is_of = |it: &BTreeMap<String, String>| {
            !it.is_empty() && it.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
        };
        let mut requirements: Vec<Requirement> =
            services.filter(|it| is_of(it.1)).flat_map(|it| it.1.iter().map(is_equal)).collect();
        if let Some(owner) = &pod.owner {
            let key = (owner.workload, Key::new(namespace, &*owner.name));
            requirements.extend(self.workloads.get(&key).into_iter().flatten().cloned());
        }
        (!requirements.is_empty()).then(|| requirements.into_iter().collect())
    }
}

fn is_equal((key, value): (&String, &String)) -> Requirement {
    Requirement::In(key.clone(), BTreeSet::from([value.clone()]))
}
