//! Says how long a Pod stays on a node that is not ready or cannot be reached, where the Pod or its namespace names its availability.
//!
//! It has no counterpart upstream. What a Pod tolerates by itself stands.

use corten_api::{
    availability::{AVAILABILITY, BEST_EFFORT, HIGH, HIGH_SECONDS},
    resources::{NAMESPACES, PODS},
};
use corten_cacher::body::BoxFuture;
use corten_meta::{Status, Violation};
use serde_json::Value;

use super::{
    Admission, Attributes, Operation, default_toleration_seconds::tolerate, namespace_lifecycle::availability,
};

pub(crate) struct Availability;

impl Admission for Availability {
    fn name(&self) -> &'static str {
        "Availability"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !request.creates(&PODS) {
                return Ok(());
            }
            let own = stay(pod).map_err(|it| refused(request, pod, it))?;
            if let Some(stay) = own.or_else(|| of_namespace(request)) {
                tolerate(pod, stay.seconds());
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_written = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource != NAMESPACES || !is_written {
                return Ok(());
            }
            // One that is there with it, from before, can still be written.
            let was_wrong = request.old.is_some_and(|it| stay(it).is_err());
            stay(object).map(drop).or_else(|it| if was_wrong { Ok(()) } else { Err(refused(request, object, it)) })
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    Short,
    WithoutEnd,
}

impl Stay {
    fn seconds(self) -> Option<i64> {
        (self == Self::Short).then_some(HIGH_SECONDS)
    }
}

/// What an object says by itself.
fn stay(object: &Value) -> Result<Option<Stay>, Violation> {
    let Some(said) = object["metadata"]["annotations"].get(AVAILABILITY) else { return Ok(None) };
    let said = said.as_str().unwrap_or_default();
    let path = || format!("metadata.annotations[{AVAILABILITY}]");
    read(said).map(Some).ok_or_else(|| Violation::not_supported(path(), said, &[BEST_EFFORT, HIGH]))
}

fn read(said: &str) -> Option<Stay> {
    match said {
        HIGH => Some(Stay::Short),
        BEST_EFFORT => Some(Stay::WithoutEnd),
        _ => None,
    }
}

fn of_namespace(request: &Attributes<'_>) -> Option<Stay> {
    let namespace = request.cluster.cache_of(&NAMESPACES).get("", request.namespace)?;
    read(&availability(&namespace))
}

fn refused(request: &Attributes<'_>, object: &Value, violation: Violation) -> Status {
    Status::invalid(&request.kind.resource, request.name_of(object), &[violation])
}
