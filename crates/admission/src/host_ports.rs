//! Gives Pods their node's network where they or their namespace ask for it, and notes which of their ports are chosen when they are
//! bound. What is noted is the API server's alone.

mod choice;

use std::borrow::Cow;

use corten_api::{
    host_ports::HOST_PORTS,
    resources::{NAMESPACES, PODS},
};
use corten_cacher::body::BoxFuture;
use corten_kinds::host_ports;
use corten_meta::{Status, Violation};
use serde_json::Value;

use super::{Admission, Attributes, Operation, namespace_lifecycle::asks_for_host_network};

pub use choice::HostPortChoice;

pub(crate) struct HostPorts;

impl Admission for HostPorts {
    fn name(&self) -> &'static str {
        "HostPorts"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.creates(&PODS) {
                return Ok(());
            }
            // In the second round it is what the first one left.
            let is_noted = pod["metadata"]["annotations"].get(HOST_PORTS).is_some();
            let is_theirs = is_noted && !request.reinvocation.is_reinvoked();
            if asks(request, &pod["metadata"]["annotations"]).map_err(|it| refused(request, pod, &[it]))?
                && !host_ports::is_mirror(pod)
            {
                if is_theirs {
                    host_ports::reopen(pod);
                }
                let refusals = host_ports::refusals(pod);
                if !refusals.is_empty() {
                    return Err(refused(request, pod, &refusals));
                }
                host_ports::complete(pod);
            } else if is_theirs {
                return Err(refused(request, pod, &[not_theirs()]));
            } else if is_noted {
                host_ports::forget(pod);
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let wrong = if request.kind.resource == NAMESPACES {
                namespace(request, object)
            } else if request.kind.resource == PODS || request.binds_pod() {
                pod(request, object)
            } else {
                None
            };
            wrong.map_or(Ok(()), |it| Err(refused(request, object, &[it])))
        })
    }
}

/// Does the Pod of these annotations ask for its node's network, or its namespace for it?
fn asks(request: &Attributes<'_>, annotations: &Value) -> Result<bool, Violation> {
    if let Some(own) = host_ports::wants(annotations)? {
        return Ok(own);
    }
    let namespace = request.cluster.cache_of(&NAMESPACES).get("", request.namespace);
    Ok(namespace.is_some_and(|it| asks_for_host_network(&it)))
}

/// A template with what its Pods will be given here.
pub(crate) fn completed<'v>(request: &Attributes<'_>, template: &'v Value) -> Cow<'v, Value> {
    if asks(request, &template["metadata"]["annotations"]) != Ok(true) {
        return Cow::Borrowed(template);
    }
    let mut pod = template.clone();
    host_ports::complete(&mut pod);
    Cow::Owned(pod)
}

fn namespace(request: &Attributes<'_>, namespace: &Value) -> Option<Violation> {
    let wrong = host_ports::wants(&namespace["metadata"]["annotations"]).err();
    let before = || request.old.and_then(|it| host_ports::wants(&it["metadata"]["annotations"]).err());
    wrong.filter(|_| matches!(request.operation, Operation::Create | Operation::Update) && before().is_none())
}

fn pod(request: &Attributes<'_>, pod: &Value) -> Option<Violation> {
    let note = |it: &Value| it["metadata"]["annotations"].get(HOST_PORTS).cloned();
    let is_theirs = match (request.operation, request.subresource) {
        // The object is a Binding, whose annotations become the Pod's.
        (Operation::Create, _) if request.binds_pod() => note(pod).is_some(),
        (Operation::Create, None) => {
            // Whoever was asked after this plugin may have changed the Pod.
            if asks(request, &pod["metadata"]["annotations"]) == Ok(true) && !host_ports::is_mirror(pod) {
                let mut expected = pod.clone();
                host_ports::complete(&mut expected);
                note(pod) != note(&expected)
            } else {
                note(pod).is_some()
            }
        }
        (Operation::Update, _) => request.old.is_some_and(|old| note(old) != note(pod)),
        _ => false,
    };
    is_theirs.then(not_theirs)
}

fn not_theirs() -> Violation {
    Violation::forbidden(format!("metadata.annotations[{HOST_PORTS}]"), "is written by the API server alone")
}

fn refused(request: &Attributes<'_>, object: &Value, violations: &[Violation]) -> Status {
    Status::invalid(&request.kind.resource, request.name_of(object), violations)
}
