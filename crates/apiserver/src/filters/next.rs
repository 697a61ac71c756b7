//! What a filter is, and what comes after it.

use corten_cacher::body::{BoxFuture, Response};

use crate::context::Context;

/// One link of the chain: does its part before, after or instead of the rest.
pub struct Link {
    pub name: &'static str,
    pub filter: for<'a> fn(&'a mut Context, Rest) -> BoxFuture<'a, Response>,
}

/// What comes after a link.
#[derive(Clone, Copy)]
pub struct Rest(&'static [Link]);

impl Rest {
    pub fn of(links: &'static [Link]) -> Self {
        Self(links)
    }

    pub fn run(self, ctx: &mut Context) -> BoxFuture<'_, Response> {
        let (link, rest) = self.0.split_first().expect("the last link, the router, does not call the rest");
        (link.filter)(ctx, Self(rest))
    }
}
