//! What a request points at: one object, its subresource, or a collection.

use std::sync::Arc;

use corten_cacher::watch_cache::{ResourceCache, Stored};
use corten_kinds::{Kind, Subresource};
use corten_meta::{Resource, Status};
use corten_routes::RequestInfo;

use crate::context::Context;

#[derive(Clone)]
pub(crate) struct Target {
    /// The row in whose form the object is stored: what defaults, admits, validates and stores it.
    pub(crate) kind: &'static Kind,
    /// The row the request names. Bodies come and answers go in its form.
    pub(crate) asked: &'static Kind,
    /// Empty for cluster-scoped kinds, and for collections over all namespaces.
    pub(crate) namespace: String,
    /// Empty for collections.
    pub(crate) name: String,
    pub(crate) subresource: Option<Subresource>,
}

impl Target {
    pub(crate) fn of(info: &RequestInfo, kind: &'static Kind) -> Self {
        // A Namespace is asked for in itself, and is in none.
        let namespace = if kind.resource.namespaced { info.namespace.clone() } else { String::new() };
        let subresource = info.route.subresource();
        Self { kind: kind.stored_row(), asked: kind, namespace, name: info.name.clone(), subresource }
    }

    /// As messages name it.
    pub(crate) fn resource(&self) -> &'static Resource {
        &self.asked.resource
    }

    pub(crate) fn cache<'a>(&self, ctx: &'a Context) -> &'a ResourceCache {
        ctx.state.cache(self.kind)
    }

    /// The object as it is now.
    ///
    /// # Errors
    /// 404 where there is none.
    pub(crate) fn current(&self, ctx: &Context) -> Result<Arc<Stored>, Status> {
        self.cache(ctx).get(&self.namespace, &self.name).ok_or_else(|| self.not_found())
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.resource(), &self.name)
    }
}
