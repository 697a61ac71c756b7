//! Keeps a number of equal Pods alive.

use corten_api::resources::REPLICA_SETS;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{fill::made, pod_spec, read::number};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, SELECTOR, integer},
    core::workload,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: REPLICA_SETS,
    singular: "replicaset",
    short_names: &["rs"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Scale, Subresource::Status],
    schema: "io.k8s.api.apps.v1.ReplicaSet",
    view_of: None,
    selectable_fields: &["status.replicas"],
    columns: &[
        integer("Desired", "How many Pods there are to be.", |object, _| json!(number(object, "/spec/replicas"))),
        integer("Current", "How many Pods there are.", |object, _| json!(number(object, "/status/replicas"))),
        integer("Ready", "How many of them are ready.", |object, _| json!(number(object, "/status/readyReplicas"))),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    policy: &ReplicaSet,
};

struct ReplicaSet;

impl Policy for ReplicaSet {
    fn default(&self, object: &mut Value) {
        if let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) {
            workload::default(spec);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |set| workload::validate(set.at("spec")))
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        pod_spec::warnings(new, old, &["spec", "template", "spec"], pod_spec::Name::OfPods)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |set| workload::selector_stays(set, old))
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |set| workload::validate_status(set.at("status")))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}
