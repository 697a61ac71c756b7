//! Reviews of access: what somebody may do, asked of this server. Whoever decides requests decides them.

use std::{collections::BTreeMap, fmt::Write};

use corten_cacher::watch_cache::Caches;
use corten_meta::{Status, aggregate, selector::requirements};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    authorizer::Authorizer,
    identity::Identity,
    node,
    question::{Attributes, Decision, ResourceOrPath},
};

/// The `spec` of the access reviews; `user` and `groups` count only for those about others.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Option<Vec<String>>,
    uid: String,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<Selector>,
    label_selector: Option<Selector>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    raw_selector: String,
    requirements: Option<Vec<Requirement>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

impl Selector {
    /// As a query of fields would write it. What cannot be written so narrows nothing: that never allows more.
    fn of_fields(&self) -> String {
        let mut text = self.raw_selector.clone();
        for it in self.requirements.iter().flatten() {
            let sign = match &*it.operator {
                "In" => "=",
                "NotIn" => "!=",
                _ => continue,
            };
            if let [value] = it.values.as_deref().unwrap_or_default() {
                let value = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
                let comma = if text.is_empty() { "" } else { "," };
                write!(text, "{comma}{}{sign}{value}", it.key).expect("writing to memory does not fail");
            }
        }
        text
    }

    /// As a query of labels would.
    fn of_labels(&self) -> String {
        let mut text = self.raw_selector.clone();
        for it in self.requirements.iter().flatten() {
            let (key, values) = (&it.key, it.values.as_deref().unwrap_or_default().join(","));
            let comma = if text.is_empty() { "" } else { "," };
            let requirement = match &*it.operator {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.clone(),
                "DoesNotExist" => format!("!{key}"),
                _ => continue,
            };
            // One that no label could meet, or that says another thing in this form, narrows nothing.
            if requirements(&requirement).is_ok_and(|it| it.len() == 1) {
                write!(text, "{comma}{requirement}").expect("writing to memory does not fail");
            }
        }
        text
    }
}

/// The `status` of a review that asks whether somebody may do something; `asker` is whom it is about, unless it says that itself.
///
/// # Errors
/// 400 where the `spec` cannot be read.
pub(crate) async fn access(
    authorizer: &Authorizer,
    caches: &Caches,
    spec: &Value,
    asker: Option<&Identity>,
) -> Result<Value, Status> {
    let spec = Spec::deserialize(spec).map_err(|it| Status::bad_request(format!("spec: {it}")))?;
    let about = Identity {
        user: spec.user,
        uid: spec.uid,
        groups: spec.groups.unwrap_or_default(),
        // Keys are in lower case wherever they come from.
        extra: spec.extra.unwrap_or_default().into_iter().map(|(key, values)| (key.to_lowercase(), values)).collect(),
    };
    let who = Attributes::of(asker.unwrap_or(&about));
    let of_resource = spec.resource_attributes.as_ref();
    let fields = of_resource.and_then(|it| it.field_selector.as_ref()).map(Selector::of_fields).unwrap_or_default();
    let labels = of_resource.and_then(|it| it.label_selector.as_ref()).map(Selector::of_labels).unwrap_or_default();
    let version = of_resource.map(|it| &*it.version).unwrap_or_default();
    let (verb, target) = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(it), _) => {
            let ResourceAttributes { namespace, group, resource, subresource, name, .. } = it;
            (&it.verb, ResourceOrPath::Resource { group, resource, subresource, namespace, name })
        }
        (None, Some(it)) => (&it.verb, ResourceOrPath::Path(&it.path)),
        (None, None) => return Err(Status::internal("a review without attributes was not refused")),
    };
    let question = Attributes { verb, target, version, field_selector: &fields, label_selector: &labels, ..who };
    let decision = authorizer.decide(caches, &question).await;
    let mut status = json!({ "allowed": decision.is_allowed() });
    let (reason, error) = match &decision {
        Decision::Allowed(reason) => (reason.as_deref().unwrap_or_default(), ""),
        Decision::Denied(denial) => {
            if denial.is_explicit {
                status["denied"] = json!(true);
            }
            (&*denial.reason, &*denial.error)
        }
    };
    for (name, text) in [("reason", reason), ("evaluationError", error)] {
        if !text.is_empty() {
            status[name] = json!(text);
        }
    }
    Ok(status)
}

/// An answer tells rules up to this size: whoever may write roles and bindings would else be answered any length.
const RULES_BYTES_MAX: usize = 4 << 20;

/// The `status` of a SelfSubjectRulesReview: every rule that holds for the asker in a namespace.
///
/// # Errors
/// 400 where no namespace is named.
pub(crate) fn rules(authorizer: &Authorizer, caches: &Caches, spec: &Value, who: &Identity) -> Result<Value, Status> {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let unlisted = authorizer.unlisted(node::name_of(&who.user, &who.groups).is_some());
    let compiled = authorizer.compiled(caches);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    let (mut room, mut errors) = (RULES_BYTES_MAX, unlisted.errors.clone());
    if unlisted.allows_all {
        resources.push(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
        paths.push(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
    }
    for rule in compiled.granted(&who.user, &who.groups, namespace).filter(|_| unlisted.has_rbac) {
        let Some(rest) = room.checked_sub(rule.n_bytes()) else {
            errors.push("more rules hold than one answer tells");
            break;
        };
        room = rest;
        if !rule.resources.is_empty() {
            let mut shown = json!({ "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources });
            if !rule.resource_names.is_empty() {
                shown["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(shown);
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
        }
    }
    let mut status = json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": !errors.is_empty() });
    if let Some(error) = aggregate(errors.into_iter().map(str::to_owned)) {
        status["evaluationError"] = json!(error);
    }
    Ok(status)
}

/// A local review is about the namespace it is asked in.
///
/// # Errors
/// It names another one.
pub fn put_in(review: &mut Value, namespace: &str) -> Result<(), Status> {
    match review["metadata"]["namespace"].as_str().unwrap_or_default() {
        "" => review["metadata"]["namespace"] = json!(namespace),
        named if named == namespace => {}
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_become_a_selector() {
        let selector: Selector = serde_json::from_value(json!({ "requirements": [
            { "key": "spec.nodeName", "operator": "In", "values": ["a=b,c"] },
            { "key": "x", "operator": "Exists" },
            { "key": "y", "operator": "NotIn", "values": ["z"] },
        ] }))
        .expect("a selector");
        assert_eq!(selector.of_fields(), "spec.nodeName=a\\=b\\,c,y!=z");
        assert_eq!(selector.of_labels(), "x,y notin (z)");
    }
}
