//! Asks how full the pools of a driver are. Nobody answers it yet.

use corten_api::resources::RESOURCE_POOL_STATUS_REQUESTS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    read::{items, number, text},
    rules,
};
use serde_json::{Value, json};

use super::names::pool;
use crate::{
    BuiltIn, Policy, Subresource, Verb,
    age::since,
    columns::{column, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RESOURCE_POOL_STATUS_REQUESTS,
    singular: "resourcepoolstatusrequest",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequest",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Driver", "The driver it asks about.", |object, _| json!(text(object, "/spec/driver"))),
        column("Total", "All devices of the pools.", |object, _| sum(object, "totalDevices")),
        column("Available", "Devices nobody has.", |object, _| sum(object, "availableDevices")),
        column("Allocated", "Devices somebody has.", |object, _| sum(object, "allocatedDevices")),
        column("Unavailable", "Devices nobody can get.", |object, _| sum(object, "unavailableDevices")),
        column("Errors", "Pools that could not be counted.", |object, _| {
            let failed = |it: &&Value| it["validationError"].as_str().is_some_and(|it| !it.is_empty());
            json!(items(object, "/status/pools").iter().filter(failed).count().to_string())
        }),
        integer("Pools", "How many pools match.", |object, _| json!(number(object, "/status/poolCount"))),
        column("Status", "Whether it is answered.", |object, _| json!(ended(object).map_or("Pending", |it| it.0))),
        column("Completed", "How long ago it was answered.", |object, now| {
            json!(ended(object).map_or_else(|| "<none>".to_owned(), |it| since(it.1, now)))
        }),
    ],
    policy: &ResourcePoolStatusRequest,
};

fn sum(object: &Value, field: &str) -> Value {
    let pools = items(object, "/status/pools");
    json!(pools.iter().filter_map(|it| it[field].as_i64()).fold(0_i64, i64::saturating_add).to_string())
}

/// How and when the request ended.
fn ended(object: &Value) -> Option<(&str, &str)> {
    let holds = |it: &&Value| it["status"] == "True" && matches!(it["type"].as_str(), Some("Complete" | "Failed"));
    let condition = items(object, "/status/conditions").iter().find(holds)?;
    Some((condition["type"].as_str()?, condition["lastTransitionTime"].as_str().unwrap_or_default()))
}

struct ResourcePoolStatusRequest;

const LIMIT_MAX: i64 = 1000;

impl Policy for ResourcePoolStatusRequest {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |request| {
            let spec = request.at("spec");
            if spec.at("driver").is_empty() {
                spec.at("driver").missing("driver name is required");
            } else {
                rules::driver_name(spec.at("driver"));
            }
            if !spec.at("poolName").is_empty() {
                pool(spec.at("poolName"));
            }
            let limit = spec.at("limit");
            if limit.exists() && limit.int() < 1 {
                limit.invalid("must be at least 1");
            } else if limit.int() > LIMIT_MAX {
                limit.invalid("must not exceed 1000");
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |request| rules::immutable(request.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |request| {
            let status = request.at("status");
            if ended(&serde_json::json!({ "status": old["status"] })).is_some() {
                return rules::immutable(status, &old["status"]);
            }
            status.list("pools").for_each(pool_status);
            rules::conditions(status.at("conditions"));
            if status.at("poolCount").int() < 0 {
                status.at("poolCount").invalid("must be non-negative");
            }
        })
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn pool_status(status: Cursor<'_>) {
    rules::driver_name(status.at("driver"));
    pool(status.at("poolName"));
    if !status.at("nodeName").is_empty() {
        status.at("nodeName").follows(field::dns1123_subdomain);
    }
    for count in ["totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices", "generation"] {
        if status.at(count).int() < 0 {
            status.at(count).invalid("must be non-negative");
        }
    }
}
