//! A request in every version in which the rules of webhooks and policies may match it.

use corten_api::resources::NAMESPACES;
use corten_cel as cel;
use corten_kinds::{Kind, KindRef, Subresource};
use corten_policies::matching::{Criteria, GroupVersionResource, Index, NoNamespace, Request, is_exempt};
use serde_json::Value;

use crate::{
    plugin::{Attributes, Operation},
    review_request,
};

/// Could anything of the index be about the request? Nothing is read for that.
pub(crate) fn may_concern(index: &Index, request: &Attributes<'_>) -> bool {
    // Of most clusters.
    if index.is_empty() {
        return false;
    }
    let resource = &request.kind.resource;
    // The deletion that an eviction makes is the server's own.
    let is_own = request.operation == Operation::Delete && request.subresource.is_some();
    let operation = review_request::operation(request.operation);
    let has = |it: &Kind| index.has(operation, &review_request::place(it));
    (has(request.asked) || request.kinds.versions(request.kind).any(|it| has(&it)))
        && !is_own
        && !is_exempt(&resource.group, &resource.plural)
}

pub(crate) struct Versions<'r> {
    request: &'r Attributes<'r>,
    /// They show the same objects: what `matchPolicy: Equivalent` may match in place of the request's.
    rows: Vec<KindRef>,
}

impl<'r> Versions<'r> {
    pub(crate) fn of(request: &'r Attributes<'r>) -> Self {
        Self { request, rows: request.kinds.versions(request.kind).collect() }
    }

    /// The numbers of what could be about the request.
    pub(crate) fn candidates(&self, index: &Index, object: &Value) -> Vec<usize> {
        self.with(object, |request| index.candidates(request))
    }

    /// The row in whose version the request meets the criteria; `None` where it does not.
    ///
    /// # Errors
    /// Where the labels of its namespace are asked for, and there is no such namespace.
    pub(crate) fn row(&self, criteria: &Criteria, object: &Value) -> Result<Option<&Kind>, NoNamespace> {
        let namespaces = self.request.cluster.cache_of(&NAMESPACES);
        let labels = |name: &str| namespaces.get("", name).map(|it| it.labels().clone());
        self.with(object, |request| {
            let matched = criteria.matches(request, labels)?;
            Ok(matched.and_then(|it| self.rows.iter().find(|row| review_request::place(row) == it.0)).map(|it| &**it))
        })
    }

    /// The request as rules see it.
    fn with<T>(&self, object: &Value, look: impl FnOnce(&Request<'_>) -> T) -> T {
        let request = self.request;
        let places: Vec<GroupVersionResource<'_>> = self.rows.iter().map(|it| review_request::place(it)).collect();
        let new = review_request::selected(request, object);
        let old = request.old.and_then(|it| review_request::selected(request, it));
        look(&Request {
            operation: review_request::operation(request.operation),
            place: review_request::place(request.asked),
            equivalents: &places,
            subresource: request.subresource.map_or("", Subresource::as_str),
            namespace: review_request::namespace(request, object),
            name: review_request::name(request, object),
            object: new.as_deref(),
            old: old.as_deref(),
        })
    }
}

/// What `authorizer.requestResource` asks about; its `check` says which verb.
pub(crate) fn resource_attributes(request: &Attributes<'_>, object: &Value) -> cel::Attributes {
    let resource = &request.asked.resource;
    cel::Attributes {
        group: resource.group.to_string(),
        resource: resource.plural.to_string(),
        subresource: request.subresource.map_or("", Subresource::as_str).to_owned(),
        namespace: review_request::namespace(request, object).to_owned(),
        name: review_request::name(request, object).to_owned(),
        ..cel::Attributes::default()
    }
}
