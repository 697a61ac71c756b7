//! Devices that others have are given by `adminAccess` in namespaces alone that an administrator has labelled for it: whoever may
//! write claims could else look into, or change, what others compute (KEP-5018).
//!
//! The rules of `AuthorizedForAdmin` and `AuthorizedForAdminStatus` in upstream's `registry/resource`. There they are the last of
//! validation, so this comes before all plugins that validate.

use corten_api::resources::{NAMESPACES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::{Status, Violation};
use serde_json::Value;

use crate::plugin::{Admission, Attributes, Operation};

pub(crate) struct DeviceAdminAccess;

const LABEL: &str = "resource.kubernetes.io/admin-access";

impl Admission for DeviceAdminAccess {
    fn name(&self) -> &'static str {
        "DeviceAdminAccess"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let resource = &request.kind.resource;
            let asks = if request.creates(&RESOURCE_CLAIMS) {
                asking_request(&object["spec"])
            } else if request.creates(&RESOURCE_CLAIM_TEMPLATES) {
                asking_request(&object["spec"]["spec"])
            } else if request.operation == Operation::Update
                && request.subresource == Some(Subresource::Status)
                && *resource == RESOURCE_CLAIMS
            {
                given(object).filter(|_| request.old.is_none_or(|old| given(old).is_none()))
            } else {
                None
            };
            let Some(field) = asks.filter(|_| !is_labelled(request)) else { return Ok(()) };
            let message =
                format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
            let violations = [Violation::forbidden(field, &message)];
            Err(Status::invalid(resource, request.name_of(object), &violations))
        })
    }
}

/// The first request that asks for it. One of several alternatives cannot.
fn asking_request(spec: &Value) -> Option<String> {
    let requests = spec["devices"]["requests"].as_array()?;
    let at = requests.iter().position(|it| it["exactly"]["adminAccess"] == true)?;
    Some(format!("spec.devices.requests[{at}].adminAccess"))
}

/// The first device that a claim was given so.
fn given(claim: &Value) -> Option<String> {
    let results = claim["status"]["allocation"]["devices"]["results"].as_array()?;
    let at = results.iter().position(|it| it["adminAccess"] == true)?;
    Some(format!("status.allocation.devices.results[{at}].adminAccess"))
}

fn is_labelled(request: &Attributes<'_>) -> bool {
    let namespace = request.cluster.cache_of(&NAMESPACES).get("", request.namespace);
    namespace.is_some_and(|it| it.labels().get(LABEL).is_some_and(|it| it == "true"))
}
