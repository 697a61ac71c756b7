//! What a request points at: one object, its subresource, or a collection.

use std::sync::Arc;

use corten_cacher::watch_cache::{ResourceCache, Stored};
use corten_kinds::{Kind, KindRef, Policy, Subresource};
use corten_meta::{Resource, Status};

use crate::context::Context;

#[derive(Clone)]
pub(crate) struct Target {
    /// The row in whose form the object is stored: what defaults, admits, validates and stores it.
    pub(crate) kind: KindRef,
    /// The row the request names. Bodies come and answers go in its form.
    pub(crate) asked: KindRef,
    /// Empty for cluster-scoped kinds, and for collections over all namespaces.
    pub(crate) namespace: String,
    /// Empty for collections.
    pub(crate) name: String,
    pub(crate) subresource: Option<Subresource>,
    /// Of a custom resource: as it was when the request came.
    pub(crate) custom: Option<Arc<ResourceCache>>,
}

impl Target {
    /// # Errors
    /// 404 where the kind's definition has just gone.
    pub(crate) fn of(ctx: &Context, asked: KindRef) -> Result<Self, Status> {
        let (info, kind) = (&ctx.info, asked.stored_row());
        let custom = if kind.is_custom() {
            Some(ctx.state.caches().custom(&kind).ok_or_else(Status::no_such_path)?)
        } else {
            None
        };
        // A Namespace is asked for in itself, and is in none.
        let namespace = if kind.resource.namespaced { info.namespace.clone() } else { String::new() };
        Ok(Self { kind, asked, namespace, name: info.name.clone(), subresource: info.route.subresource(), custom })
    }

    /// One object of a built-in kind.
    pub(crate) fn built_in(
        kind: &'static Kind,
        namespace: String,
        name: String,
        subresource: Option<Subresource>,
    ) -> Self {
        let kind = KindRef::BuiltIn(kind);
        Self { asked: kind.clone(), kind, namespace, name, subresource, custom: None }
    }

    /// Whose rules the object is held to: versions of a custom resource have the same form, and each its own schema.
    pub(crate) fn policy(&self) -> &dyn Policy {
        if self.kind.is_custom() { &*self.asked.policy } else { &*self.kind.policy }
    }

    /// As messages name it.
    pub(crate) fn resource(&self) -> &Resource {
        &self.asked.resource
    }

    pub(crate) fn cache<'a>(&'a self, ctx: &'a Context) -> &'a ResourceCache {
        self.custom.as_deref().unwrap_or_else(|| ctx.state.cache(&self.kind))
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
