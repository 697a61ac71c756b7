//! Nothing is created in a namespace that is missing or going, and three namespaces never go.

use corten_api::{host_ports::HOST, resources::NAMESPACES};
use corten_cacher::{
    body::BoxFuture,
    watch_cache::{ResourceCache, Stored},
};
use corten_meta::{Cause, Status};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{Admission, Attributes, Operation, refusal::forbidden};

pub(crate) struct NamespaceLifecycle;

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let namespaces = request.cluster.caches().get(&NAMESPACES).expect("namespaces are a row of the table");
            check(namespaces, request, object)
        })
    }
}

fn check(namespaces: &ResourceCache, request: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    if request.kind.resource == NAMESPACES {
        let dies = request.operation == Operation::Delete && IMMORTAL.contains(&request.name);
        return if dies { Err(forbidden(request, object, "this namespace may not be deleted")) } else { Ok(()) };
    }
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if request.namespace.is_empty() || !writes {
        return Ok(());
    }
    let namespace = namespaces.get("", request.namespace);
    let namespace = namespace.ok_or_else(|| {
        let unreadable = namespaces.snapshot().unreadable("", request.namespace).map(Status::internal);
        unreadable.unwrap_or_else(|| Status::not_found(&NAMESPACES, request.namespace))
    })?;
    if request.operation == Operation::Create && is_terminating(&namespace) {
        return Err(terminating(request, object));
    }
    Ok(())
}

/// What matters of a namespace for every object that is made in it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Namespace {
    metadata: Fields,
    status: Fields,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    deletion_timestamp: Option<IgnoredAny>,
    phase: String,
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "corten.dev/network")]
    network: String,
    #[serde(rename = "corten.dev/availability")]
    availability: String,
}

/// Do its Pods get their node's network, where they say nothing of it?
pub(crate) fn asks_for_host_network(namespace: &Stored) -> bool {
    let namespace = namespace.projection::<Namespace>();
    namespace.metadata.annotations.as_ref().is_some_and(|it| it.network == HOST)
}

/// What its Pods say of a silent node, where they say nothing of it themselves; empty where it says nothing either.
pub(crate) fn availability(namespace: &Stored) -> String {
    let namespace = namespace.projection::<Namespace>();
    namespace.metadata.annotations.as_ref().map_or_else(String::new, |it| it.availability.clone())
}

fn is_terminating(namespace: &Stored) -> bool {
    let namespace = namespace.projection::<Namespace>();
    namespace.metadata.deletion_timestamp.is_some() || namespace.status.phase == "Terminating"
}

fn terminating(request: &Attributes<'_>, object: &Value) -> Status {
    let namespace = request.namespace;
    let reason = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = forbidden(request, object, &reason);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    status
}
