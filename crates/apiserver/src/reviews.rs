//! SubjectAccessReview and its relatives: questions about access and identity. Answered, never stored.

use corten_meta::{Status, Violation};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    access::{Attributes, Decision, Target},
    answer, codec,
    request::{Context, Identity, Response},
};

/// A create of a review kind.
pub(crate) async fn answer(ctx: &mut Context) -> Result<Response, Status> {
    let kind = ctx.info.kind.expect("routed by its row");
    let mut review = codec::object(ctx, kind).await?;
    let who = ctx.who();
    review["status"] = match &*kind.resource.kind {
        "SelfSubjectReview" => json!({ "userInfo": user_info(&who) }),
        "SelfSubjectAccessReview" => access(ctx, &review, Some(&who))?,
        "SubjectAccessReview" => access(ctx, &review, None)?,
        _ => return Err(Status::method_not_allowed(&kind.resource, "create")),
    };
    Ok(answer::json(StatusCode::CREATED, &review))
}

fn user_info(who: &Identity) -> Value {
    let mut info = json!({ "username": who.user });
    if !who.uid.is_empty() {
        info["uid"] = json!(who.uid);
    }
    if !who.groups.is_empty() {
        info["groups"] = json!(who.groups);
    }
    if !who.extra.is_empty() {
        info["extra"] = json!(who.extra);
    }
    info
}

/// The `spec` of both access reviews; `user` and `groups` count only for the one about others.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

/// `asker` is whom the question is about, unless the review says it.
fn access(ctx: &Context, review: &Value, asker: Option<&Identity>) -> Result<Value, Status> {
    let spec = Spec::deserialize(&review["spec"]).map_err(|it| Status::bad_request(format!("spec: {it}")))?;
    let violations = violations(&spec, asker.is_some());
    if !violations.is_empty() {
        let kind = ctx.info.kind.expect("routed by its row");
        return Err(Status::invalid(&kind.resource, "", &violations));
    }
    let (user, groups) = asker.map_or((&spec.user, &spec.groups), |it| (&it.user, &it.groups));
    let (verb, target) = match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(it), _) => {
            let ResourceAttributes { namespace, group, resource, subresource, name, .. } = it;
            (&it.verb, Target::Resource { group, resource, subresource, namespace, name })
        }
        (None, Some(it)) => (&it.verb, Target::Path(&it.path)),
        (None, None) => return Err(Status::internal("a review without attributes was not refused")),
    };
    let question = Attributes { user, groups, verb, target };
    Ok(match ctx.server.authorizer().decide(ctx.server.caches(), &question) {
        Decision::Allowed => json!({ "allowed": true }),
        Decision::Denied(reason) if reason.is_empty() => json!({ "allowed": false }),
        Decision::Denied(reason) => json!({ "allowed": false, "reason": reason }),
    })
}

fn violations(spec: &Spec, is_self: bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(_)) => violations.push(Violation::invalid(
            "spec.nonResourceAttributes",
            "null",
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => violations.push(Violation::invalid(
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    if !is_self && spec.user.is_empty() && spec.groups.is_empty() {
        violations.push(Violation::invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    violations
}
