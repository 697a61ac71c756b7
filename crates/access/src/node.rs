//! What a node may do: its own Node, the Pods bound to it, and what those Pods name. Admission (`NodeRestriction`) looks at
//! what this cannot see: the objects that a node writes.

mod graph;
mod references;
mod role;
mod volume_secrets;

use std::sync::LazyLock;

use corten_cacher::watch_cache::Caches;
use corten_meta::FieldSelector;
use parking_lot::Mutex;

pub use references::References;
pub(crate) use role::{rules, signing_requests};

use crate::{
    question::{Attributes, ResourceOrPath},
    rule::PolicyRule,
};

use graph::{Graph, ReferencedKind};

const NODES: &str = "system:nodes";
const USER: &str = "system:node:";
const LEASES: &str = "kube-node-lease";

/// `None` for whoever is no node. The name is empty where it cannot be told which node asks.
pub fn name_of<'a>(user: &'a str, groups: &[String]) -> Option<&'a str> {
    if !groups.iter().any(|it| it == NODES) {
        return None;
    }
    Some(user.strip_prefix(USER).unwrap_or_default())
}

/// What no question about a single object decides.
static RULES: LazyLock<Vec<PolicyRule>> = LazyLock::new(|| {
    let rules = role::rules().into_iter().map(serde_json::from_value);
    rules.collect::<Result<_, _>>().expect("the rules of a role that is written here")
});

#[derive(Default)]
pub(crate) struct NodeAuthorizer(Mutex<Graph>);

impl NodeAuthorizer {
    /// `None` where nobody asks who is a node, or nothing is known against it; `Err` says why not.
    pub(crate) fn decide(&self, caches: &Caches, question: &Attributes<'_>) -> Option<Result<(), String>> {
        if question.user == volume_secrets::USER {
            return volume_secrets::decide(caches, question);
        }
        let node = name_of(question.user, question.groups)?;
        if node.is_empty() {
            return Some(Err(format!("unknown node for user {:?}", question.user)));
        }
        let ResourceOrPath::Resource { group, resource, subresource, namespace, name } = question.target else {
            return Some(by_rules(question));
        };
        let asked = NodeQuery { authorizer: self, caches, node, verb: question.verb, subresource, namespace, name };
        let is_here = || names(question.field_selector, "spec.nodeName", node);
        Some(match (group, resource) {
            ("", "secrets") => asked.read_of_one(ReferencedKind::Secret),
            ("", "configmaps") => asked.read_of_one(ReferencedKind::ConfigMap),
            ("", "persistentvolumeclaims") if subresource == "status" => asked.status(ReferencedKind::Claim),
            ("", "persistentvolumeclaims") => asked.get(ReferencedKind::Claim),
            ("", "persistentvolumes") => asked.get(ReferencedKind::Volume),
            ("resource.k8s.io", "resourceclaims") => asked.get(ReferencedKind::ResourceClaim),
            ("storage.k8s.io", "volumeattachments") => asked.get(ReferencedKind::Attachment),
            ("", "serviceaccounts") => asked.account(),
            ("coordination.k8s.io", "leases") => asked.lease(),
            ("storage.k8s.io", "csinodes") => asked.csi_node(),
            ("resource.k8s.io", "resourceslices") => asked.slice(names(question.field_selector, "spec.nodeName", node)),
            ("certificates.k8s.io", "podcertificaterequests") => asked.pod_certificate(is_here),
            ("", "nodes") => asked.node(),
            ("", "pods") => asked.pod(is_here),
            _ => by_rules(question),
        })
    }
}

fn by_rules(question: &Attributes<'_>) -> Result<(), String> {
    if RULES.iter().any(|it| it.allows(question)) { Ok(()) } else { Err(String::new()) }
}

/// Does the selector narrow `field` to exactly `value`?
fn names(selector: &str, field: &str, value: &str) -> bool {
    FieldSelector::parse(selector).is_ok_and(|it| it.exact(field) == Some(value))
}

/// One node's question about a resource.
struct NodeQuery<'a> {
    authorizer: &'a NodeAuthorizer,
    caches: &'a Caches,
    node: &'a str,
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

type Answer = Result<(), String>;

fn no(reason: &str) -> Answer {
    Err(reason.to_owned())
}

