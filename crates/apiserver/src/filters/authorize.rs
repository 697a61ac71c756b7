//! Lets a request on only where a rule allows it. What is asked is the request info, never the path or the body.

use std::collections::BTreeMap;

use corten_kinds::routes::Route;
use corten_meta::Status;

use crate::{
    access::{Attributes, Decision, Target},
    answer,
    chain::Rest,
    request::{Context, Identity, RequestInfo, Response},
};

/// Open to all, so that a load balancer can ask before there are roles.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Who asks before authentication: the chain never lets them come this far.
const NOBODY: &Identity =
    &Identity { user: String::new(), uid: String::new(), groups: Vec::new(), extra: BTreeMap::new() };

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match ctx.info.route {
        // Rights in a namespace must not reach what is in none, so nobody is asked for them.
        Route::NoSuchPath(_) => return answer::status(&Status::no_such_path()),
        Route::NonResource if ALWAYS_ALLOWED.contains(&&*ctx.info.path) => return rest.run(ctx).await,
        _ => {}
    }
    let (decision, refusal) = {
        let question = attributes(ctx.identity.as_ref().unwrap_or(NOBODY), &ctx.info);
        let decision = ctx.server.authorizer().decide(ctx.server.caches(), &question);
        let refusal = match &decision {
            Decision::Allowed(_) => None,
            Decision::Denied(reason) => Some(question.forbidden(reason)),
        };
        (decision, refusal)
    };
    if ctx.audit.is_kept() {
        let (word, reason) = match decision {
            Decision::Allowed(reason) => ("allow", reason.as_deref().unwrap_or_default().to_owned()),
            Decision::Denied(reason) => ("forbid", reason),
        };
        ctx.audit_annotations.insert("authorization.k8s.io/decision".into(), word.into());
        ctx.audit_annotations.insert("authorization.k8s.io/reason".into(), reason);
    }
    match refusal {
        Some(status) => answer::status(&status),
        None => rest.run(ctx).await,
    }
}

/// The access question that a request asks.
pub(crate) fn attributes<'a>(who: &'a Identity, info: &'a RequestInfo) -> Attributes<'a> {
    let target = if info.is_resource() {
        Target::Resource {
            group: &info.group,
            resource: &info.plural,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
        }
    } else {
        Target::Path(&info.path)
    };
    let is_narrowed = matches!(info.verb, "list" | "watch" | "deletecollection");
    let field_selector = if is_narrowed { info.query.get("fieldSelector").unwrap_or_default() } else { "" };
    Attributes { verb: info.verb, target, field_selector, ..Attributes::of(who) }
}
