//! A template of Pods that stands alone.

use corten_api::resources::POD_TEMPLATES;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{pod_spec, read::items};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Verb,
    columns::{column, labels_text, of_each},
    core::workload,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: POD_TEMPLATES,
    singular: "podtemplate",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.PodTemplate",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Containers", "The names of its containers.", |object, _| {
            json!(of_each(items(object, "/template/spec/containers"), "name"))
        }),
        column("Images", "The images of its containers.", |object, _| {
            json!(of_each(items(object, "/template/spec/containers"), "image"))
        }),
        column("Pod Labels", "The labels its Pods get.", |object, _| {
            json!(labels_text(&object["template"]["metadata"]["labels"]))
        }),
    ],
    policy: &PodTemplate,
};

struct PodTemplate;

impl Policy for PodTemplate {
    fn default(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            workload::default_template(object);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |object| pod_spec::validate_template(object.at("template")))
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        pod_spec::warnings(new, old, &["template", "spec"], pod_spec::Name::Nothing)
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}
