//! Which controller serves the Ingresses of a class.

use corten_api::resources::INGRESS_CLASSES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill_pointer, inner},
    read::text,
    rules,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, UpdateRules, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: INGRESS_CLASSES,
    singular: "ingressclass",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.networking.v1.IngressClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Controller", "Who serves them.", |object, _| json!(text(object, "/spec/controller"))),
        column("Parameters", "What configures it.", |object, _| json!(parameters(object))),
        AGE,
    ],
    policy: &IngressClass,
};

fn parameters(class: &Value) -> String {
    let name = text(class, "/spec/parameters/name");
    match (text(class, "/spec/parameters/kind"), class.pointer("/spec/parameters/apiGroup").and_then(Value::as_str)) {
        _ if !class["spec"]["parameters"].is_object() => "<none>".into(),
        (kind, Some(group)) => format!("{kind}.{group}/{name}"),
        (kind, None) => format!("{kind}/{name}"),
    }
}

struct IngressClass;

const CONTROLLER_BYTES_MAX: usize = 250;

impl Policy for IngressClass {
    fn default(&self, object: &mut Value) {
        let spec = object.as_object_mut().and_then(|it| inner(it, "spec"));
        if let Some(parameters) = spec.and_then(|it| inner(it, "parameters")) {
            fill_pointer(parameters, "scope", "Cluster");
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            let controller = class.at("spec").at("controller");
            if controller.str().len() > CONTROLLER_BYTES_MAX {
                controller.report(Violation::too_long(controller.path(), CONTROLLER_BYTES_MAX));
            }
            rules::domain_prefixed_path(controller);
            if class.at("spec").at("parameters").exists() {
                check(class.at("spec").at("parameters"));
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |class| rules::immutable_text(class.at("spec").at("controller"), &old["spec"]["controller"]))
    }

    fn update_rules(&self) -> UpdateRules {
        UpdateRules::ChangeThenWhole
    }
}

fn check(parameters: Cursor<'_>) {
    if parameters.at("apiGroup").exists() {
        parameters.at("apiGroup").follows(field::dns1123_subdomain);
    }
    rules::path_segment(parameters.at("kind"));
    rules::path_segment(parameters.at("name"));
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    match scope.str() {
        "Namespace" if !namespace.exists() => namespace.missing("`parameters.scope` is set to 'Namespace'"),
        "Namespace" => namespace.follows(field::dns1123_label),
        "Cluster" if namespace.exists() => namespace.forbidden("`parameters.scope` is set to 'Cluster'"),
        "Cluster" => {}
        _ => scope.unsupported(&["Cluster", "Namespace"]),
    }
}
