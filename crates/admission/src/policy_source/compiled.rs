//! Policies and bindings as they are asked: what has changed is compiled once, all else is kept.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::resources::{
    MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS, VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use corten_cacher::{
    derived::{ByName, Derived, Made, by_name, by_name_or_same},
    watch_cache::Caches,
};
use corten_meta::{Resource, Time};
use corten_metrics::Registry;
use corten_policies::{
    admission_policy::{Binding, MutatingPolicy, Policy, ValidatingPolicy},
    matching::{Criteria, Index},
};

use serde_json::Value;

use super::{
    failing::{FailingPolicies, FailingPolicy},
    measures::Measures,
    read_params::ReadParams,
};

/// Of each two, the policies and their bindings.
static SOURCES: [Resource; 4] = [
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
];

/// All admission policies of the cluster.
pub struct Policies {
    compiled: Derived<Compiled, 4>,
    pub(crate) params: ReadParams,
    pub(crate) measures: Measures,
    failing: FailingPolicies,
}

#[derive(Default)]
pub(crate) struct Compiled {
    objects: Objects,
    pub(crate) validating: Bound<ValidatingPolicy>,
    pub(crate) mutating: Bound<MutatingPolicy>,
}

/// Policies that are bound, by their names.
pub(crate) struct Bound<P> {
    pub(crate) index: Index,
    pub(crate) all: Vec<BoundPolicy<P>>,
}

pub(crate) struct BoundPolicy<P> {
    pub(crate) policy: Arc<P>,
    /// Of the policy.
    pub(crate) revision: u64,
    pub(crate) bindings: Vec<Arc<Binding>>,
}

/// What each object was compiled to.
#[derive(Default)]
struct Objects {
    validating: ByName<ValidatingPolicy>,
    mutating: ByName<MutatingPolicy>,
    validating_bindings: ByName<Binding>,
    mutating_bindings: ByName<Binding>,
}

impl<P> Default for Bound<P> {
    fn default() -> Self {
        Self { index: Index::default(), all: Vec::new() }
    }
}

impl Policies {
    /// What is counted of checks is registered.
    pub fn new(registry: &Registry) -> Self {
        let measures = Measures::new(registry);
        Self {
            compiled: Derived::new(Compiled::default()),
            params: ReadParams::default(),
            measures,
            failing: FailingPolicies::default(),
        }
    }

    pub(crate) fn compiled(&self, caches: &Caches) -> Arc<Made<Compiled, 4>> {
        let look = || {
            let sources =
                SOURCES.each_ref().map(|it| caches.get(it).expect("policies are rows of the table").snapshot());
            (sources.each_ref().map(|it| it.revision), sources)
        };
        self.compiled.get(
            look,
            |before, [policies, bindings, mutating_policies, mutating_bindings]| {
                Compiled::of(Objects {
                    validating: by_name_or_same(&before.objects.validating, &policies, |it, before| {
                        same(before, &it.parse(), |it| &it.policy, ValidatingPolicy::read)
                    }),
                    validating_bindings: by_name(&before.objects.validating_bindings, &bindings, |it| {
                        Binding::read(&it.parse())
                    }),
                    mutating: by_name_or_same(&before.objects.mutating, &mutating_policies, |it, before| {
                        same(before, &it.parse(), |it| &it.policy, MutatingPolicy::read)
                    }),
                    mutating_bindings: by_name(&before.objects.mutating_bindings, &mutating_bindings, |it| {
                        Binding::read(&it.parse())
                    }),
                })
            },
            |_, now| {
                self.measures.make_room(|it| now.objects.validating.contains_key(it));
                self.failing.retain(|name, revision| now.objects.is_mutating(name, revision));
                self.params.sweep();
            },
        )
    }

    /// The mutating policies that fail now, by their names.
    pub fn failing(&self, caches: &Caches) -> Vec<(String, FailingPolicy)> {
        let compiled = self.compiled(caches);
        // One that was asked before it was changed may have said so after that.
        self.failing.retain(|name, revision| compiled.objects.is_mutating(name, revision));
        self.failing.all()
    }

    /// Notes what came of asking a mutating policy: an error, or none.
    pub(crate) fn note(&self, bound: &BoundPolicy<MutatingPolicy>, error: Option<&str>, now: Time) {
        let policy = &bound.policy.policy;
        match error {
            Some(error) => self.failing.failed(&policy.name, bound.revision, error, policy.ignores_errors, now),
            None => self.failing.worked(&policy.name),
        }
    }
}

impl Objects {
    /// Is there such a mutating policy, of this revision?
    fn is_mutating(&self, name: &str, revision: u64) -> bool {
        self.mutating.get(name).is_some_and(|it| it.0 == revision)
    }
}

impl Compiled {
    fn of(objects: Objects) -> Self {
        let validating = bound(&objects.validating, &objects.validating_bindings, |it| &it.policy.criteria);
        let mutating = bound(&objects.mutating, &objects.mutating_bindings, |it| &it.policy.criteria);
        Self { objects, validating, mutating }
    }
}

/// What is compiled stays where only the status or metadata of a policy has changed.
fn same<P>(before: Option<&Arc<P>>, object: &Value, of: fn(&P) -> &Policy, read: fn(&Value) -> P) -> Arc<P> {
    let known = before.filter(|it| of(it).is_read_of(object));
    known.cloned().unwrap_or_else(|| Arc::new(read(object)))
}

/// A policy without a binding is about nothing.
fn bound<P>(policies: &ByName<P>, bindings: &ByName<Binding>, criteria: fn(&P) -> &Criteria) -> Bound<P> {
    let mut of_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
    for (_, binding) in bindings.values() {
        of_policy.entry(&binding.policy).or_default().push(binding.clone());
    }
    let mut bound = Bound::default();
    for (name, (revision, policy)) in policies {
        let Some(bindings) = of_policy.remove(&**name) else { continue };
        bound.index.add(bound.all.len(), criteria(policy));
        bound.all.push(BoundPolicy { policy: policy.clone(), revision: *revision, bindings });
    }
    bound
}
