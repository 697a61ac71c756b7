//! What a node tells of its loops to who asks it: the same journals, of what is decided on its machine.

use corten_api::resources::{NETWORK_POLICIES, NODES, PODS, SERVICES};
use corten_meta::{Key, ObjectMeta, Resource};
use serde::{Deserialize, Serialize};

use crate::{Decision, Journal};

/// Where a node tells of all that waits there; of one object at `/journals/NAMESPACE/RESOURCE.NAME`.
pub const NODE_JOURNALS: &str = "/journals";
/// So many objects a node tells of at once.
pub const NODE_JOURNALS_MAX: usize = 500;
/// Where journals of objects that belong to no namespace are.
pub const NO_NAMESPACE: &str = "default";

/// The loops of a node, by their names in journals. Beside a control plane the same process has others.
const LOOPS: [&str; 6] =
    ["kube-proxy", "kubelet", "load-balancer-addresses", "network-policy", "observer", "pod-routes"];
const ABOUT: [Resource; 4] = [NETWORK_POLICIES, NODES, PODS, SERVICES];

/// Journals of a node, each as it is served for its object.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeJournals {
    pub items: Vec<Journal>,
}

/// The object that a node's journal of this name is about.
pub fn about(namespace: &str, journal: &str) -> Option<(Resource, Key)> {
    let found = ABOUT.into_iter().filter_map(|resource| {
        let name = journal.strip_prefix(&resource.qualified())?.strip_prefix('.')?;
        let namespace = if resource.namespaced { namespace } else { "" };
        (!name.is_empty()).then(|| (resource.clone(), Key::new(namespace, name)))
    });
    found.into_iter().next()
}

/// The namespace and the name of the journal of an object.
pub fn journal_name(resource: &Resource, key: &Key) -> (String, String) {
    let namespace = if key.namespace.is_empty() { NO_NAMESPACE } else { &key.namespace };
    (namespace.to_owned(), format!("{}.{}", resource.qualified(), key.name))
}

/// By which lists of journals are in order.
pub fn place(resource: &Resource, key: &Key) -> String {
    format!("{}/{}", key.namespace, journal_name(resource, key).1)
}

/// What a node's loops have decided about an object, of all that are known of it in its process.
pub fn of_node(resource: &Resource, key: &Key, mut decisions: Vec<Decision>) -> Journal {
    decisions.retain(|it| LOOPS.contains(&&*it.by));
    let (namespace, name) = journal_name(resource, key);
    Journal {
        api_version: "corten.dev/v1".to_owned(),
        kind: "Journal".to_owned(),
        metadata: ObjectMeta { namespace, name, ..ObjectMeta::default() },
        decisions,
        ..Journal::default()
    }
}

/// Does a node have journals of such objects?
pub fn is_of_nodes(resource: &Resource) -> bool {
    ABOUT.contains(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_found_by_its_name() {
        for (resource, key) in [
            (PODS, Key::new("shop", "web.1")),
            (NODES, Key::cluster("m2")),
            (SERVICES, Key::new("shop", "web")),
            (NETWORK_POLICIES, Key::new("shop", "deny")),
        ] {
            let (namespace, name) = journal_name(&resource, &key);
            assert_eq!(about(&namespace, &name), Some((resource, key)), "{namespace}/{name}");
        }
        for name in ["pods", "pods.", "secrets.a", "deployments.apps.web"] {
            assert_eq!(about("shop", name), None, "{name}");
        }
    }

    #[test]
    fn other_loops_of_the_process_are_not_told_of() {
        let by = |name: &str| Decision { by: name.to_owned(), ..Decision::default() };
        let journal = of_node(&PODS, &Key::new("shop", "web"), vec![by("kubelet"), by("scheduler")]);
        assert_eq!(journal.decisions, [by("kubelet")]);
    }
}
