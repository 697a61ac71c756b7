//! Lets a request on only where a rule allows it. What is asked comes from the path alone, never from the body.

use crate::{
    access::{Attributes, Decision, Target},
    answer,
    chain::Rest,
    request::{Context, Identity, RequestInfo, Response},
};

/// Open to all, so that a load balancer can ask before there are roles.
const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    if ALWAYS_ALLOWED.contains(&&*ctx.info.path) {
        return rest.run(ctx).await;
    }
    let who = ctx.who();
    let question = attributes(&who, &ctx.info);
    let (decision, reason) = match ctx.server.authorizer().decide(ctx.server.caches(), &question) {
        Decision::Allowed => ("allow", String::new()),
        Decision::Denied(reason) => ("forbid", reason),
    };
    let refusal = (decision == "forbid").then(|| question.forbidden(&reason));
    ctx.audit_annotations.insert("authorization.k8s.io/decision".into(), decision.into());
    ctx.audit_annotations.insert("authorization.k8s.io/reason".into(), reason);
    match refusal {
        Some(status) => answer::status(&status),
        None => rest.run(ctx).await,
    }
}

/// The access question that a request asks.
pub(crate) fn attributes<'a>(who: &'a Identity, info: &'a RequestInfo) -> Attributes<'a> {
    let target = if info.is_resource {
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
    Attributes { user: &who.user, groups: &who.groups, verb: info.verb, target }
}
