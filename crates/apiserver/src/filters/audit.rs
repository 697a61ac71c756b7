//! Says of every request that may change something who asked for it and what became of it.
//!
//! A record never holds up a request: where the sink's queue is full the record is dropped, and the drop is counted.

mod file_log;

use std::collections::BTreeMap;

use corten_meta::MicroTime;
use http::{StatusCode, header};
use serde::Serialize;

pub use file_log::{FileLog, Rotation};

use crate::{
    chain::Rest,
    request::{Context, Identity, Response},
};

/// Where records go. Must return at once.
pub trait Sink: Send + Sync {
    /// `line` is one record as JSON, without a line break.
    fn record(&self, line: Vec<u8>);

    /// How many records were dropped because the sink could not keep up.
    fn dropped(&self) -> u64;
}

/// What was lost, as `/metrics` shows it.
pub(crate) fn metrics(sink: &dyn Sink) -> String {
    let name = "apiserver_audit_error_total";
    let lost = sink.dropped();
    format!("# HELP {name} Audit records that were dropped.\n# TYPE {name} counter\n{name}{{plugin=\"log\"}} {lost}\n")
}

const MUTATING: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let audited = ctx.server.config().audit.is_some() && MUTATING.contains(&ctx.info.verb);
    let response = rest.run(ctx).await;
    if audited && let Some(sink) = &ctx.server.config().audit {
        match serde_json::to_vec(&Event::of(ctx, response.status())) {
            Ok(line) => sink.record(line),
            Err(error) => tracing::error!(%error, "an audit record cannot be written as JSON"),
        }
    }
    response
}

/// `audit.k8s.io/v1 Event` at level `Metadata`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: &'a str,
    user: User<'a>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectRef<'a>>,
    response_status: ResponseStatus,
    request_received_timestamp: MicroTime,
    stage_timestamp: MicroTime,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct User<'a> {
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef<'a> {
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

#[derive(Serialize)]
struct ResponseStatus {
    metadata: Empty,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

const NOBODY: &Identity =
    &Identity { user: String::new(), uid: String::new(), groups: Vec::new(), extra: BTreeMap::new() };

impl<'a> Event<'a> {
    fn of(ctx: &'a Context, code: StatusCode) -> Self {
        let (info, who) = (&ctx.info, ctx.identity.as_ref().unwrap_or(NOBODY));
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: "Metadata",
            audit_id: &ctx.id,
            stage: "ResponseComplete",
            request_uri: ctx.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: info.verb,
            user: User { username: &who.user, uid: &who.uid, groups: &who.groups, extra: &who.extra },
            source_ips: ctx.peer.iter().map(|it| it.address.ip().to_string()).collect(),
            user_agent: ctx.header(header::USER_AGENT),
            object_ref: info.is_resource.then(|| ObjectRef {
                resource: &info.plural,
                namespace: &info.namespace,
                name: &info.name,
                api_group: &info.group,
                api_version: &info.version,
                subresource: &info.subresource,
            }),
            response_status: ResponseStatus { metadata: Empty {}, code: code.as_u16() },
            request_received_timestamp: ctx.received.micro(),
            stage_timestamp: ctx.server.now().micro(),
            annotations: &ctx.audit_annotations,
        }
    }
}
