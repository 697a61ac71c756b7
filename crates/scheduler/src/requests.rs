//! How much of a node a pod asks for.

use std::collections::BTreeMap;

use corten_api::scheduling::{self, Amounts as _, aggregate};

use crate::projections::{Container, ContainerStatus, Pod, Quantities, Requirements};

/// Amounts of what a node has and a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) cpu_millis: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) ephemeral_storage_bytes: i64,
    /// Everything else by name: `nvidia.com/gpu`, `hugepages-2Mi`.
    pub(crate) extended: BTreeMap<String, i64>,
}

/// What a container without a request is taken to use when nodes are compared (never when they are filtered).
const UNASKED_CPU_MILLIS: i64 = 100;
const UNASKED_MEMORY_BYTES: i64 = 200 * 1024 * 1024;

impl Amounts {
    /// All but `pods`, which is a bound on the number of pods and no amount a pod asks for.
    pub(crate) fn of(quantities: &Quantities) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in quantities {
            match &**name {
                "cpu" => amounts.cpu_millis = quantity.milli_value(),
                "memory" => amounts.memory_bytes = quantity.value(),
                "ephemeral-storage" => amounts.ephemeral_storage_bytes = quantity.value(),
                "pods" => {}
                _ => {
                    amounts.extended.insert(name.clone(), quantity.value());
                }
            }
        }
        amounts
    }

    /// What is asked for may be as much as a number can say: sums stop there, and no node has it.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu_millis = self.cpu_millis.saturating_add(other.cpu_millis);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.ephemeral_storage_bytes = self.ephemeral_storage_bytes.saturating_add(other.ephemeral_storage_bytes);
        for (name, amount) in &other.extended {
            match self.extended.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*amount),
                None => {
                    self.extended.insert(name.clone(), *amount);
                }
            }
        }
    }

    /// Is any of it more than of the other?
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        self.cpu_millis > other.cpu_millis
            || self.memory_bytes > other.memory_bytes
            || self.ephemeral_storage_bytes > other.ephemeral_storage_bytes
            || self.extended.iter().any(|it| *it.1 > other.of_resource(it.0))
    }

    pub(crate) fn of_resource(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu_millis,
            "memory" => self.memory_bytes,
            "ephemeral-storage" => self.ephemeral_storage_bytes,
            _ => self.extended.get(name).copied().unwrap_or(0),
        }
    }

    /// Has a sum stopped at the end of all numbers? Then nothing can be taken from it: it is to be added up anew.
    pub(crate) fn is_full(&self) -> bool {
        let named = [self.cpu_millis, self.memory_bytes, self.ephemeral_storage_bytes];
        named.iter().chain(self.extended.values()).any(|it| matches!(*it, i64::MIN | i64::MAX))
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.cpu_millis = self.cpu_millis.saturating_sub(other.cpu_millis);
        self.memory_bytes = self.memory_bytes.saturating_sub(other.memory_bytes);
        self.ephemeral_storage_bytes = self.ephemeral_storage_bytes.saturating_sub(other.ephemeral_storage_bytes);
        for (name, amount) in &other.extended {
            if let Some(sum) = self.extended.get_mut(name) {
                *sum = sum.saturating_sub(*amount);
                if *sum == 0 {
                    self.extended.remove(name);
                }
            }
        }
    }
}

impl scheduling::Amounts for Amounts {
    fn add(&mut self, other: &Self) {
        Self::add(self, other);
    }

    fn raise_to(&mut self, other: &Self) {
        self.cpu_millis = self.cpu_millis.max(other.cpu_millis);
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        self.ephemeral_storage_bytes = self.ephemeral_storage_bytes.max(other.ephemeral_storage_bytes);
        for (name, amount) in &other.extended {
            let most = self.extended.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    /// Of what has a name the other may have thousands of others: they are left out.
    fn add_of_same_name(&mut self, other: &Self) {
        self.cpu_millis = self.cpu_millis.saturating_add(other.cpu_millis);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.ephemeral_storage_bytes = self.ephemeral_storage_bytes.saturating_add(other.ephemeral_storage_bytes);
        for (name, sum) in &mut self.extended {
            *sum = sum.saturating_add(other.extended.get(name).copied().unwrap_or(0));
        }
    }
}

/// What a node lacks of one resource.
pub(crate) struct Lack<'p> {
    pub(crate) resource: &'p str,
    pub(crate) missing: i64,
    pub(crate) wanted: i64,
    /// It never has as much.
    pub(crate) is_final: bool,
}

/// Calls `found` with each resource of which less is left of `total` than is wanted; of extended ones with those that are counted.
pub(crate) fn for_each_lack<'p>(
    wanted: &'p Amounts,
    total: &Amounts,
    used: &Amounts,
    is_counted: impl Fn(&str) -> bool,
    mut found: impl FnMut(Lack<'p>),
) {
    // As in `fitsRequest`: a pod that does not ask for a resource fits a node that has overspent it.
    let mut check = |resource: &'p str, wanted: i64, total: i64, used: i64| {
        let left = total.saturating_sub(used);
        if wanted > 0 && wanted > left {
            found(Lack { resource, missing: wanted.saturating_sub(left), wanted, is_final: wanted > total });
        }
    };
    check("cpu", wanted.cpu_millis, total.cpu_millis, used.cpu_millis);
    check("memory", wanted.memory_bytes, total.memory_bytes, used.memory_bytes);
    let storage = (total.ephemeral_storage_bytes, used.ephemeral_storage_bytes);
    check("ephemeral-storage", wanted.ephemeral_storage_bytes, storage.0, storage.1);
    for (name, wanted) in wanted.extended.iter().filter(|it| is_counted(it.0)) {
        let of = |it: &Amounts| it.extended.get(name).copied().unwrap_or(0);
        check(name, *wanted, of(total), of(used));
    }
}

