//! How much of a node a pod asks for.

use std::collections::BTreeMap;

use corten_api::scheduling::{self, aggregate};

use crate::projections::{Container, PodSpec, Quantities};

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

/// What the whole pod asks for.
pub(crate) fn requested(spec: &PodSpec) -> Amounts {
    let mut sum = of_containers(spec, |it| Amounts::of(&it.resources.requests));
    override_with(&mut sum, &spec.resources.requests);
    sum.add(&Amounts::of(&spec.overhead));
    sum
}

/// As [`requested`], with a guess for containers that ask for nothing.
pub(crate) fn guessed(spec: &PodSpec) -> Amounts {
    let mut sum = of_containers(spec, |it| {
        let mut amounts = Amounts::of(&it.resources.requests);
        if !it.resources.requests.contains_key("cpu") && !spec.resources.requests.contains_key("cpu") {
            amounts.cpu_millis = UNASKED_CPU_MILLIS;
        }
        if !it.resources.requests.contains_key("memory") && !spec.resources.requests.contains_key("memory") {
            amounts.memory_bytes = UNASKED_MEMORY_BYTES;
        }
        amounts
    });
    override_with(&mut sum, &spec.resources.requests);
    sum.add(&Amounts::of(&spec.overhead));
    sum
}

fn of_containers(spec: &PodSpec, amounts: impl Fn(&Container) -> Amounts) -> Amounts {
    let init = spec.init_containers.iter().map(|it| (amounts(it), it.restart_policy == "Always"));
    aggregate(spec.containers.iter().map(&amounts), init)
}

/// What the pod as a whole asks for goes before the sum of its containers.
fn override_with(sum: &mut Amounts, pod_level: &Quantities) {
    for (name, quantity) in pod_level {
        match &**name {
            "cpu" => sum.cpu_millis = quantity.milli_value(),
            "memory" => sum.memory_bytes = quantity.value(),
            it if it.starts_with("hugepages-") => {
                sum.extended.insert(name.clone(), quantity.value());
            }
            _ => {}
        }
    }
}
