//! Policies and bindings as they are asked: what has changed is compiled once, all else is kept.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

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
    /// Of the policy and its bindings together: another one after any change of them.
    pub(crate) edition: u64,
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
                self.forget(now);
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
        self.forget(&self.compiled(caches));
        let mut all = self.failing.all(now);
        all.extend(self.misconfigured.all(now));
        all
    }

    /// What a policy did that is not bound any more, or as something else, is nobody's concern.
    fn forget(&self, now: &Compiled) {
        self.failing.retain(|of, name, edition| now.has(of, name, edition));
        self.misconfigured.retain(|of, name, edition, _| now.has(of, name, edition));
    }

    /// Notes that a binding could not give a policy its parameters, or could.
    pub(crate) fn note_binding(
        &self,
        resource: Resource,
        (policy, edition): (&Policy, u64),
        (binding, namespace): (&str, &str),
        error: Option<&str>,
        now: Time,
    ) {
        let asked = Misconfigured { resource, policy: &policy.name, edition, binding, namespace };
        match error {
            Some(error) => self.misconfigured.failed(&asked, error, policy.ignores_errors, now),
            None => self.misconfigured.worked(&asked),
        }
    }

    /// Notes what came of asking a mutating policy: an error, or none.
    pub(crate) fn note_mutating(&self, bound: &BoundPolicy<MutatingPolicy>, fault: Option<&PolicyFault>, now: Time) {
        self.note(&MUTATING_ADMISSION_POLICIES, (&bound.policy.policy, bound.edition), "", fault, now);
    }

    /// Notes what came of asking a validating policy about an operation.
    pub(crate) fn note_validating(
        &self,
        bound: &BoundPolicy<ValidatingPolicy>,
        operation: &'static str,
        fault: Option<&PolicyFault>,
        now: Time,
    ) {
        self.note(&VALIDATING_ADMISSION_POLICIES, (&bound.policy.policy, bound.edition), operation, fault, now);
    }

    fn note(
        &self,
        resource: &Resource,
        (policy, edition): (&Policy, u64),
        operation: &'static str,
        fault: Option<&PolicyFault>,
        now: Time,
    ) {
        let asked = || PolicyOperation { resource: resource.clone(), policy: policy.name.clone(), operation };
        match fault {
            Some(fault) => self.failing.failed(asked(), edition, fault, policy.ignores_errors, now),
            None => self.failing.worked(asked, now),
        }
    }
}

impl Compiled {
    fn of(objects: Objects) -> Self {
        let validating = bound(&objects.validating, &objects.validating_bindings, |it| &it.policy.criteria);
        let mutating = bound(&objects.mutating, &objects.mutating_bindings, |it| &it.policy.criteria);
        Self { objects, validating, mutating }
    }

    /// Is there such a bound policy, of this edition?
    fn has(&self, of: &Resource, name: &str, edition: u64) -> bool {
        if *of == VALIDATING_ADMISSION_POLICIES {
            self.validating.all.iter().any(|it| it.edition == edition && it.policy.policy.name == name)
        } else {
            self.mutating.all.iter().any(|it| it.edition == edition && it.policy.policy.name == name)
        }
    }
}

/// A policy without a binding is about nothing.
fn bound<P>(policies: &ByName<P>, bindings: &ByName<Binding>, criteria: fn(&P) -> &Criteria) -> BoundPolicies<P> {
    let mut of_policy: BTreeMap<&str, (DefaultHasher, Vec<Arc<Binding>>)> = BTreeMap::new();
    for (name, (revision, binding)) in bindings {
        let (edition, bindings) = of_policy.entry(&binding.policy).or_default();
        (name, revision).hash(edition);
        bindings.push(binding.clone());
    }
    let mut bound = BoundPolicies::default();
    for (name, (revision, policy)) in policies {
        let Some((mut edition, bindings)) = of_policy.remove(&**name) else { continue };
        revision.hash(&mut edition);
        bound.index.add(bound.all.len(), criteria(policy));
        bound.all.push(BoundPolicy { policy: policy.clone(), edition: edition.finish(), bindings });
    }
    bound
}
