//! Reviews: questions about access and identity. Answered, never stored. Of admission, only webhooks are asked about
//! them, never policies (kube-apiserver's `exclusion.Excluded`).

use corten_access::{access_reviews, identity::user_info};
use corten_admission::{admit_by_webhooks, validate_by_webhooks};
use corten_api::resources::{
    LOCAL_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_REVIEWS, SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS,
};
use corten_cacher::{answer, apart::apart, body::Response, codec};
use corten_kinds::Kind;
use corten_meta::Status;
use http::StatusCode;
use serde_json::json;

use super::{body, metadata, request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

/// A create of a review kind.
pub(crate) async fn answer(ctx: &mut Context, kind: &'static Kind) -> Result<Response, Status> {
    codec::Form::without_table(&ctx.headers, &ctx.info.query)?;
    let mut review = body::object(ctx, kind).await?;
    let who = ctx.who();
    let resource = &kind.resource;
    let target = RequestScope::built_in(kind, ctx.info.namespace.clone(), String::new(), None);
    let asked = WriteRequest::create(ctx, &target);
    admit_by_webhooks(&asked.attributes(), &mut review).await?;
    let is_about_others = [SUBJECT_ACCESS_REVIEWS, LOCAL_SUBJECT_ACCESS_REVIEWS].contains(resource);
    let is_about_access = is_about_others || *resource == SELF_SUBJECT_ACCESS_REVIEWS;
    if *resource == LOCAL_SUBJECT_ACCESS_REVIEWS {
        access_reviews::put_in(&mut review, &ctx.info.namespace)?;
    }
    let violations = if is_about_access { kind.policy.validate(&review) } else { Vec::new() };
    if !violations.is_empty() {
        return Err(Status::invalid(resource, "", &violations));
    }
    validate_by_webhooks(&asked.attributes(), &review).await?;
    let access = ctx.state.access();
    let status = if is_about_access {
        access.review_access(&review["spec"], (!is_about_others).then_some(&who)).await?
    } else if *resource == TOKEN_REVIEWS {
        access.review_token(&review["spec"]).await?
    } else if *resource == SELF_SUBJECT_REVIEWS {
        json!({ "userInfo": user_info(&who) })
    } else if *resource == SELF_SUBJECT_RULES_REVIEWS {
        apart(|| access.review_rules(&review["spec"], &who))?
    } else {
        return Err(Status::method_not_allowed(resource, "create"));
    };
    review["status"] = status;
    // What is never stored has no time of creation. One of oneself has the answer's, and nothing that was sent (selfsubjectreview.REST).
    metadata::of(&mut review).shift_remove("creationTimestamp");
    if *resource == SELF_SUBJECT_REVIEWS {
        review["metadata"] = json!({ "creationTimestamp": ctx.state.now().to_string() });
    }
    Ok(answer::json(StatusCode::CREATED, &review))
}
