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
use corten_metrics::Metrics;
use corten_policies::{
    admission_policy::{Binding, MutatingPolicy, Policy, ValidatingPolicy},
    matching::{Criteria, Index},
};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    failing::{FailingPolicies, FailingPolicy, PolicyFault, PolicyOperation},
    measures::Measures,
    misconfigured::{Misconfigured, MisconfiguredBindings},
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
    misconfigured: MisconfiguredBindings,
}

#[derive(Default)]
pub(crate) struct Compiled {
    objects: Objects,
    pub(crate) validating: BoundPolicies<ValidatingPolicy>,
    pub(crate) mutating: BoundPolicies<MutatingPolicy>,
}

/// Policies that are bound, by their names.
pub(crate) struct BoundPolicies<P> {
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

impl<P> Default for BoundPolicies<P> {
    fn default() -> Self {
        Self { index: Index::default(), all: Vec::new() }
    }
}

impl Policies {
    /// What is counted of checks is registered.
    pub fn new(metrics: &Metrics) -> Self {
        let measures = Measures::new(metrics);
        Self {
            compiled: Derived::new(Compiled::default()),
            params: ReadParams::default(),
            measures,
            failing: FailingPolicies::default(),
            misconfigured: MisconfiguredBindings::default(),
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
                        self.same(before, &it.parse(), |it| &it.policy, ValidatingPolicy::read)
                    }),
                    validating_bindings: by_name(&before.objects.validating_bindings, &bindings, |it| {
                        Binding::read(&it.parse())
                    }),
                    mutating: by_name_or_same(&before.objects.mutating, &mutating_policies, |it, before| {
                        self.same(before, &it.parse(), |it| &it.policy, MutatingPolicy::read)
                    }),
                    mutating_bindings: by_name(&before.objects.mutating_bindings, &mutating_bindings, |it| {
                        Binding::read(&it.parse())
                    }),
                })
            },
            |_, now| {
                self.measures.make_room(&now.objects.validating, &now.objects.mutating);
                self.forget(&now.objects);
                self.params.sweep();
            },
        )
    }

    /// What is compiled stays where only the status or metadata of a policy has changed.
    fn same<P>(&self, before: Option<&Arc<P>>, object: &Value, of: fn(&P) -> &Policy, read: fn(&Value) -> P) -> Arc<P> {
        let known = before.filter(|it| of(it).is_read_of(object));
        known.cloned().unwrap_or_else(|| {
            let begun = Instant::now();
            let policy = Arc::new(read(object));
            self.measures.cel.compiled(begun.elapsed());
            policy
        })
    }

    /// The policies that fail now, or deny all, with their kind and name, in order.
    pub fn failing(&self, caches: &Caches, now: Time) -> Vec<(Resource, String, FailingPolicy)> {
        // One that was asked before it was changed may have said so after that.
        self.forget(&self.compiled(caches).objects);
        let mut all = self.failing.all(now);
        all.extend(self.misconfigured.all(now));
        all
    }

    fn forget(&self, now: &Objects) {
        self.failing.retain(|of, name, revision| now.has(of, name, revision));
        self.misconfigured
            .retain(|of, name, revision, binding| now.has(of, name, revision) && now.has_binding(of, binding));
    }

    /// Notes that a binding could not give a policy its parameters, or could.
    pub(crate) fn note_binding(
        &self,
        resource: Resource,
        (policy, revision): (&Policy, u64),
        (binding, namespace): (&str, &str),
        error: Option<&str>,
        now: Time,
    ) {
        let asked = Misconfigured { resource, policy: &policy.name, revision, binding, namespace };
        match error {
            Some(error) => self.misconfigured.failed(&asked, error, policy.ignores_errors, now),
            None => self.misconfigured.worked(&asked),
        }
    }

    /// Notes what came of asking a mutating policy: an error, or none.
    pub(crate) fn note_mutating(&self, bound: &BoundPolicy<MutatingPolicy>, fault: Option<&PolicyFault>, now: Time) {
        self.note(&MUTATING_ADMISSION_POLICIES, (&bound.policy.policy, bound.revision), "", fault, now);
    }

    /// Notes what came of asking a validating policy about an operation.
    pub(crate) fn note_validating(
        &self,
        bound: &BoundPolicy<ValidatingPolicy>,
        operation: &'static str,
        fault: Option<&PolicyFault>,
        now: Time,
    ) {
        self.note(&VALIDATING_ADMISSION_POLICIES, (&bound.policy.policy, bound.revision), operation, fault, now);
    }

    fn note(
        &self,
        resource: &Resource,
        (policy, revision): (&Policy, u64),
        operation: &'static str,
        fault: Option<&PolicyFault>,
        now: Time,
    ) {
        let asked = || PolicyOperation { resource: resource.clone(), policy: policy.name.clone(), operation };
        match fault {
            Some(fault) => self.failing.failed(asked(), revision, fault, policy.ignores_errors, now),
            None => self.failing.worked(asked, now),
        }
    }
}

impl Objects {
    /// Is there such a binding of this kind of policies?
    fn has_binding(&self, of: &Resource, name: &str) -> bool {
        let bindings =
            if *of == VALIDATING_ADMISSION_POLICIES { &self.validating_bindings } else { &self.mutating_bindings };
        bindings.contains_key(name)
    }

    /// Is there such a policy, of this revision?
    fn has(&self, of: &Resource, name: &str, revision: u64) -> bool {
        if *of == VALIDATING_ADMISSION_POLICIES {
            self.validating.get(name).is_some_and(|it| it.0 == revision)
        } else {
            self.mutating.get(name).is_some_and(|it| it.0 == revision)
        }
    }
}

impl Compiled {
    fn of(objects: Objects) -> Self {
        let validating = bound(&objects.validating, &objects.validating_bindings, |it| &it.policy.criteria);
        let mutating = bound(&objects.mutating, &objects.mutating_bindings, |it| &it.policy.criteria);
        Self { objects, validating, mutating }
    }
}

/// A policy without a binding is about nothing.
fn bound<P>(policies: &ByName<P>, bindings: &ByName<Binding>, criteria: fn(&P) -> &Criteria) -> BoundPolicies<P> {
    let mut of_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
    for (_, binding) in bindings.values() {
        of_policy.entry(&binding.policy).or_default().push(binding.clone());
    }
    let mut bound = BoundPolicies::default();
    for (name, (revision, policy)) in policies {
        let Some(bindings) = of_policy.remove(&**name) else { continue };
        bound.index.add(bound.all.len(), criteria(policy));
        bound.all.push(BoundPolicy { policy: policy.clone(), revision: *revision, bindings });
    }
    bound
}