impl NodeQuery<'_> {
    fn related(&self, kind: ReferencedKind) -> Answer {
        if self.name.is_empty() {
            return no("No Object name found");
        }
        let mut graph = self.authorizer.0.lock();
        if graph.leads(self.caches, kind, self.namespace, self.name, self.node) {
            return Ok(());
        }
        Err(format!("no relationship found between node '{}' and this object", self.node))
    }

    /// A list or a watch of one name shows no more than a `get`.
    fn read_of_one(&self, kind: ReferencedKind) -> Answer {
        match (self.verb, self.subresource, self.namespace) {
            ("get" | "list" | "watch", "", namespace) if !namespace.is_empty() => self.related(kind),
            ("get" | "list" | "watch", "", _) => no("can only read namespaced object of this type"),
            ("get" | "list" | "watch", ..) => no("cannot read subresource"),
            _ => no("can only read resources of this type"),
        }
    }

    fn get(&self, kind: ReferencedKind) -> Answer {
        match (self.verb, self.subresource) {
            ("get", "") => self.related(kind),
            ("get", _) => no("cannot get subresource"),
            _ => no("can only get individual resources of this type"),
        }
    }

    fn status(&self, kind: ReferencedKind) -> Answer {
        match self.verb {
            "update" | "patch" => self.related(kind),
            _ => no("can only get/update/patch this type"),
        }
    }

    fn account(&self) -> Answer {
        match (self.verb, self.subresource) {
            // To find credentials for images by the Pod's account.
            ("get", "") => self.related(ReferencedKind::Account),
            ("create", "token") if !self.name.is_empty() => self.related(ReferencedKind::Account),
            ("create", sub) if sub != "token" => no("can only create token subresource of serviceaccount"),
            _ => no("can only create tokens for individual service accounts"),
        }
    }

    fn lease(&self) -> Answer {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a node lease");
        }
        if self.namespace != LEASES {
            return Err(format!("can only access leases in the {LEASES:?} system namespace"));
        }
        // The name of what is to be created is in the body: admission looks at it.
        if self.verb != "create" && self.name != self.node {
            return no("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self) -> Answer {
        if !matches!(self.verb, "get" | "create" | "update" | "patch" | "delete") {
            return no("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.subresource.is_empty() {
            return no("cannot authorize CSINode subresources");
        }
        if self.verb != "create" && self.name != self.node {
            return no("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn slice(&self, is_own: bool) -> Answer {
        if !self.subresource.is_empty() {
            return no("cannot authorize ResourceSlice subresources");
        }
        match self.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(ReferencedKind::Slice),
            "watch" | "list" | "deletecollection" if is_own => Ok(()),
            "watch" | "list" | "deletecollection" => {
                no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn pod_certificate(&self, is_here: impl Fn() -> bool) -> Answer {
        if !self.subresource.is_empty() {
            return no("nodes may not access the status subresource of PodCertificateRequests");
        }
        match self.verb {
            // For which Pod, admission looks at.
            "create" => Ok(()),
            "get" => self.related(ReferencedKind::PodCertificate),
            "list" | "watch" if is_here() => Ok(()),
            "list" | "watch" => no("can only list/watch podcertificaterequests with nodeName field selector"),
            verb => Err(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn node(&self) -> Answer {
        match (self.subresource, self.verb, self.name) {
            ("", "create" | "update" | "patch", _) | ("status", "update" | "patch", _) => Ok(()),
            ("", "get" | "list" | "watch", name) if name == self.node => Ok(()),
            ("", "get" | "list" | "watch", "") => {
                Err(format!("node '{}' cannot read all nodes, only its own Node object", self.node))
            }
            ("", "get" | "list" | "watch", name) => {
                Err(format!("node '{}' cannot read '{name}', only its own Node object", self.node))
            }
            _ => no(""),
        }
    }

    fn pod(&self, is_here: impl Fn() -> bool) -> Answer {
        match (self.subresource, self.verb) {
            ("", "get") => self.get(ReferencedKind::Pod),
            ("", "list" | "watch") if is_here() => Ok(()),
            ("", "list" | "watch") if !self.name.is_empty() => self.related(ReferencedKind::Pod),
            ("", "list" | "watch") => no("can only list/watch pods with spec.nodeName field selector"),
            // Mirrors of static Pods; which ones, admission looks at.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => no(""),
        }
    }
}
