//! What happens to CertificateSigningRequests without a person: kubelets' are approved, old ones are deleted. Signing is
//! for who has the key.

mod api_servers;
mod names;
mod of_pods;
mod request;
mod server_trust;

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Answer, Controller, Effect, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::projections::{Pod, ReachableService, projection};
use names::NamedNode;

pub use of_pods::PodCertificateCleaner;
pub use server_trust::ServerTrustPublisher;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Deserialize)]
struct SigningRequest {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}
projection!(SigningRequest, resources::CERTIFICATE_SIGNING_REQUESTS);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    request: String,
    signer_name: String,
    #[serde(default)]
    usages: Vec<String>,
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<RequestCondition>,
    certificate: String,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestCondition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_update_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<Time>,
}

impl SigningRequest {
    fn condition(&self, r#type: &str) -> Option<&RequestCondition> {
        self.status.conditions.iter().find(|it| it.r#type == r#type)
    }
}

/// How soon to look again whether a node is known under another name now.
const NAMES_AGAIN: Duration = Duration::from_secs(10);

/// Approves what a kubelet asks for, where it may: its own next certificate, or with a bootstrap token its first; and what it
/// serves with, where the names are those of its Node. Upstream leaves the last to others, and a cluster has none.
pub struct CertificateApproval {
    domain: String,
}

impl CertificateApproval {
    /// With the domain of the cluster's names, which no node can have.
    pub fn new(domain: &str) -> Self {
        Self { domain: domain.to_owned() }
    }
}

/// What is allowed to whom, in the order in which it is tried, and what is said of it.
const PERMISSIONS: [(&str, &str); 2] = [
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
];

impl Controller for CertificateApproval {
    fn name(&self) -> &'static str {
        "certificate"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![
            Watch::new::<SigningRequest>(Wake::Itself),
            Watch::new::<NamedNode>(Wake::Nobody),
            Watch::new::<ReachableService>(Wake::Nobody),
            Watch::new::<Pod>(Wake::Nobody),
        ];
        watches.extend(api_servers::watches());
        watches
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::CERTIFICATE_SIGNING_REQUESTS,
                fields: &["status.conditions"],
            }]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(request) = view.get::<SigningRequest>(key) else { return Plan::default() };
        let is_decided = request.condition("Approved").is_some() || request.condition("Denied").is_some();
        if is_decided || request.metadata.is_deleting() {
            return Plan::default();
        }
        if let Some(asked) = request::of_server(&request.spec) {
            return serving(view, request, &asked, &self.domain, now);
        }
        let Some(node) = request::of_kubelet(&request.spec) else { return waits_for_a_person() };
        let is_self = request.spec.username == node;
        // Who holds a token must not become a machine that is there.
        let name = node.strip_prefix("system:node:").unwrap_or(&node);
        if !is_self && view.get::<NamedNode>(&Key::cluster(name)).is_some_and(NamedNode::is_ready) {
            let message = format!("node {name} is Ready: another machine asks for a certificate of that name");
            let wait = Wait::new("ApprovalNeeded", message, Actor::Operator).on("Node", name);
            return Plan { waits: vec![wait], wake_at: Some(now.after(Duration::from_secs(600))), ..Plan::default() };
        }
        for (permission, message) in PERMISSIONS.iter().filter(|it| it.0 == "nodeclient" || is_self) {
            let about = Key::new(*permission, &*key.name);
            let effect = match view.answer(&resources::SUBJECT_ACCESS_REVIEWS, &about) {
                None => Effect::AskAccess { about, spec: review(&request.spec, permission) },
                Some(Answer::Allowed) => approve(request, message, now),
                Some(_) => continue,
            };
            return Plan { effects: vec![effect], ..Plan::default() };
        }
        let message = "who asked for it may not have it without being approved";
        let wait = Wait::new("ApprovalNeeded", message, Actor::Operator);
        // A binding may be made that allows it.
        Plan { waits: vec![wait], wake_at: Some(now.after(Duration::from_secs(600))), ..Plan::default() }
    }
}

fn serving(view: &View, request: &SigningRequest, asked: &request::Serving, domain: &str, now: Time) -> Plan {
    let Err(wait) = names::check(view, asked, domain) else {
        let message = "Auto approving kubelet serving certificate: its names are those of its Node.";
        return Plan { effects: vec![approve(request, message, now)], ..Plan::default() };
    };
    Plan { waits: vec![wait], wake_at: Some(now.after(NAMES_AGAIN)), ..Plan::default() }
}

fn waits_for_a_person() -> Plan {
    let message = "only kubelets' certificates are approved without a person";
    Plan { waits: vec![Wait::new("ApprovalNeeded", message, Actor::Operator)], ..Plan::default() }
}

fn review(spec: &Spec, permission: &str) -> Value {
    let attributes = json!({
        "group": resources::CERTIFICATE_SIGNING_REQUESTS.group,
        "resource": resources::CERTIFICATE_SIGNING_REQUESTS.plural,
        "verb": "create",
        "subresource": permission,
        "version": "*",
    });
    json!({
        "user": spec.username,
        "uid": spec.uid,
        "groups": spec.groups,
        "extra": spec.extra,
        "resourceAttributes": attributes,
    })
}

fn approve(request: &SigningRequest, message: &str, now: Time) -> Effect {
    let mut conditions = request.status.conditions.clone();
    conditions.push(RequestCondition {
        r#type: "Approved".into(),
        status: "True".into(),
        reason: "AutoApproved".into(),
        message: message.into(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
    });
    let patch = json!({ "status": { "conditions": conditions } });
    match exact_patch(resources::CERTIFICATE_SIGNING_REQUESTS, &request.metadata, patch) {
        Effect::Patch { resource, key, patch, .. } => {
            Effect::Patch { resource, key, subresource: Some("approval"), patch }
        }
        other => other,
    }
}

/// Deletes requests nobody needs any more: answered ones after an hour, others after a day, all when their certificate ends.
pub struct CertificateCleaner;

impl Controller for CertificateCleaner {
    fn name(&self) -> &'static str {
        "csrcleaner"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<SigningRequest>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Delete, resource: resources::CERTIFICATE_SIGNING_REQUESTS, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let request = view.get::<SigningRequest>(key).filter(|it| !it.metadata.is_deleting());
        let Some((request, end)) = request.and_then(|it| Some((it, end_of(it)?))) else { return Plan::default() };
        if now < end {
            return Plan { wake_at: Some(end), ..Plan::default() };
        }
        let delete = Effect::Delete {
            resource: resources::CERTIFICATE_SIGNING_REQUESTS,
            key: key.clone(),
            uid: request.metadata.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: None,
        };
        Plan { effects: vec![delete], ..Plan::default() }
    }
}

fn end_of(request: &SigningRequest) -> Option<Time> {
    let updated = |it: &RequestCondition| it.last_update_time.or(request.metadata.creation_timestamp);
    let is_issued = !request.status.certificate.is_empty();
    let of_condition = |it: &RequestCondition| {
        let patience = match &*it.r#type {
            "Approved" if !is_issued => DAY,
            _ => HOUR,
        };
        Some(updated(it)?.after(patience))
    };
    let undecided = request.status.conditions.is_empty().then_some(request.metadata.creation_timestamp).flatten();
    let expired = if is_issued { request::not_after(&request.status.certificate) } else { None };
    let ends = request.status.conditions.iter().filter_map(of_condition);
    ends.chain(undecided.map(|it| it.after(DAY))).chain(expired).min()
}
