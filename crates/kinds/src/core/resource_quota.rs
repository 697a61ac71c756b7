//! How much of everything a namespace may hold in all.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    quota::{QuotaScope, SCOPES},
    resources::RESOURCE_QUOTAS,
};
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{read::text, rules::amount};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RESOURCE_QUOTAS,
    singular: "resourcequota",
    short_names: &["quota"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.core.v1.ResourceQuota",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Request", "What is used of what, by requests and by number.", |object, _| json!(used(object, false))),
        column("Limit", "What is used of what, by limits.", |object, _| json!(used(object, true))),
        AGE,
    ],
    policy: &ResourceQuota,
};

struct ResourceQuota;

const MUST_EXIST: &str = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

fn scope(name: &str) -> Option<&'static QuotaScope> {
    SCOPES.iter().find(|it| it.name == name)
}

/// `pods: 1/2, secrets: 0/5`
fn used(quota: &Value, of_limits: bool) -> String {
    let mut names: Vec<&String> = quota["status"]["hard"].as_object().into_iter().flatten().map(|it| it.0).collect();
    names.retain(|it| it.starts_with("limits.") == of_limits);
    names.sort();
    let amount = |list: &str, name: &str| match text(&quota["status"][list], &format!("/{}", name.replace('/', "~1"))) {
        "" => "0".to_owned(),
        amount => amount.to_owned(),
    };
    let parts = names.iter().map(|it| format!("{it}: {}/{}", amount("used", it), amount("hard", it)));
    parts.collect::<Vec<_>>().join(", ")
}

impl Policy for ResourceQuota {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |quota| {
            let spec = quota.at("spec");
            amounts(spec.at("hard"));
            scopes(spec);
            selector(spec);
            amounts(quota.at("status").at("hard"));
            amounts(quota.at("status").at("used"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        let set = |it: &Value| -> BTreeSet<String> {
            it.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        violations(new, |quota| {
            let scopes = quota.at("spec").at("scopes");
            if set(scopes.value()) != set(&old["spec"]["scopes"]) {
                scopes.invalid("field is immutable");
            }
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |quota| {
            amounts(quota.at("status").at("hard"));
            amounts(quota.at("status").at("used"));
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn amounts(list: Cursor<'_>) {
    for (name, quantity) in list.entries() {
        amount::quota_name(name, quantity);
        amount::quantity(name, quantity);
    }
}

/// Does it make sense to count this resource within the scope? Names with a domain are anyone's.
fn fits(scope: &str, resource: &str) -> bool {
    let is_compute = matches!(
        resource,
        "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory" | "pods"
    );
    let is_storage =
        matches!(resource, "ephemeral-storage" | "limits.ephemeral-storage" | "requests.ephemeral-storage");
    match scope {
        _ if resource.contains('/') => true,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => is_compute || is_storage,
    }
}

fn conflict(scopes: &BTreeSet<&str>) -> bool {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .iter()
        .any(|pair| pair.iter().all(|it| scopes.contains(it)))
}

/// Whether the resources of a quota fit a scope: each is looked at once for each known scope and once for all others, however
/// many scopes the quota names.
struct Fit<'a> {
    hard: Cursor<'a>,
    unfit: BTreeMap<&'static str, bool>,
}

impl<'a> Fit<'a> {
    fn new(spec: Cursor<'a>) -> Self {
        Self { hard: spec.at("hard"), unfit: BTreeMap::new() }
    }

    /// Does a resource of the quota not fit the scope?
    fn is_unfit(&mut self, scope: &str) -> bool {
        let scope = self::scope(scope).map_or("", |it| it.name);
        let hard = self.hard.map();
        *self.unfit.entry(scope).or_insert_with(|| hard.into_iter().flatten().any(|(name, _)| !fits(scope, name)))
    }
}

fn scopes(spec: Cursor<'_>) {
    let list = spec.at("scopes");
    let (mut seen, mut fit) = (BTreeSet::new(), Fit::new(spec));
    for scope in list.each() {
        if self::scope(scope.str()).is_none() {
            list.invalid("unsupported scope");
        }
        if fit.is_unfit(scope.str()) {
            list.invalid("unsupported scope applied to resource");
        }
        seen.insert(scope.str());
    }
    if conflict(&seen) {
        list.invalid("conflicting scopes");
    }
}

fn selector(spec: Cursor<'_>) {
    let list = spec.at("scopeSelector").at("matchExpressions");
    let (mut seen, mut fit) = (BTreeSet::new(), Fit::new(spec));
    // `ValidateResourceQuotaSpec`: the paths name no index.
    let part = |name: &'static str| list.at(name).path();
    for requirement in list.each() {
        let (scope, operator, values) =
            (requirement.at("scopeName"), requirement.at("operator"), requirement.at("values"));
        let report = |name: &'static str, at: Cursor<'_>, detail: &str| {
            at.report(Violation::invalid(part(name), format!("{:?}", at.str()), detail));
        };
        let known = self::scope(scope.str());
        if known.is_none() {
            report("scopeName", scope, "unsupported scope");
        }
        if fit.is_unfit(scope.str()) {
            list.invalid("unsupported scope applied to resource");
        }
        if known.is_some_and(|it| !it.has_values) && operator.str() != "Exists" {
            report("operator", operator, MUST_EXIST);
        }
        match operator.str() {
            "In" | "NotIn" if values.is_empty() => values.report(Violation::required(
                part("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => values.report(Violation::invalid(
                part("values"),
                values.value(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => report("operator", operator, "not a valid selector operator"),
        }
        seen.insert(scope.str());
    }
    if conflict(&seen) {
        list.invalid("conflicting scopes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_scopes_of_many_resources_have_a_bounded_answer() {
        let hard: serde_json::Map<String, Value> =
            (0..100_000).map(|it| (format!("count/r{it}.x"), json!("1"))).collect();
        let scopes = vec!["NotBestEffort"; 100_000];
        let quota = json!({"spec": {"hard": hard, "scopes": scopes}});
        assert!(ResourceQuota.validate(&quota).is_empty());
        let quota = json!({"spec": {"hard": {"services": "1"}, "scopes": vec!["Odd"; 100_000]}});
        let found = ResourceQuota.validate(&quota);
        assert_eq!(found.len(), Violation::MOST + 1);
        assert!(found.iter().map(|it| it.message.len()).sum::<usize>() < 1 << 20);
    }
}
