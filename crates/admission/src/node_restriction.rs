//! Keeps a node to its own: its Node, the Pods bound to it, tokens for those Pods, its lease.

use corten_access::{
    Answers, Attributes as Question, ResourceOrPath,
    node::{self, References},
    tokens::ISSUER,
};
use corten_api::resources::{
    CSI_DRIVERS, CSI_NODES, LEASES, MIRROR_POD, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES,
    POD_CERTIFICATE_REQUESTS_V1BETA1, PODS, RESOURCE_SLICES, SERVICE_ACCOUNTS,
};
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::Status;
use serde_json::Value;

use super::{Admission, Attributes, Operation, node_addresses, node_labels, refusal::forbidden};

mod pod_certificate;

pub(crate) struct NodeRestriction;

const LEASE_NAMESPACE: &str = "kube-node-lease";

impl Admission for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(node) = node::name_of(&request.who.user, &request.who.groups) else { return Ok(()) };
            let judged = if node.is_empty() {
                Err(format!("could not determine node from user {:?}", request.who.user))
            } else {
                let access = &request.cluster.access;
                access.answered(|answers| Writer { request, node, answers }.judge(object)).await?
            };
            judged.map_err(|reason| forbidden(request, object, &reason))
        })
    }
}

/// `Err(Err(_))` is why not; `Err` alone a status of its own (what is asked about is missing).
type Judged = Result<Result<(), String>, Status>;

/// One write of a node.
struct Writer<'a> {
    request: &'a Attributes<'a>,
    node: &'a str,
    answers: &'a Answers<'a>,
}

fn no(reason: impl Into<String>) -> Judged {
    Ok(Err(reason.into()))
}

const YES: Judged = Ok(Ok(()));

