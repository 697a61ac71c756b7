//! Templates of the groups of Pods that a controller makes. Stored; no controller makes any yet.

use std::collections::BTreeSet;

use corten_api::resources::{WORKLOADS, WORKLOADS_V1ALPHA3};
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::rules;
use serde_json::Value;

use super::group;
use crate::{BuiltIn, Policy, Verb, ViewOf, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: WORKLOADS,
    singular: "workload",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.scheduling.v1beta1.Workload",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &Workload,
};

pub(crate) const V1ALPHA3: BuiltIn =
    BuiltIn::view(WORKLOADS_V1ALPHA3, "io.k8s.api.scheduling.v1alpha3.Workload", ViewOf::same(WORKLOADS), KIND);

struct Workload;

const TEMPLATES_MAX: usize = 8;
/// How deep composite templates may nest in Kubernetes.
const DEPTH_MAX: usize = 4;

impl Policy for Workload {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |workload| {
            let spec = workload.at("spec");
            let owner = spec.at("controllerRef");
            if owner.exists() {
                if !owner.at("apiGroup").is_empty() {
                    owner.at("apiGroup").follows(field::dns1123_subdomain);
                }
                rules::path_segment(owner.at("kind"));
                rules::path_segment(owner.at("name"));
            }
            let mut names = BTreeSet::new();
            templates(spec, DEPTH_MAX, &mut names);
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |workload| {
            let spec = workload.at("spec");
            if !old["spec"]["controllerRef"].is_null() {
                rules::immutable(spec.at("controllerRef"), &old["spec"]["controllerRef"]);
            }
            for templates in ["podGroupTemplates", "compositePodGroupTemplates"] {
                rules::immutable(spec.at(templates), &old["spec"][templates]);
            }
        })
    }
}

/// The templates of a Workload or of a composite template; names are unique in the whole Workload.
fn templates<'a>(of: Cursor<'a>, depth: usize, names: &mut BTreeSet<&'a str>) {
    let (groups, composites) = (of.at("podGroupTemplates"), of.at("compositePodGroupTemplates"));
    if groups.is_empty() && composites.is_empty() {
        groups.missing("must have at least one template");
    }
    for list in [groups, composites] {
        if list.items().len() > TEMPLATES_MAX {
            list.report(Violation::too_many(list.path(), list.items().len(), TEMPLATES_MAX));
        }
    }
    for template in groups.each() {
        name(template.at("name"), names);
        group::validate(template, "minCount");
    }
    for template in composites.each() {
        name(template.at("name"), names);
        group::validate(template, "minGroupCount");
        if depth == 0 {
            template.forbidden("composite templates are nested too deeply");
        } else {
            templates(template, depth - 1, names);
        }
    }
}

fn name<'a>(name: Cursor<'a>, names: &mut BTreeSet<&'a str>) {
    if !name.required() {
        return;
    }
    name.follows(field::dns1123_label);
    if !names.insert(name.str()) {
        name.duplicate();
    }
}
