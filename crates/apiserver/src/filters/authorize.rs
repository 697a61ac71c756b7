//! Lets a request on only where a rule allows it. What is asked is the request info, never the path or the body.

use corten_access::{Attributes, Decision};
use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_routes::Route;

use super::next::Rest;
use crate::context::{Context, Verdict};

/// Open to all, so that a load balancer can ask before there are roles.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// May the request go on? What is found out is kept for the filter.
pub(crate) async fn is_allowed(ctx: &mut Context) -> bool {
    match ctx.info.route {
        Route::NoSuchPath(_) => return false,
        Route::NonResource if ALWAYS_ALLOWED.contains(&&*ctx.info.path) => return true,
        _ => {}
    }
    let verdict = verdict(ctx).await;
    ctx.verdict.insert(verdict).refusal.is_none()
}

async fn verdict(ctx: &Context) -> Verdict {
    let question = Attributes::of_request(ctx.asker_now(), &ctx.info);
    let decision = ctx.state.access().decide_request(&question).await;
    let refusal = match &decision {
        Decision::Allowed(_) => None,
        Decision::Denied(denial) => Some(question.refusal(denial)),
    };
    Verdict { decision, refusal }
}

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match ctx.info.route {
        // Rights in a namespace must not reach what is in none, so nobody is asked for them.
        Route::NoSuchPath(_) => return answer::status(&Status::no_such_path()),
        Route::NonResource if ALWAYS_ALLOWED.contains(&&*ctx.info.path) => return rest.run(ctx).await,
        _ => {}
    }
    let Verdict { decision, refusal } = match ctx.verdict.take() {
        Some(known) => known,
        None => verdict(ctx).await,
    };
    if ctx.audit.is_kept() {
        let (word, reason) = match decision {
            Decision::Allowed(reason) => ("allow", reason.as_deref().unwrap_or_default().to_owned()),
            // An authorizer that could not be asked has decided nothing (`WithAuthorization`).
            Decision::Denied(denial) if !denial.error.is_empty() => ("", "internal error".to_owned()),
            Decision::Denied(denial) => ("forbid", denial.reason),
        };
        if !word.is_empty() {
            ctx.audit_annotations.insert("authorization.k8s.io/decision".into(), word.into());
        }
        ctx.audit_annotations.insert("authorization.k8s.io/reason".into(), reason);
    }
    match refusal {
        Some(status) => answer::status(&status),
        None => rest.run(ctx).await,
    }
}