impl Writer<'_> {
    fn judge(&self, object: &Value) -> Judged {
        let resource = &self.request.kind.resource;
        match self.request.subresource {
            None if *resource == PODS => self.pod(object),
            Some(Subresource::Status) if *resource == PODS => self.pod_status(object),
            Some(Subresource::Eviction) if *resource == PODS => self.eviction(),
            Some(other) if *resource == PODS => {
                no(format!("unexpected pod subresource {:?}, only 'status' and 'eviction' are allowed", other.as_str()))
            }
            _ if *resource == NODES => self.own_node(object),
            Some(Subresource::Status) if *resource == PERSISTENT_VOLUME_CLAIMS => self.claim_status(object),
            _ if *resource == PERSISTENT_VOLUME_CLAIMS => no("may only update PVC status"),
            Some(Subresource::Token) if *resource == SERVICE_ACCOUNTS => self.token(object),
            _ if *resource == LEASES => self.lease(object),
            _ if *resource == CSI_NODES => self.named(object, "CSINode"),
            _ if *resource == RESOURCE_SLICES => self.slice(object),
            _ if *resource == POD_CERTIFICATE_REQUESTS_V1BETA1 => {
                pod_certificate::judge(self.request, self.node, object)
            }
            _ => YES,
        }
    }

    fn is_create(&self) -> bool {
        self.request.operation == Operation::Create
    }

    /// As admission names operations in its messages.
    fn operation(&self) -> &'static str {
        match self.request.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    fn stored_pod(&self, name: &str) -> Result<Value, Status> {
        let pods = self.request.cluster.caches().get(&PODS).expect("pods are a row of the table");
        let pod = pods.get(self.request.namespace, name).ok_or_else(|| Status::not_found(&PODS, name))?;
        Ok(pod.parse())
    }

    fn pod(&self, pod: &Value) -> Judged {
        let node = self.node;
        match self.request.operation {
            Operation::Create => self.new_pod(pod),
            Operation::Delete if self.stored_pod(self.request.name)?["spec"]["nodeName"] == node => YES,
            Operation::Delete => no(format!("node {node:?} can only delete pods with spec.nodeName set to itself")),
            _ => {
                let operation = self.operation();
                no(format!("unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"))
            }
        }
    }

    fn new_pod(&self, pod: &Value) -> Judged {
        let node = self.node;
        if pod["metadata"]["annotations"][MIRROR_POD].is_null() {
            return no(format!(
                "pod does not have {MIRROR_POD:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if pod["spec"]["nodeName"] != node {
            return no(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
        }
        if let Err(reason) = self.owner(pod)? {
            return no(reason);
        }
        let references = References::of(pod);
        let volumes = || pod["spec"]["volumes"].as_array().into_iter().flatten();
        let projects = |what: &str| {
            let sources = volumes().flat_map(|it| it["projected"]["sources"].as_array().into_iter().flatten());
            sources.into_iter().any(|it| !it[what].is_null())
        };
        let kinds = if pod["spec"]["serviceAccountName"].as_str().is_some_and(|it| !it.is_empty()) {
            "a service account"
        } else if references.has_secrets() {
            "secrets"
        } else if references.has_config_maps() {
            "configmaps"
        } else if projects("clusterTrustBundle") {
            "clustertrustbundles"
        } else if projects("podCertificate") {
            "podcertificates"
        } else if volumes().any(|it| !it["persistentVolumeClaim"].is_null()) {
            "persistentvolumeclaims"
        } else if volumes().any(|it| !it["ephemeral"].is_null()) {
            // A controller would make the claim, in whichever namespace the node chose. Upstream's plugin lets the Pod in, though
            // its kubelet takes no such static Pod (`HasAPIObjectReference`).
            "persistentvolumeclaims (via ephemeral volumes)"
        } else if pod["spec"]["resourceClaims"].as_array().is_some_and(|it| !it.is_empty()) {
            "resourceclaims"
        } else {
            return YES;
        };
        no(format!("node {node:?} can not create pods that reference {kinds}"))
    }

    /// A mirror goes with its node.
    fn owner(&self, pod: &Value) -> Judged {
        let node = self.node;
        let owners = pod["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let itself = format!("node {node:?} can only create pods with an owner reference set to itself");
        let owner = match owners {
            [] => return no(itself),
            [one] => one,
            _ => return no(format!("node {node:?} can only create pods with a single owner reference set to itself")),
        };
        if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != node {
            return no(itself);
        }
        if owner["controller"] != true {
            return no(format!("node {node:?} can only create pods with a controller owner reference set to itself"));
        }
        if owner["blockOwnerDeletion"] == true {
            return no(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
        }
        let nodes = self.request.cluster.caches().get(&NODES).expect("nodes are a row of the table");
        let stored = nodes.get("", node).ok_or_else(|| Status::not_found(&NODES, node))?;
        let uid = owner["uid"].as_str().unwrap_or_default();
        if uid != stored.uid() {
            return no(format!("node {node} UID mismatch: expected {uid} got {}", stored.uid()));
        }
        YES
    }

    fn pod_status(&self, pod: &Value) -> Judged {
        let (node, operation) = (self.node, self.operation());
        let Some(old) = self.request.old.filter(|_| self.request.operation == Operation::Update) else {
            return no(format!("unexpected operation {operation:?}"));
        };
        if old["spec"]["nodeName"] != node {
            return no(format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself"));
        }
        if !same_map(&old["metadata"]["labels"], &pod["metadata"]["labels"]) {
            return no(format!("node {node:?} cannot update labels through pod status"));
        }
        if !same_list(&old["status"]["resourceClaimStatuses"], &pod["status"]["resourceClaimStatuses"]) {
            return no(format!("node {node:?} cannot update resource claim statues"));
        }
        // Else a node could name any claim of the namespace here, and read it.
        if old["status"]["extendedResourceClaimStatus"] != pod["status"]["extendedResourceClaimStatus"] {
            return no(format!("node {node:?} cannot update extended resource claim status"));
        }
        if let Some(reason) = node_addresses::refused_of_pod(self.request, node, pod) {
            return no(reason);
        }
        YES
    }

    fn eviction(&self) -> Judged {
        // The deletion that it comes to: the eviction was judged before.
        if self.request.operation == Operation::Delete {
            return YES;
        }
        if !self.is_create() {
            return no(format!("unexpected operation {}", self.operation()));
        }
        if self.stored_pod(self.request.name)?["spec"]["nodeName"] == self.node {
            return YES;
        }
        no(format!("node {} can only evict pods with spec.nodeName set to itself", self.node))
    }

    fn own_node(&self, object: &Value) -> Judged {
        let node = self.node;
        let name = match self.request.name {
            "" => object["metadata"]["name"].as_str().unwrap_or_default(),
            name => name,
        };
        if name != node {
            return no(format!("node {node:?} is not allowed to modify node {name:?}"));
        }
        if let Some(reason) = node_addresses::refused(self.request, node, object) {
            return no(reason);
        }
        let source = &object["spec"]["configSource"];
        let labels = &object["metadata"]["labels"];
        match (self.request.operation, self.request.old) {
            (Operation::Create, _) if !source.is_null() => {
                no(format!("node {node:?} is not allowed to create pods with a non-nil configSource"))
            }
            (Operation::Create, _) => match node_labels::forbidden(labels, &Value::Null) {
                None => YES,
                Some(found) => no(format!("node {node:?} is not allowed to set the following labels: {found}")),
            },
            (Operation::Update, Some(old)) => {
                if !source.is_null() && *source != old["spec"]["configSource"] {
                    return no(format!(
                        "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                    ));
                }
                if !same_list(&object["spec"]["taints"], &old["spec"]["taints"]) {
                    return no(format!("node {node:?} is not allowed to modify taints"));
                }
                // The garbage collector deletes a Node whose owner does not exist, and the kubelet registers it anew without its
                // taints and restricted labels (CVE-2025-5187).
                if !same_list(&object["metadata"]["ownerReferences"], &old["metadata"]["ownerReferences"]) {
                    return no(format!("node {node:?} is not allowed to modify ownerReferences"));
                }
                match node_labels::forbidden(labels, &old["metadata"]["labels"]) {
                    None => YES,
                    Some(found) => no(format!("is not allowed to modify labels: {found}")),
                }
            }
            _ => YES,
        }
    }

    fn claim_status(&self, claim: &Value) -> Judged {
        let Some(old) = self.request.old.filter(|_| self.request.operation == Operation::Update) else {
            return no(format!("unexpected operation {:?}", self.operation()));
        };
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            for path in ["/metadata/resourceVersion", "/metadata/managedFields"] {
                if let Some(it) = claim.pointer_mut(path) {
                    *it = Value::Null;
                }
            }
            if let Some(status) = claim["status"].as_object_mut() {
                for free in ["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"] {
                    status.shift_remove(free);
                }
            }
            without_nulls(claim)
        };
        if rest(claim) == rest(old) {
            return YES;
        }
        let node = self.node;
        no(format!("node {node:?} is not allowed to update fields other than status.quantity and status.conditions"))
    }

    /// A token a node asks for is one of its Pods', for an audience the Pod names.
    fn token(&self, request: &Value) -> Judged {
        if !self.is_create() {
            return YES;
        }
        let reference = &request["spec"]["boundObjectRef"];
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        if text("apiVersion") != "v1" || text("kind") != "Pod" || text("name").is_empty() {
            return no("node requested token not bound to a pod");
        }
        if text("uid").is_empty() {
            return no("node requested token with a pod binding without a uid");
        }
        let pod = self.stored_pod(text("name"))?;
        if pod["metadata"]["uid"] != text("uid") {
            return no(format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
                text("uid")
            ));
        }
        if pod["spec"]["nodeName"] != self.node {
            return no("node requested token bound to a pod scheduled on a different node");
        }
        let audiences: Vec<&str> =
            request["spec"]["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match &*audiences {
            [] => YES,
            [one] if *one == ISSUER || self.is_named(&pod, one) || self.may_ask_for(one) => YES,
            [one] => no(format!("audience {one:?} not found in pod spec volume")),
            _ => no("node may only request 0 or 1 audiences"),
        }
    }

    /// Does a volume of the Pod ask for tokens of this audience?
    fn is_named(&self, pod: &Value, audience: &str) -> bool {
        let drivers = self.request.cluster.caches().get(&CSI_DRIVERS);
        let by_driver = |name: &Value| {
            let driver = drivers.zip(name.as_str()).and_then(|(drivers, name)| drivers.get("", name));
            let requests = driver.map(|it| it.parse()["spec"]["tokenRequests"].clone()).unwrap_or_default();
            requests.as_array().is_some_and(|it| it.iter().any(|it| it["audience"] == audience))
        };
        let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let by_claim = |volume: &Value| {
            let of_pod = || Some(format!("{}-{}", pod["metadata"]["name"].as_str()?, volume["name"].as_str()?));
            let named = volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned);
            let claim = named.or_else(|| (!volume["ephemeral"].is_null()).then(of_pod).flatten())?;
            let caches = self.request.cluster.caches();
            let claims = caches.get(&PERSISTENT_VOLUME_CLAIMS)?;
            let claim = claims.get(pod["metadata"]["namespace"].as_str()?, &claim)?.parse();
            let volume = caches.get(&PERSISTENT_VOLUMES)?.get("", claim["spec"]["volumeName"].as_str()?)?.parse();
            Some(volume["spec"]["csi"]["driver"].clone())
        };
        volumes.any(|volume| {
            let sources = volume["projected"]["sources"].as_array();
            let projected =
                sources.is_some_and(|it| it.iter().any(|it| it["serviceAccountToken"]["audience"] == audience));
            projected
                || !volume["csi"].is_null() && by_driver(&volume["csi"]["driver"])
                || by_claim(volume).is_some_and(|it| by_driver(&it))
        })
    }

    fn may_ask_for(&self, audience: &str) -> bool {
        let target = ResourceOrPath::Resource {
            group: "",
            resource: audience,
            subresource: "",
            namespace: self.request.namespace,
            name: self.request.name,
        };
        let verb = "request-serviceaccounts-token-audience";
        let question = Question { verb, target, ..Question::of(self.request.who) };
        self.answers.decide(&question).is_allowed()
    }

    fn lease(&self, lease: &Value) -> Judged {
        if self.request.namespace != LEASE_NAMESPACE {
            return no(format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace"));
        }
        self.named(lease, "node lease")
    }

    fn named(&self, object: &Value, what: &str) -> Judged {
        let named = if self.is_create() { &object["metadata"]["name"] } else { &Value::from(self.request.name) };
        if named == self.node {
            return YES;
        }
        no(format!("can only access {what} with the same name as the requesting node"))
    }

    fn slice(&self, slice: &Value) -> Judged {
        let slice = match (self.request.operation, self.request.old) {
            (Operation::Create, _) => slice,
            (Operation::Delete, Some(old)) => old,
            _ => return YES,
        };
        if slice["spec"]["nodeName"] == self.node {
            return YES;
        }
        no(if self.is_create() {
            "can only create ResourceSlice with the same NodeName as the requesting node"
        } else {
            "can only delete ResourceSlice with the same NodeName as the requesting node"
        })
    }
}

/// Absent and empty are the same.
fn same_map(one: &Value, other: &Value) -> bool {
    let is_empty = |it: &Value| it.as_object().is_none_or(serde_json::Map::is_empty);
    one == other || is_empty(one) && is_empty(other)
}

fn same_list(one: &Value, other: &Value) -> bool {
    let is_empty = |it: &Value| it.as_array().is_none_or(Vec::is_empty);
    one == other || is_empty(one) && is_empty(other)
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        let all = std::mem::take(object);
        let kept = all.into_iter().map(|(key, it)| (key, without_nulls(it)));
        object.extend(kept.filter(|(_, it)| !it.is_null() && *it != serde_json::json!({})));
    }
    value
}
