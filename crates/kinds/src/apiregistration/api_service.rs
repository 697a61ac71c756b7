//! One group and version of the API, and who serves it: this server, or another behind a Service.

use corten_api::resources::API_SERVICES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, inner},
    read::{items, text},
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column},
    keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: API_SERVICES,
    singular: "apiservice",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Service", "Who serves it.", |object, _| {
            json!(match &object["spec"]["service"] {
                Value::Object(_) => {
                    format!("{}/{}", text(object, "/spec/service/namespace"), text(object, "/spec/service/name"))
                }
                _ => "Local".to_owned(),
            })
        }),
        column("Available", "Whether it is served.", |object, _| json!(available(object))),
        AGE,
    ],
    policy: &APIService,
};

fn available(service: &Value) -> String {
    let condition = items(service, "/status/conditions").iter().find(|it| it["type"] == "Available");
    let text = |name: &str| condition.and_then(|it| it[name].as_str()).unwrap_or_default();
    match text("status") {
        "" => "Unknown".into(),
        "True" => "True".into(),
        status => format!("{status} ({})", text("reason")),
    }
}

struct APIService;

const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1000;

impl Policy for APIService {
    fn takes_short_finalizers(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let service = object.as_object_mut().and_then(|it| inner(it, "spec")).and_then(|it| inner(it, "service"));
        if let Some(service) = service {
            fill(service, "port", 443);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = if object["spec"]["service"].is_null() { local(object) } else { json!({}) };
    }

    /// Whether another server answers is found out by who asks it.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        if new["spec"]["service"].is_null() && !old["spec"]["service"].is_null() {
            new["status"] = local(new);
        }
    }

    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |service| {
            let (name, spec) = (service.at("metadata").at("name"), service.at("spec"));
            let wanted = format!("{}.{}", spec.at("version").str(), spec.at("group").str());
            if name.str() != wanted {
                name.invalid(&format!("must be `spec.version+\".\"+spec.group`: {wanted:?}"));
            }
            version(spec);
            server(spec);
            if spec.at("service").exists() && served_here_alone(spec.at("group").str()) {
                spec.at("service").forbidden("the group is built into this server");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

/// The groups that are built in; the one without a name, too, is. Upstream has no `metrics.k8s.io` of its own: there it is always
/// another's, so here it may become one's.
const SERVED_HERE_ALONE: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "corten.dev",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Is the group built in, and no other server may serve any version of it?
pub fn served_here_alone(group: &str) -> bool {
    group.is_empty() || SERVED_HERE_ALONE.contains(&group)
}

/// Upstream's controller finds it out; here it depends on the spec alone.
fn local(service: &Value) -> Value {
    json!({ "conditions": [{
        "type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available",
        "lastTransitionTime": service["metadata"]["creationTimestamp"],
    }] })
}

fn version(spec: Cursor<'_>) {
    let (group, version) = (spec.at("group"), spec.at("version"));
    let reasons = field::dns1123_subdomain(group.str());
    if group.is_empty() {
        if version.str() != "v1" {
            group.missing("only v1 may have an empty group and it better be legacy kube");
        }
    } else if !reasons.is_empty() {
        group.invalid(&reasons.join(","));
    }
    let reasons = field::dns1035_label(version.str());
    if !reasons.is_empty() {
        version.invalid_as(version.str(), &reasons.join(","));
    }
    for (name, max) in [("groupPriorityMinimum", GROUP_PRIORITY_MAX), ("versionPriority", VERSION_PRIORITY_MAX)] {
        let priority = spec.at(name);
        if !(1..=max).contains(&priority.int()) {
            let detail = format!("must be positive and less than {max}");
            priority.report(Violation::invalid(priority.path(), priority.int(), &detail));
        }
    }
}

fn server(spec: Cursor<'_>) {
    let (service, skip, bundle) = (spec.at("service"), spec.at("insecureSkipTLSVerify"), spec.at("caBundle"));
    if !service.exists() {
        if !bundle.is_empty() {
            bundle.invalid_as("<value omitted>", "local APIServices may not have a caBundle");
        }
        if skip.bool() {
            skip.invalid("local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    service.at("namespace").required();
    service.at("name").required();
    if !(1..=65535).contains(&service.at("port").int()) {
        service.at("port").invalid("port is not valid: must be between 1 and 65535, inclusive");
    }
    if skip.bool() && !bundle.is_empty() {
        skip.invalid("may not be true if caBundle is present");
    }
}
