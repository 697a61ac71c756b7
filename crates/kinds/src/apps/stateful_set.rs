//! Keeps Pods with names and disks of their own.

use corten_api::resources::STATEFUL_SETS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{each, fill, made, means_the_same, text},
    labels, pod_spec,
    read::number,
    rules::{self, int_or_percent},
    warnings,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, column},
    core::{persistent_volume_claim, workload},
    keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: STATEFUL_SETS,
    singular: "statefulset",
    short_names: &["sts"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Scale, Subresource::Status],
    schema: "io.k8s.api.apps.v1.StatefulSet",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Ready", "How many of its Pods are ready, of how many.", |object, _| {
            let of = number(object, "/spec/replicas");
            json!(format!("{}/{of}", number(object, "/status/readyReplicas")))
        }),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    policy: &StatefulSet,
};

struct StatefulSet;

const CHANGEABLE: &[&str] = &[
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];
const ONLY: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

impl Policy for StatefulSet {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        workload::default(spec);
        fill(spec, "podManagementPolicy", "OrderedReady");
        fill(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = made(spec, "updateStrategy") {
            fill(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = made(strategy, "rollingUpdate")
            {
                fill(rolling, "partition", 0);
                fill(rolling, "maxUnavailable", 1);
            }
        }
        if let Some(retention) = made(spec, "persistentVolumeClaimRetentionPolicy") {
            fill(retention, "whenDeleted", "Retain");
            fill(retention, "whenScaled", "Retain");
        }
        for claim in each(spec, "volumeClaimTemplates") {
            fill(claim, "apiVersion", "v1");
            fill(claim, "kind", "PersistentVolumeClaim");
            persistent_volume_claim::default(claim);
        }
    }

    /// Its name becomes part of its Pods' host names.
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::dns1123_label(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        // The host name of its template is not looked at: each Pod gets its own.
        let mut object = object.clone();
        if let Some(template) = object.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) {
            template.shift_remove("hostname");
        }
        violations(&object, |set| spec(set.at("spec")))
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut found = pod_spec::warnings(new, old, &["spec", "template", "spec"], pod_spec::Name::Nothing);
        found.extend(warnings::stateful_set(new, old));
        found
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |set| {
            let spec = set.at("spec");
            let mut allowed = spec.value().clone();
            CHANGEABLE.iter().for_each(|it| keep(&mut allowed, &old["spec"], it));
            if !means_the_same(&allowed, &old["spec"]) {
                spec.forbidden(ONLY);
            }
        })
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |set| {
            let status = set.at("status");
            let of_all = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
            rules::counts(status, &["replicas"]);
            rules::counts(status, &of_all);
            rules::counts(status, &["observedGeneration", "collisionCount"]);
            rules::at_most(status, &of_all, "replicas", "status.replicas");
            rules::at_most(status, &["availableReplicas"], "readyReplicas", "status.readyReplicas");
            rules::never_less(status.at("collisionCount"), &old["status"]["collisionCount"]);
        })
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn spec(spec: Cursor<'_>) {
    let management = spec.at("podManagementPolicy");
    if management.required() && !["OrderedReady", "Parallel"].contains(&management.str()) {
        management.invalid("must be 'OrderedReady' or 'Parallel'");
    }
    strategy(spec.at("updateStrategy"));
    for policy in ["whenDeleted", "whenScaled"].map(|it| spec.at("persistentVolumeClaimRetentionPolicy").at(it)) {
        if !policy.is_empty() {
            policy.one_of(&["Delete", "Retain"]);
        }
    }
    spec.at("replicas").non_negative_int();
    spec.at("minReadySeconds").non_negative_int();
    spec.at("ordinals").at("start").non_negative_int();
    spec.at("revisionHistoryLimit").non_negative_int();
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    let mut is_selector = true;
    if selector.exists() {
        is_selector = labels::label_selector(selector);
        if workload::is_all(selector) {
            selector.invalid("empty selector is invalid for statefulset");
        }
    } else {
        selector.missing("");
    }
    if !is_selector {
        selector.invalid("");
        return workload::lasting(template, "StatefulSet");
    }
    let labels = template.at("metadata").at("labels");
    if !workload::matches(selector, labels) {
        labels.invalid(workload::MISMATCH);
    }
    // `ValidatePodTemplateSpecForStatefulSet` looks at both before ValidatePodTemplateSpec does.
    for _ in 0..2 {
        labels::labels(template.at("labels").instead(labels));
        labels::annotations(template.at("annotations").instead(template.at("metadata").at("annotations")));
    }
    let claimed = spec.list("volumeClaimTemplates").map(|it| it.at("metadata").at("name").str());
    pod_spec::validate_template_spec(template, claimed);
    workload::lasting(template, "StatefulSet");
}

fn strategy(strategy: Cursor<'_>) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").str() {
        "" => strategy.missing(""),
        "OnDelete" => {
            if rolling.exists() {
                rolling.invalid("only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            rolling.at("partition").non_negative_int();
            let unavailable = rolling.at("maxUnavailable");
            if unavailable.exists() {
                int_or_percent::int_or_percent(unavailable);
                if int_or_percent::is_zero(unavailable) {
                    unavailable.invalid("cannot be 0");
                }
                int_or_percent::at_most_all(unavailable);
            }
        }
        _ => strategy.invalid("must be 'RollingUpdate' or 'OnDelete'"),
    }
}
