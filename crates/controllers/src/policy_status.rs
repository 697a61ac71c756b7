//! Checks the expressions of ValidatingAdmissionPolicies against the kinds they match, and says in the status what these do not have
//! (upstream's `validatingadmissionpolicy-status-controller`).
//!
//! Definitions of custom resources are looked at only while a policy names a group that is not built in; then a policy is checked
//! again when one of them changes, which upstream does not.

use corten_api::resources;
use corten_cel::DeclType;
use corten_kinds::{KINDS, Kind, Schema};
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_policies::admission_policy::type_checking::{
    ExpressionWarning, Matched, RuleResource, types_to_check, warnings,
};
use corten_reconcile::{Controller, Effect, Plan, Verb, View, Wake, Watch, Write};
use corten_schema::{declared, declared_custom};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::projections::projection;

#[derive(Deserialize)]
struct ValidatingAdmissionPolicy {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}
projection!(ValidatingAdmissionPolicy, resources::VALIDATING_ADMISSION_POLICIES);

/// A definition, with its schemas as text: few of them are asked for.
#[derive(Deserialize)]
struct DefinedSchemas {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}
projection!(DefinedSchemas, resources::CUSTOM_RESOURCE_DEFINITIONS);

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
    #[serde(default, deserialize_with = "as_text")]
    schema: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Value>,
}

fn as_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    Ok(Value::deserialize(deserializer)?.to_string().into())
}

pub struct PolicyStatus;

impl Controller for PolicyStatus {
    fn name(&self) -> &'static str {
        "validatingadmissionpolicy-status"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<ValidatingAdmissionPolicy>(Wake::Itself).leading_to(definitions)]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[Write {
                verb: Verb::Patch,
                resource: resources::VALIDATING_ADMISSION_POLICIES,
                fields: &["status.observedGeneration", "status.typeChecking"],
            }]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::VALIDATING_ADMISSION_POLICIES)
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(policy) = view.get::<ValidatingAdmissionPolicy>(key) else { return Plan::default() };
        if policy.metadata.is_deleting() {
            return Plan::default();
        }
        let object = json!({ "spec": policy.spec });
        let types = types_to_check(&object, |sought| kinds_for(view, sought));
        let found = warnings(&object, &types, params(view, &policy.spec["paramKind"]).as_ref());
        Plan { effects: say(policy, &found).into_iter().collect(), ..Plan::default() }
    }
}

fn say(policy: &ValidatingAdmissionPolicy, found: &[ExpressionWarning]) -> Option<Effect> {
    let meta = &policy.metadata;
    let found = if found.is_empty() { Value::Null } else { json!(found) };
    let said = &policy.status["typeChecking"];
    if policy.status["observedGeneration"] == meta.generation && said.is_object() && said["expressionWarnings"] == found
    {
        return None;
    }
    let status = json!({ "observedGeneration": meta.generation, "typeChecking": { "expressionWarnings": found } });
    Some(Effect::Patch {
        resource: resources::VALIDATING_ADMISSION_POLICIES,
        key: meta.key(),
        subresource: Some("status"),
        patch: json!({ "metadata": { "uid": meta.uid }, "status": status }),
    })
}

/// Definitions, where a policy is about objects of one.
fn definitions(view: &View) -> Vec<Watch> {
    if view.list::<ValidatingAdmissionPolicy>().any(names_a_custom_group) {
        return vec![Watch::new::<DefinedSchemas>(Wake::With(about_custom_groups))];
    }
    Vec::new()
}

fn about_custom_groups(view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    view.list::<ValidatingAdmissionPolicy>().filter(|it| names_a_custom_group(it)).map(|it| it.metadata.key()).collect()
}

fn names_a_custom_group(policy: &ValidatingAdmissionPolicy) -> bool {
    let rules = policy.spec["matchConstraints"]["resourceRules"].as_array();
    let groups = rules.into_iter().flatten().flat_map(|it| it["apiGroups"].as_array().into_iter().flatten());
    let of_params =
        policy.spec["paramKind"]["apiVersion"].as_str().map_or("", |it| it.split_once('/').map_or("", |it| it.0));
    groups
        .filter_map(Value::as_str)
        .chain([of_params])
        .any(|it| it != "*" && !KINDS.iter().any(|row| row.resource.group == it))
}

/// `meta.RESTMapper`: a version without a group is looked for in all.
fn kinds_for(view: &View, sought: RuleResource<'_>) -> Vec<Matched> {
    let is_it = |group: &str, version: &str, plural: &str| {
        (sought.group.is_empty() || group == sought.group) && version == sought.version && plural == sought.plural
    };
    let mut found = Vec::new();
    for row in KINDS.iter() {
        let resource = &row.resource;
        if is_it(&resource.group, &resource.version, &resource.plural)
            && let Some(declared) = of_row(row)
        {
            found.push(matched(&resource.group, &resource.version, &resource.kind, declared));
        }
    }
    for definition in view.list::<DefinedSchemas>().filter(|it| it.is_established()) {
        let spec = &definition.spec;
        let served = spec.versions.iter().filter(|it| it.served && is_it(&spec.group, &it.name, &spec.names.plural));
        found.extend(served.filter_map(|it| it.matched(spec)));
    }
    found
}

/// The type of a policy's parameters, where it has some of a kind that is known.
fn params(view: &View, kind: &Value) -> Option<DeclType> {
    let (api_version, kind) = (kind["apiVersion"].as_str()?, kind["kind"].as_str()?);
    if let Some(row) = KINDS.iter().find(|it| it.resource.api_version() == api_version && it.resource.kind == kind) {
        return of_row(row);
    }
    let (group, version) = api_version.split_once('/')?;
    let mut definitions = view.list::<DefinedSchemas>().filter(|it| it.is_established() && it.spec.group == group);
    let spec = &definitions.find(|it| it.spec.names.kind == kind)?.spec;
    let of = spec.versions.iter().find(|it| it.served && it.name == version)?;
    Some(of.matched(spec)?.declared)
}

fn of_row(row: &Kind) -> Option<DeclType> {
    match &row.schema {
        Schema::Table(name) => declared(name, &row.resource.kind),
        Schema::Structural(_) => None,
    }
}

fn matched(group: &str, version: &str, kind: &str, declared: DeclType) -> Matched {
    Matched { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), declared }
}

impl DefinedSchemas {
    fn is_established(&self) -> bool {
        self.status.conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True")
    }
}

impl Version {
    fn matched(&self, of: &Spec) -> Option<Matched> {
        let schema: Value = serde_json::from_str(&self.schema).ok()?;
        let declared = declared_custom(&schema["openAPIV3Schema"], &of.names.kind)?;
        Some(matched(&of.group, &self.name, &of.names.kind, declared))
    }
}
