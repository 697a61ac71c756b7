//! The labels of namespaces, which terms of pod affinity select by (`namespaceSelector`).

use std::collections::BTreeMap;

use corten_meta::{Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::Deserialize;

/// The fields of a Namespace that the scheduler reads.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Namespace {
    pub metadata: ObjectMeta,
}

impl Named for Namespace {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Namespace {
    const RESOURCE: Resource = corten_api::resources::NAMESPACES;
}

/// The labels of all namespaces there are.
#[derive(Debug, Default)]
pub(crate) struct NamespaceLabels(BTreeMap<String, BTreeMap<String, String>>);

static NONE: BTreeMap<String, String> = BTreeMap::new();

impl NamespaceLabels {
    /// Says whether the labels are others than before.
    pub(crate) fn set(&mut self, namespace: Namespace) -> bool {
        let ObjectMeta { name, labels, .. } = namespace.metadata;
        if self.0.get(&name) == Some(&labels) {
            return false;
        }
        self.0.insert(name, labels);
        true
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// One that is not known has none.
    pub(crate) fn of(&self, name: &str) -> &BTreeMap<String, String> {
        self.0.get(name).unwrap_or(&NONE)
    }
}
