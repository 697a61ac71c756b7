//! Refuses writes while a rule that may be about them cannot be read: nobody knows what it would say. Upstream's plugins
//! wait for their informers instead (`WaitForReady`).

use corten_api::resources::{
    LIMIT_RANGES, MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_WEBHOOK_CONFIGURATIONS,
    RESOURCE_QUOTAS, VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use corten_cacher::{body::BoxFuture, watch_cache::Matcher};
use corten_meta::{Resource, Status};
use serde_json::Value;

use super::{Admission, Attributes, refusal::forbidden};

/// Those of the cluster, and those of the object's namespace.
static RULES: [Resource; 8] = [
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    LIMIT_RANGES,
    RESOURCE_QUOTAS,
];

pub(crate) struct KnownRules;

impl Admission for KnownRules {
    fn name(&self) -> &'static str {
        "KnownRules"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match unknown(request) {
                Some(reason) => Err(forbidden(request, object, &format!("not yet ready to handle request: {reason}"))),
                None => Ok(()),
            }
        })
    }
}

fn unknown(request: &Attributes<'_>) -> Option<String> {
    RULES.iter().find_map(|resource| {
        let snapshot = request.cluster.caches().get(resource)?.snapshot();
        snapshot.unreadables()?;
        let namespace = if resource.namespaced { request.namespace } else { "" };
        if resource.namespaced && namespace.is_empty() {
            return None;
        }
        snapshot.gap(&Matcher::within(namespace)).map(str::to_owned)
    })
}
