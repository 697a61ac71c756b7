//! Reviews: questions about access and identity. Answered, never stored.

use std::fmt::Write;

use corten_access::{Attributes, Decision, Identity, Target, identity::user_info, node};
use corten_api::resources::{
    LOCAL_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_REVIEWS, SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS,
};
use corten_cacher::{answer, body::Response, codec};
use corten_kinds::Kind;
use corten_meta::Status;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use crate::context::Context;

/// A create of a review kind.
pub(crate) async fn answer(ctx: &mut Context, kind: &'static Kind) -> Result<Response, Status> {
    codec::Form::without_table(&ctx.headers, &ctx.info.query)?;
    let mut review = body::object(ctx, kind).await?;
    let who = ctx.who();
    let resource = &kind.resource;
    let status = if *resource == TOKEN_REVIEWS {
        ctx.state.access().review_token(&review["spec"]).await?
    } else if *resource == SELF_SUBJECT_REVIEWS {
        json!({ "userInfo": user_info(&who) })
    } else if *resource == SELF_SUBJECT_RULES_REVIEWS {
        rules(ctx, &who, &review)?
    } else {
        if *resource == LOCAL_SUBJECT_ACCESS_REVIEWS {
            in_place(&mut review, &ctx.info.namespace)?;
        }
        let violations = kind.policy.validate(&review);
        if !violations.is_empty() {
            return Err(Status::invalid(resource, "", &violations));
        }
        let asker = (*resource == SELF_SUBJECT_ACCESS_REVIEWS).then_some(&who);
        let is_about_access = [SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS, LOCAL_SUBJECT_ACCESS_REVIEWS];
        if !is_about_access.contains(resource) {
            return Err(Status::method_not_allowed(resource, "create"));
        }
        access(ctx, &review, asker)?
    };
    review["status"] = status;
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    // As upstream: of a review that was not stored.
    review["metadata"]["creationTimestamp"] = Value::Null;
    Ok(answer::json(StatusCode::CREATED, &review))
}

/// A local review is about the namespace it is asked in.
fn in_place(review: &mut Value, namespace: &str) -> Result<(), Status> {
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

/// The `spec` of the access reviews; `user` and `groups` count only for those about others.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<Selector>,
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
    /// As a query would write it. What cannot be written so narrows nothing: that never allows more.
    fn text(&self) -> String {
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
}

/// `asker` is whom the question is about, unless the review says it.
fn access(ctx: &Context, review: &Value, asker: Option<&Identity>) -> Result<Value, Status> {
    let spec = Spec::deserialize(&review["spec"]).map_err(|it| Status::bad_request(format!("spec: {it}")))?;
    let about = Identity { user: spec.user, groups: spec.groups.unwrap_or_default(), ..Identity::default() };
    let who = Attributes::of(asker.unwrap_or(&about));
    let selector = spec.resource_attributes.as_ref().and_then(|it| it.field_selector.as_ref()).map(Selector::text);
    let field_selector = selector.as_deref().unwrap_or_default();
    let (verb, target) = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(it), _) => {
            let ResourceAttributes { namespace, group, resource, subresource, name, .. } = it;
            (&it.verb, Target::Resource { group, resource, subresource, namespace, name })
        }
        (None, Some(it)) => (&it.verb, Target::Path(&it.path)),
        (None, None) => return Err(Status::internal("a review without attributes was not refused")),
    };
    let question = Attributes { verb, target, field_selector, ..who };
    let decision = ctx.state.access().decide(&question);
    let mut status = json!({ "allowed": decision.is_allowed() });
    let reason = match &decision {
        Decision::Allowed(reason) => reason.as_deref().unwrap_or_default(),
        Decision::Denied(reason) => reason,
    };
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// Every rule that holds for the asker in a namespace.
fn rules(ctx: &Context, who: &Identity, review: &Value) -> Result<Value, Status> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let compiled = ctx.state.access().authorizer().compiled(ctx.state.caches());
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in compiled.index.granted(&who.user, &who.groups, namespace) {
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
    let is_node = node::name_of(&who.user, &who.groups).is_some();
    let mut status = json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": is_node });
    if is_node {
        status["evaluationError"] = json!("node authorizer does not support user rule resolution");
    }
    Ok(status)
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
        assert_eq!(selector.text(), "spec.nodeName=a\\=b\\,c,y!=z");
    }
}