/// What the whole pod asks for, or has where that is more (KEP-1287): a node that has not done a resize yet holds what it gave, and one
/// that never does it holds that alone.
pub(crate) fn requested(pod: &Pod) -> Amounts {
    let wanted = |container: &Container| Amounts::of(&container.resources.requests);
    of_pod(pod, wanted)
}

/// As [`requested`], with a guess for containers that ask for nothing.
pub(crate) fn guessed(pod: &Pod) -> Amounts {
    let of_the_pod = &pod.spec.resources.requests;
    of_pod(pod, |container| {
        let of_the_container = &container.resources.requests;
        let mut amounts = Amounts::of(of_the_container);
        if !of_the_container.contains_key("cpu") && !of_the_pod.contains_key("cpu") {
            amounts.cpu_millis = UNASKED_CPU_MILLIS;
        }
        if !of_the_container.contains_key("memory") && !of_the_pod.contains_key("memory") {
            amounts.memory_bytes = UNASKED_MEMORY_BYTES;
        }
        amounts
    })
}

fn of_pod(pod: &Pod, wanted: impl Fn(&Container) -> Amounts) -> Amounts {
    let (spec, status) = (&pod.spec, &pod.status);
    let is_infeasible = pod.is_resize_infeasible();
    let of = |container: &Container, statuses: &[ContainerStatus]| {
        let status = statuses.iter().find(|it| it.name == container.name);
        let had = status.and_then(|it| had(it.resources.as_ref()?, &it.allocated_resources));
        held(wanted(container), had, is_infeasible)
    };
    let init = spec.init_containers.iter();
    let init = init.map(|it| (of(it, &status.init_container_statuses), it.restart_policy == "Always"));
    let mut sum = aggregate(spec.containers.iter().map(|it| of(it, &status.container_statuses)), init);
    if !spec.resources.requests.is_empty() {
        let had = status.resources.as_ref().and_then(|it| had(it, &status.allocated_resources));
        override_with(&mut sum, &spec.resources.requests, had.as_ref(), is_infeasible);
    }
    sum.add(&Amounts::of(&spec.overhead));
    sum
}

/// What a node has said that it has given; nothing where it has only said that there is no request.
fn had(resources: &Requirements, allocated: &Quantities) -> Option<Amounts> {
    let mut amounts = Amounts::of(&resources.requests);
    amounts.raise_to(&Amounts::of(allocated));
    (!resources.requests.is_empty() || !allocated.is_empty()).then_some(amounts)
}

fn held(wanted: Amounts, had: Option<Amounts>, is_infeasible: bool) -> Amounts {
    match had {
        None => wanted,
        Some(had) => {
            let mut amounts = wanted;
            amounts.raise_to(&had);
            // What else it asks for cannot be changed, and a node need not tell of it.
            if is_infeasible {
                (amounts.cpu_millis, amounts.memory_bytes) = (had.cpu_millis, had.memory_bytes);
            }
            amounts
        }
    }
}

