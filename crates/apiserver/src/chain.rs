//! The request chain as a list, outermost first, and the admission plugins in the order they are asked.

use crate::{
    admission::{self, Admission},
    filters::{audit, authenticate, authorize, catch_panic, cross_site, deadline, impersonate, measure, request_info},
    request::{BoxFuture, Context, Response},
    verbs,
};

/// One link: does its part before, after or instead of the rest.
pub struct Link {
    pub name: &'static str,
    pub filter: for<'a> fn(&'a mut Context, Rest) -> BoxFuture<'a, Response>,
}

pub const CHAIN: &[Link] = &[
    Link { name: "catch_panic", filter: |ctx, rest| Box::pin(catch_panic::filter(ctx, rest)) },
    Link { name: "request_info", filter: |ctx, rest| Box::pin(request_info::filter(ctx, rest)) },
    Link { name: "measure", filter: |ctx, rest| Box::pin(measure::filter(ctx, rest)) },
    Link { name: "deadline", filter: |ctx, rest| Box::pin(deadline::filter(ctx, rest)) },
    Link { name: "authenticate", filter: |ctx, rest| Box::pin(authenticate::filter(ctx, rest)) },
    Link { name: "audit", filter: |ctx, rest| Box::pin(audit::filter(ctx, rest)) },
    Link { name: "cross_site", filter: |ctx, rest| Box::pin(cross_site::filter(ctx, rest)) },
    Link { name: "impersonate", filter: |ctx, rest| Box::pin(impersonate::filter(ctx, rest)) },
    Link { name: "authorize", filter: |ctx, rest| Box::pin(authorize::filter(ctx, rest)) },
    Link { name: "verb", filter: |ctx, _| Box::pin(verbs::answer(ctx)) },
];

/// Asked by every write, between defaulting and validation.
pub const ADMISSION: &[&dyn Admission] = admission::PLUGINS;

/// What comes after a link.
#[derive(Clone, Copy)]
pub struct Rest(&'static [Link]);

impl Rest {
    pub fn run(self, ctx: &mut Context) -> BoxFuture<'_, Response> {
        let (link, rest) = self.0.split_first().expect("the last link, verb, does not call the rest");
        (link.filter)(ctx, Self(rest))
    }
}

/// Sends a request through the whole chain.
pub async fn run(ctx: &mut Context) -> Response {
    Rest(CHAIN).run(ctx).await
}
