//! Policies and bindings as they are asked: what has changed is compiled once, all else is kept.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use corten_api::resources::{
    MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS, VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use corten_cacher::watch_cache::{Caches, Snapshot};
use corten_meta::Resource;
use corten_metrics::Registry;
use corten_policies::{
    admission_policy::{Binding, MutatingPolicy, ValidatingPolicy},
    matching::{Criteria, Index},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::{measures::Measures, read_params::ReadParams};

/// Of each two, the policies and their bindings.
static SOURCES: [Resource; 4] = [
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
];

/// All admission policies of the cluster.
pub struct Policies {
    compiled: ArcSwap<Compiled>,
    kept: Mutex<Kept>,
    pub(crate) params: ReadParams,
    pub(crate) measures: Measures,
}

#[derive(Default)]
pub(crate) struct Compiled {
    /// Of what they were made. No source is ever at revision 0.
    revisions: [u64; 4],
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
    pub(crate) bindings: Vec<Arc<Binding>>,
}

/// What was compiled before, with the revision it was made of.
#[derive(Default)]
struct Kept {
    validating: ByName<ValidatingPolicy>,
    mutating: ByName<MutatingPolicy>,
    validating_bindings: ByName<Binding>,
    mutating_bindings: ByName<Binding>,
}

type ByName<T> = BTreeMap<String, (u64, Arc<T>)>;

impl<P> Default for Bound<P> {
    fn default() -> Self {
        Self { index: Index::default(), all: Vec::new() }
    }
}

impl Policies {
    /// What is counted of checks is registered.
    pub fn new(registry: &Registry) -> Self {
        let measures = Measures::new(registry);
        Self { compiled: ArcSwap::default(), kept: Mutex::default(), params: ReadParams::default(), measures }
    }

    pub(crate) fn compiled(&self, caches: &Caches) -> Arc<Compiled> {
        let sources = SOURCES.each_ref().map(|it| caches.get(it).expect("policies are rows of the table").snapshot());
        let revisions = sources.each_ref().map(|it| it.revision);
        let newest = self.compiled.load();
        if newest.revisions == revisions {
            return newest.clone();
        }
        drop(newest);
        let mut kept = self.kept.lock();
        let newest = self.compiled.load_full();
        // Whoever waited for the turn finds what is newer than its own sources, too.
        if newest.revisions.iter().zip(&revisions).all(|(has, wants)| has >= wants) {
            return newest;
        }
        let Kept { validating, mutating, validating_bindings, mutating_bindings } = &mut *kept;
        bring_up(validating, &sources[0], ValidatingPolicy::read);
        bring_up(validating_bindings, &sources[1], Binding::read);
        bring_up(mutating, &sources[2], MutatingPolicy::read);
        bring_up(mutating_bindings, &sources[3], Binding::read);
        let compiled = Arc::new(Compiled {
            revisions,
            validating: bound(validating, validating_bindings, |it| &it.policy.criteria),
            mutating: bound(mutating, mutating_bindings, |it| &it.policy.criteria),
        });
        self.compiled.store(compiled.clone());
        compiled
    }
}

fn bring_up<T>(kept: &mut ByName<T>, objects: &Snapshot, read: impl Fn(&Value) -> T) {
    let mut before = std::mem::take(kept);
    for stored in objects.iter() {
        let same = before.remove(stored.name()).filter(|it| it.0 == stored.revision());
        let entry = same.unwrap_or_else(|| (stored.revision(), Arc::new(read(&stored.parse()))));
        kept.insert(stored.name().to_owned(), entry);
    }
}

/// A policy without a binding is about nothing.
fn bound<P>(policies: &ByName<P>, bindings: &ByName<Binding>, criteria: fn(&P) -> &Criteria) -> Bound<P> {
    let mut of_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
    for (_, binding) in bindings.values() {
        of_policy.entry(&binding.policy).or_default().push(binding.clone());
    }
    let mut bound = Bound::default();
    for (name, (_, policy)) in policies {
        let Some(bindings) = of_policy.remove(&**name) else { continue };
        bound.index.add(bound.all.len(), criteria(policy));
        bound.all.push(BoundPolicy { policy: policy.clone(), bindings });
    }
    bound
}
