//! Reviews: questions about access and identity. Answered, never stored.

use corten_access::identity::user_info;
use corten_api::resources::{
    LOCAL_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_REVIEWS, SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS,
};
use corten_cacher::{answer, apart::apart, body::Response, codec};
use corten_kinds::Kind;
use corten_meta::Status;
use http::StatusCode;
use serde_json::{Value, json};

use super::{body, metadata};
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
        apart(|| ctx.state.access().review_rules(&review["spec"], &who))?
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
        ctx.state.access().review_access(&review["spec"], asker).await?
    };
    review["status"] = status;
    // The review is never stored: it has no time of creation.
    metadata::of(&mut review).shift_remove("creationTimestamp");
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
