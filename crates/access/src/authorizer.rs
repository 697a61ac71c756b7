//! Answers access questions from an index that is made anew only when an RBAC object has changed.

use std::sync::Arc;

use arc_swap::ArcSwap;
use corten_api::resources::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};
use corten_cacher::watch_cache::{Caches, ResourceCache, Snapshot};
use corten_meta::{Key, Resource};
use parking_lot::Mutex;

use crate::{
    node::NodeAuthorizer,
    question::{Attributes, Decision},
    rbac::{Compiler, Index, Objects},
};

static SOURCES: [Resource; 4] = [ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS];

/// The newest index, and how the next one is made.
pub struct Authorizer {
    compiled: ArcSwap<Compiled>,
    compiler: Mutex<Compiler>,
    nodes: NodeAuthorizer,
}

/// An index, and the revision of each source it was made of.
pub struct Compiled {
    revisions: [u64; 4],
    pub index: Index,
}

impl Default for Authorizer {
    fn default() -> Self {
        // No source is ever at revision 0, so the first question makes an index.
        let nothing = Compiled { revisions: [0; 4], index: Index::default() };
        Self { compiled: ArcSwap::from_pointee(nothing), compiler: Mutex::default(), nodes: NodeAuthorizer::default() }
    }
}

impl Authorizer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn decide(&self, caches: &Caches, question: &Attributes<'_>) -> Decision {
        if question.is_master() {
            return Decision::Allowed(None);
        }
        // Nodes are asked about first: what is theirs does not lean on roles.
        let as_node = match self.nodes.decide(caches, question) {
            Some(Ok(())) => return Decision::Allowed(None),
            Some(Err(reason)) => reason,
            None => String::new(),
        };
        match self.compiled(caches).index.decide(question) {
            Decision::Denied(reason) if reason.is_empty() => Decision::Denied(as_node),
            Decision::Denied(reason) if !as_node.is_empty() => Decision::Denied(format!("{as_node}\n{reason}")),
            decision => decision,
        }
    }

    /// What the index is made of.
    pub fn sources(caches: &Caches) -> impl Iterator<Item = &ResourceCache> {
        SOURCES.iter().map(|it| source(caches, it))
    }

    /// The index of what the caches hold now.
    pub fn compiled(&self, caches: &Caches) -> Arc<Compiled> {
        let snapshots = SOURCES.each_ref().map(|it| snapshot(caches, it));
        let revisions = snapshots.each_ref().map(|it| it.revision);
        let newest = self.compiled.load_full();
        if newest.revisions == revisions {
            return newest;
        }
        let mut compiler = self.compiler.lock();
        let newest = self.compiled.load_full();
        if newest.revisions == revisions {
            return newest;
        }
        let [roles, cluster_roles, bindings, cluster_bindings] = snapshots.each_ref().map(|it| objects(it));
        let index = compiler.compile(&Objects { roles, cluster_roles, bindings, cluster_bindings });
        let compiled = Arc::new(Compiled { revisions, index });
        self.compiled.store(compiled.clone());
        compiled
    }
}

fn source<'a>(caches: &'a Caches, resource: &Resource) -> &'a ResourceCache {
    caches.get(resource).expect("the RBAC resources are rows of the table")
}

fn snapshot(caches: &Caches, resource: &Resource) -> Arc<Snapshot> {
    source(caches, resource).snapshot()
}

fn objects(snapshot: &Snapshot) -> Vec<(Key, u64, &[u8])> {
    let one = |it: &'_ Arc<corten_cacher::watch_cache::Stored>| Key::new(it.namespace(), it.name());
    snapshot.iter().map(|it| (one(it), it.revision(), &**it.value())).collect()
}
