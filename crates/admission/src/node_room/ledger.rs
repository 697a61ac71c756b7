//! What the Pods of each node take, and the bindings that are on their way to the store.

use std::{collections::HashMap, sync::Arc};

use corten_api::resources::PODS;
use corten_cacher::{
    by_node::PodsByNode,
    watch_cache::{Caches, Stored},
};
use corten_scheduler::PodDemand;
use corten_store::Revision;

const NODE_NAME: &[u8] = br#""nodeName""#;

pub(super) struct Ledger {
    bound: PodsByNode<Arc<PodDemand>>,
    /// By node, in the order in which they were noted.
    under_way: HashMap<String, Vec<UnderWay>>,
    n_noted: u64,
}

/// A binding of which the caches do not show yet what became of it.
struct UnderWay {
    number: u64,
    /// `namespace/name`.
    pod: String,
    demand: Arc<PodDemand>,
    /// Nobody waits for it any more, and the store may have it or not. It counts as long as its Pod is at the revision that it changes.
    in_doubt_at: Option<Revision>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { bound: PodsByNode::new(demand), under_way: HashMap::new(), n_noted: 0 }
    }
}

impl Ledger {
    /// Notes a binding. Gives its number, and what all others have of the node: the Pods there, and those that were noted before it.
    pub(super) fn note(
        &mut self,
        caches: &Caches,
        node: &str,
        pod: &str,
        demand: Arc<PodDemand>,
    ) -> (u64, Vec<Arc<PodDemand>>) {
        self.bound.catch_up(caches);
        let bound = self.bound.of(node);
        let is_bound = |pod: &str| bound.is_some_and(|it| it.contains_key(pod));
        let mut others: Vec<_> = bound.into_iter().flatten().map(|it| it.1.clone()).collect();
        let under_way = self.under_way.entry(node.to_owned()).or_default();
        under_way.retain(|it| it.in_doubt_at.is_none_or(|revision| is_at(caches, &it.pod, revision)));
        // Of two bindings of one Pod the store takes one.
        others.extend(under_way.iter().filter(|it| it.pod != pod && !is_bound(&it.pod)).map(|it| it.demand.clone()));
        self.n_noted += 1;
        under_way.push(UnderWay { number: self.n_noted, pod: pod.to_owned(), demand, in_doubt_at: None });
        (self.n_noted, others)
    }

    /// The caches show what became of it.
    pub(super) fn end(&mut self, node: &str, number: u64) {
        let Some(under_way) = self.under_way.get_mut(node) else { return };
        under_way.retain(|it| it.number != number);
        if under_way.is_empty() {
            self.under_way.remove(node);
        }
    }

    pub(super) fn doubt(&mut self, node: &str, number: u64, before: Revision) {
        let noted = self.under_way.get_mut(node).and_then(|all| all.iter_mut().find(|it| it.number == number));
        if let Some(noted) = noted {
            noted.in_doubt_at = Some(before);
        }
    }
}

fn is_at(caches: &Caches, pod: &str, revision: Revision) -> bool {
    let (namespace, name) = pod.split_once('/').unwrap_or_default();
    let pods = caches.get(&PODS).expect("pods are a row of the table");
    pods.get(namespace, name).is_some_and(|it| it.revision() == revision)
}

/// Most Pods that wait for a node have no such field, and are not read.
fn demand(pod: &Stored) -> Option<(String, Arc<PodDemand>)> {
    memchr::memmem::find(pod.value(), NODE_NAME)?;
    let demand: PodDemand = serde_json::from_slice(pod.value()).ok()?;
    Some((demand.node().to_owned(), Arc::new(demand)))
}
