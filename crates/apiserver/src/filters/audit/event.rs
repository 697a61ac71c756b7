//! `audit.k8s.io/v1 Event`: one line of the log.

use std::collections::BTreeMap;

use corten_access::{Identity, identity::user_info};
use corten_audit::{Level, Stage, Verdict};
use corten_meta::{MicroTime, Status};
use http::{StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: &'static str,
    user: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<Value>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_object: Option<Value>,
    request_received_timestamp: MicroTime,
    pub(super) stage_timestamp: MicroTime,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

impl Event {
    /// What is known of the request now.
    pub(super) fn of(ctx: &Context, verdict: &Verdict, stage: Stage) -> Self {
        let info = &ctx.info;
        let known = |it: &Option<Identity>| it.as_ref().map(user_info);
        let (user, impersonated_user) = match known(&ctx.impersonator) {
            Some(user) => (Some(user), known(&ctx.identity)),
            None => (known(&ctx.identity), None),
        };
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: verdict.level,
            audit_id: ctx.id.clone(),
            stage,
            request_uri: ctx.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: info.verb,
            user: user.unwrap_or_else(|| json!({})),
            impersonated_user,
            authentication_metadata: (!ctx.impersonation_constraint.is_empty())
                .then(|| json!({ "impersonationConstraint": ctx.impersonation_constraint })),
            source_ips: ctx.peer.iter().map(|it| it.address.ip().to_string()).collect(),
            user_agent: ctx.header(header::USER_AGENT).to_owned(),
            object_ref: info.is_resource().then(|| ObjectRef {
                resource: info.plural.clone(),
                namespace: info.namespace.clone(),
                name: if info.name.is_empty() { ctx.audit.name.clone() } else { info.name.clone() },
                api_group: info.group.clone(),
                api_version: info.version.clone(),
                subresource: info.subresource.clone(),
            }),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: ctx.received.micro(),
            stage_timestamp: ctx.state.now().micro(),
            annotations: ctx.audit_annotations.clone(),
        }
    }

    pub(super) fn answered(&mut self, code: StatusCode) {
        self.response_status = Some(json!({ "metadata": {}, "code": code.as_u16() }));
    }

    /// The words of upstream's `WithAudit`, of what was not answered: nobody has heard of a failure.
    pub(super) fn closed_early(&mut self) {
        let message = "Connection closed early";
        self.response_status = Some(json!({ "metadata": {}, "status": "Success", "message": message, "code": 200 }));
    }

    pub(super) fn failed(&mut self, status: &Status, code: StatusCode) {
        let mut shown = json!({ "metadata": {}, "status": "Failure", "message": status.message });
        if !status.reason.is_empty() {
            shown["reason"] = json!(status.reason);
        }
        if let Some(details) = &status.details {
            shown["details"] = json!(details);
        }
        shown["code"] = json!(code.as_u16());
        self.response_status = Some(shown);
    }

    /// The record says more than the answer does.
    pub(super) fn say(&mut self, message: String) {
        if let Some(status) = &mut self.response_status {
            status["message"] = json!(message);
        }
    }
}
