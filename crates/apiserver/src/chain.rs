//! The request chain as a list, outermost first.

use corten_cacher::body::Response;

use crate::{
    context::Context,
    filters::{
        audit, authenticate, authorize, catch_panic, catch_up, cross_site, deadline, fairness, impersonate, indent,
        measure,
        next::{Link, Rest},
        refusal, request_info,
    },
    router,
};

pub const CHAIN: &[Link] = &[
    Link { name: "catch_panic", filter: |ctx, rest| Box::pin(catch_panic::filter(ctx, rest)) },
    Link { name: "request_info", filter: |ctx, rest| Box::pin(request_info::filter(ctx, rest)) },
    Link { name: "indent", filter: |ctx, rest| Box::pin(indent::filter(ctx, rest)) },
    Link { name: "refusal", filter: |ctx, rest| Box::pin(refusal::filter(ctx, rest)) },
    Link { name: "measure", filter: |ctx, rest| Box::pin(measure::filter(ctx, rest)) },
    Link { name: "deadline", filter: |ctx, rest| Box::pin(deadline::filter(ctx, rest)) },
    Link { name: "authenticate", filter: |ctx, rest| Box::pin(authenticate::filter(ctx, rest)) },
    Link { name: "audit", filter: |ctx, rest| Box::pin(audit::filter(ctx, rest)) },
    Link { name: "cross_site", filter: |ctx, rest| Box::pin(cross_site::filter(ctx, rest)) },
    Link { name: "impersonate", filter: |ctx, rest| Box::pin(impersonate::filter(ctx, rest)) },
    Link { name: "fairness", filter: |ctx, rest| Box::pin(fairness::filter(ctx, rest)) },
    Link { name: "authorize", filter: |ctx, rest| Box::pin(authorize::filter(ctx, rest)) },
    Link { name: "catch_up", filter: |ctx, rest| Box::pin(catch_up::filter(ctx, rest)) },
    Link { name: "verb", filter: |ctx, _| Box::pin(router::answer(ctx)) },
];

/// Sends a request through the whole chain.
pub async fn run(ctx: &mut Context) -> Response {
    Rest::of(CHAIN).run(ctx).await
}
