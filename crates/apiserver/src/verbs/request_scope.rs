//! What a request points at: one object, its subresource, or a collection.

use std::sync::Arc;

use corten_cacher::{
    codec::Form,
    watch_cache::{Matcher, ResourceCache, Snapshot, Stored},
};
use corten_conversion::Memo;
use corten_kinds::{Kind, KindRef, Policy, Subresource};
use corten_meta::{Resource, Status};

use crate::context::Context;

/// To write an object of more bytes is work others would wait behind, and takes many times its bytes while it is done.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

#[derive(Clone)]
pub(crate) struct RequestScope {
    /// The row in whose form an object is while it is written: what defaults, admits and validates it. Of a built-in kind that in
    /// which it is stored, of a custom resource that which was asked for, as in apiextensions-apiserver's `crdHandler`.
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
    /// What the request has learnt of its object in other versions, where a webhook converts it.
    pub(crate) memo: Option<Arc<Memo>>,
}

impl RequestScope {
    /// # Errors
    /// 404 where the kind's definition has just gone.
    pub(crate) fn of(ctx: &Context, asked: KindRef) -> Result<Self, Status> {
        let info = &ctx.info;
        let (kind, custom) = if asked.is_custom() {
            let cache = ctx.state.caches().custom(&asked).ok_or_else(Status::no_such_path)?;
            (asked.clone(), Some(cache))
        } else {
            (asked.stored_row(), None)
        };
        let memo = asked.conversion_webhook().map(|_| Arc::default());
        // A Namespace is asked for in itself, and is in none.
        let namespace = if kind.resource.namespaced { info.namespace.clone() } else { String::new() };
        let (name, subresource) = (info.name.clone(), info.route.subresource());
        Ok(Self { kind, asked, namespace, name, subresource, custom, memo })
    }

    /// One object of a built-in kind.
    pub(crate) fn built_in(
        kind: &'static Kind,
        namespace: String,
        name: String,
        subresource: Option<Subresource>,
    ) -> Self {
        let kind = KindRef::BuiltIn(kind);
        Self { asked: kind.clone(), kind, namespace, name, subresource, custom: None, memo: None }
    }

    /// Whose rules the object is held to.
    pub(crate) fn policy(&self) -> &dyn Policy {
        &*self.kind.policy
    }

    /// As messages name it.
    pub(crate) fn resource(&self) -> &Resource {
        &self.asked.resource
    }

    pub(crate) fn cache<'a>(&'a self, ctx: &'a Context) -> &'a ResourceCache {
        self.custom.as_deref().unwrap_or_else(|| ctx.state.cache(&self.kind))
    }

    /// Is what is stored, or what was sent, so large that it is work others would wait behind?
    pub(crate) fn is_large(&self, ctx: &Context) -> bool {
        let stored = self.cache(ctx).get(&self.namespace, &self.name);
        stored.map_or(0, |it| it.value().len()).max(ctx.n_received()) > LARGE_BYTES
    }

    /// The objects as they are now. With a change of its definition a custom resource gets another cache, and that of before hears of
    /// nothing any more.
    ///
    /// # Errors
    /// 404 where the kind's definition has just gone.
    pub(crate) fn newest(&self, ctx: &Context) -> Result<Arc<Snapshot>, Status> {
        if self.custom.is_none() {
            return Ok(self.cache(ctx).snapshot());
        }
        let newest = ctx.state.caches().custom(&self.asked).ok_or_else(Status::no_such_path)?;
        Ok(newest.snapshot())
    }

    /// The object as it is now.
    ///
    /// # Errors
    /// 404 where there is none; 500 where it cannot be read.
    pub(crate) fn current(&self, ctx: &Context) -> Result<Arc<Stored>, Status> {
        let snapshot = self.newest(ctx)?;
        snapshot.get(&self.namespace, &self.name).cloned().ok_or_else(|| {
            let unreadable = snapshot.unreadable(&self.namespace, &self.name).map(Status::internal);
            unreadable.unwrap_or_else(|| self.not_found())
        })
    }

    /// The stored object in the form that was asked for, where a webhook must make it; else as it is.
    ///
    /// # Errors
    /// 500 where the webhook does not.
    pub(crate) async fn converted(&self, ctx: &Context, object: Arc<Stored>) -> Result<Arc<Stored>, Status> {
        match &self.custom {
            Some(cache) => ctx.state.conversion().stored(&self.asked, cache, &object).await,
            None => Ok(object),
        }
    }

    /// What converts the objects, where they can be sent in this form only after a webhook has. Metadata alone is sent as it is
    /// stored: whoever cleans up does not depend on others.
    pub(crate) fn converter(&self, form: Form, matcher: &Matcher) -> Option<&Arc<ResourceCache>> {
        let reads_all = form != Form::Partial || matcher.reads_fields();
        self.custom.as_ref().filter(|_| reads_all && self.asked.conversion_webhook().is_some())
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.resource(), &self.name)
    }
}
