//! The devices a driver offers in one pool.

use corten_api::resources::{RESOURCE_SLICES, RESOURCE_SLICES_V1BETA1, RESOURCE_SLICES_V1BETA2};
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{each, fill, inner},
    read::text,
    rules,
};
use serde_json::{Value, json};

use super::{device, v1beta1};
use crate::{
    BuiltIn, MetadataChecks, Policy, UpdateRules, Verb, ViewOf,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RESOURCE_SLICES,
    singular: "resourceslice",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.resource.v1.ResourceSlice",
    view_of: None,
    selectable_fields: &["spec.nodeName", "spec.driver"],
    columns: &[
        column("Node", "The node its devices are at.", |object, _| json!(text(object, "/spec/nodeName"))),
        column("Driver", "The driver of its devices.", |object, _| json!(text(object, "/spec/driver"))),
        column("Pool", "The pool its devices are in.", |object, _| json!(text(object, "/spec/pool/name"))),
        AGE,
    ],
    policy: &ResourceSlice,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    RESOURCE_SLICES_V1BETA1,
    "io.k8s.api.resource.v1beta1.ResourceSlice",
    ViewOf::converted(RESOURCE_SLICES, v1beta1::slice_to_v1, v1beta1::slice_from_v1),
    KIND,
);

pub(crate) const V1BETA2: BuiltIn = BuiltIn::view(
    RESOURCE_SLICES_V1BETA2,
    "io.k8s.api.resource.v1beta2.ResourceSlice",
    ViewOf::same(RESOURCE_SLICES),
    KIND,
);

struct ResourceSlice;

impl Policy for ResourceSlice {
    fn prepare_create(&self, object: &mut Value) {
        let now = object["metadata"]["creationTimestamp"].clone();
        let spec = object.as_object_mut().and_then(|it| inner(it, "spec"));
        let Some(spec) = spec.filter(|_| !now.is_null()) else { return };
        for device in each(spec, "devices") {
            each(device, "taints").for_each(|it| fill(it, "timeAdded", now.clone()));
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |slice| spec(slice.at("spec"), None))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |slice| spec(slice.at("spec"), Some(&old["spec"])))
    }

    /// What may not change is told amid the rest (validateResourceSliceSpec).
    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn spec(spec: Cursor<'_>, before: Option<&Value>) {
    rules::driver_name(spec.at("driver"));
    device::pool(spec.at("pool"));
    if let Some(before) = before {
        rules::immutable_text(spec.at("pool").at("name"), &before["pool"]["name"]);
        rules::immutable_text(spec.at("driver"), &before["driver"]);
        rules::immutable(spec.at("nodeName"), &before["nodeName"]);
    }
    device::nodes(spec, &["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"], "");
    device::validate(spec);
}