/// What the pod as a whole asks for goes before the sum of its containers.
fn override_with(sum: &mut Amounts, pod_level: &Quantities, had: Option<&Amounts>, is_infeasible: bool) {
    let amount = |name: &str, wanted: i64| match had.map(|it| it.of_resource(name)) {
        Some(had) if is_infeasible && !name.starts_with("hugepages-") => had,
        Some(had) => had.max(wanted),
        None => wanted,
    };
    for (name, quantity) in pod_level {
        match &**name {
            "cpu" => sum.cpu_millis = amount(name, quantity.milli_value()),
            "memory" => sum.memory_bytes = amount(name, quantity.value()),
            it if it.starts_with("hugepages-") => {
                sum.extended.insert(name.clone(), amount(name, quantity.value()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Millicores of a pod whose containers ask for these, with its status.
    fn cpu(containers: &Value, status: &Value) -> (i64, i64) {
        let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": containers }, "status": status });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        (requested(&pod).cpu_millis, guessed(&pod).cpu_millis)
    }

    fn asking(cpu: &str) -> Value {
        json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }])
    }

    /// Of a container that has `cpu` of the `allocated`.
    fn has(cpu: &str, allocated: &str, pending: &str) -> Value {
        let status = json!({
            "name": "c", "resources": { "requests": { "cpu": cpu } }, "allocatedResources": { "cpu": allocated },
        });
        let condition = json!({ "type": "PodResizePending", "status": "True", "reason": pending });
        json!({ "containerStatuses": [status], "conditions": [condition] })
    }

    /// As in `PodRequests` of k8s.io/component-helpers/resource, with `UseStatusResources`.
    #[test]
    fn what_a_node_has_given_counts_until_it_is_taken_back() {
        let cases = [
            ("nothing said yet", json!({}), "2", 2_000),
            ("done", has("2", "2", ""), "2", 2_000),
            ("more, which the node has not done", has("1", "1", "Deferred"), "2", 2_000),
            ("more, which it never does", has("1", "1", "Infeasible"), "10000", 1_000),
            ("less, which it has not done", has("3", "3", "Deferred"), "1", 3_000),
            ("less, which is allowed and not done", has("3", "1", ""), "1", 3_000),
            ("less, which it never does", has("3", "3", "Infeasible"), "1", 3_000),
        ];
        for (what, status, wanted, expected) in cases {
            assert_eq!(cpu(&asking(wanted), &status), (expected, expected), "{what}");
        }
        let of_another =
            json!({ "containerStatuses": [{ "name": "other", "resources": { "requests": { "cpu": "8" } } }] });
        assert_eq!(cpu(&asking("2"), &of_another).0, 2_000);
        // What asks for nothing has no request to be told of.
        let empty = json!({ "containerStatuses": [{ "name": "c", "resources": {} }] });
        assert_eq!(cpu(&json!([{ "name": "c" }]), &empty), (0, UNASKED_CPU_MILLIS));
    }

    #[test]
    fn what_cannot_be_resized_is_held_whether_a_node_tells_of_it_or_not() {
        let (gpu, pages) = ("example.com/gpu", "hugepages-2Mi");
        let wanted = json!({ "cpu": "10000", gpu: "1", pages: "4Mi" });
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": {
                "containers": [{ "name": "c", "resources": { "requests": wanted } }],
                "resources": { "requests": { "cpu": "10000", pages: "4Mi" } },
            },
            "status": {
                "resources": { "requests": { "cpu": "1" } },
                "containerStatuses": has("1", "1", "")["containerStatuses"],
                "conditions": [{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }],
            },
        });
        let amounts = requested(&serde_json::from_value(pod).expect("a pod"));
        assert_eq!((amounts.cpu_millis, amounts.of_resource(gpu), amounts.of_resource(pages)), (1_000, 1, 4 << 20));
    }

    #[test]
    fn what_the_pod_as_a_whole_has_goes_before_the_sum_of_its_containers() {
        let of = |wanted: &str, had: &str, pending: &str| {
            let pod = json!({
                "metadata": { "name": "p" },
                "spec": { "containers": asking("1"), "resources": { "requests": { "cpu": wanted } } },
                "status": {
                    "resources": { "requests": { "cpu": had } }, "allocatedResources": { "cpu": had },
                    "conditions": [{ "type": "PodResizePending", "status": "True", "reason": pending }],
                },
            });
            requested(&serde_json::from_value(pod).expect("a pod")).cpu_millis
        };
        let all = [of("2", "2", ""), of("4", "2", "Deferred"), of("400", "2", "Infeasible"), of("1", "2", "Deferred")];
        assert_eq!(all, [2_000, 4_000, 2_000, 2_000]);
    }

    #[test]
    fn a_sidecar_holds_what_it_has_too() {
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": {
                "initContainers": [{ "name": "s", "restartPolicy": "Always", "resources": { "requests": { "cpu": "1" } } }],
                "containers": asking("1"),
            },
            "status": { "initContainerStatuses": [{ "name": "s", "resources": { "requests": { "cpu": "3" } } }] },
        });
        assert_eq!(requested(&serde_json::from_value(pod).expect("a pod")).cpu_millis, 4_000);
    }
}
