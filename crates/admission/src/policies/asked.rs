//! A request as policies see it: in which versions, with which objects, in which namespace.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use corten_api::resources::NAMESPACES;
use corten_cel as cel;
use corten_kinds::{Kind, KindRef, Subresource};
use corten_meta::Status;
use corten_policies::{
    admission_policy::Policy,
    matching::{Bindings, Criteria, Index, NoNamespace, Place, Request, is_exempt},
};
use serde_json::Value;

use crate::{
    expression_authorizer::ExpressionAuthorizer,
    plugin::{Attributes, Operation},
    review_request,
};

/// Could any of the policies be about it? Nothing is read for that.
pub(super) fn may_concern(index: &Index, request: &Attributes<'_>) -> bool {
    let resource = &request.kind.resource;
    // The deletion that an eviction makes is the server's own.
    let is_own = request.operation == Operation::Delete && request.subresource.is_some();
    index.has(review_request::operation(request.operation), &request.asked.resource.plural)
        && !is_own
        && !is_exempt(&resource.group, &resource.plural)
}

/// What is the same for all policies.
pub(super) struct Asked<'r> {
    pub(super) request: &'r Attributes<'r>,
    /// The same objects in all versions.
    rows: Vec<KindRef>,
    pub(super) authorizer: ExpressionAuthorizer<'r>,
}

/// What expressions are shown in one version. What none of them names is not made.
#[derive(Default)]
pub(super) struct Shown<'r> {
    object: Option<Cow<'r, Value>>,
    old: Option<Cow<'r, Value>>,
    request: Option<Value>,
    namespace: Option<Value>,
    question: Option<cel::Attributes>,
}

impl<'r> Asked<'r> {
    pub(super) fn of(request: &'r Attributes<'r>) -> Self {
        let stored = request.kind.storage_resource();
        let shows = |it: &KindRef| it.resource.plural == stored.plural && it.storage_resource() == stored;
        let authorizer = ExpressionAuthorizer::new(&request.cluster.access, request.who);
        Self { request, rows: request.kinds.iter().filter(shows).collect(), authorizer }
    }

    pub(super) fn candidates(&self, index: &Index, object: &Value) -> Vec<usize> {
        self.with(object, |it| index.candidates(it))
    }

    /// The row in whose version the request meets the criteria; `None` where it does not.
    pub(super) fn row(&self, criteria: &Criteria, object: &Value) -> Result<Option<&Kind>, NoNamespace> {
        let namespaces = self.request.cluster.cache_of(&NAMESPACES);
        let labels =
            |name: &str| -> Option<BTreeMap<String, String>> { namespaces.get("", name).map(|it| it.labels().clone()) };
        self.with(object, |request| {
            let matched = criteria.matches(request, labels)?;
            Ok(matched.and_then(|it| self.rows.iter().find(|row| review_request::place(row) == it.0)).map(|it| &**it))
        })
    }

    fn with<T>(&self, object: &Value, look: impl FnOnce(&Request<'_>) -> T) -> T {
        let request = self.request;
        let places: Vec<Place<'_>> = self.rows.iter().map(|it| review_request::place(it)).collect();
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

    /// Where parameters are looked for unless the binding says otherwise: empty for what has no namespace.
    pub(super) fn namespace(&self, object: &'r Value) -> &'r str {
        review_request::namespace(self.request, object)
    }

    /// What the policy's expressions name.
    ///
    /// # Errors
    /// 404 where they name the namespace, and there is none; 500 where an object cannot be shown in the version.
    pub(super) async fn shown(&self, policy: &Policy, row: &Kind, object: &'r Value) -> Result<Shown<'r>, Status> {
        let (request, uses) = (self.request, policy.uses);
        let namespace = if uses.namespace && !request.namespace.is_empty() {
            let stored = request.cluster.cache_of(&NAMESPACES).get("", request.namespace);
            Some(stored.ok_or_else(|| Status::not_found(&NAMESPACES, request.namespace))?.parse())
        } else {
            None
        };
        let old = match request.old {
            Some(old) => Some(self.show(policy, row, old).await?),
            None => None,
        };
        Ok(Shown {
            object: if object.is_null() { None } else { Some(self.show(policy, row, object).await?) },
            old,
            request: uses.request.then(|| review_request::request(request, row, object, "")),
            namespace,
            question: uses.authorizer.then(|| self.question(object)),
        })
    }

    /// As it is, where that is how the version shows it.
    async fn show<'v>(&self, policy: &Policy, row: &Kind, object: &'v Value) -> Result<Cow<'v, Value>, Status> {
        let is_in_version = match row.is_custom() {
            true => object["apiVersion"] == row.resource.api_version(),
            false => row.view_of.is_none(),
        };
        if is_in_version && !policy.names_owners && self.request.subresource != Some(Subresource::Scale) {
            return Ok(Cow::Borrowed(object));
        }
        review_request::shown(self.request, row, object).await.map(Cow::Owned)
    }

    /// What `authorizer.requestResource` asks about.
    fn question(&self, object: &Value) -> cel::Attributes {
        let request = self.request;
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

    pub(super) fn bindings<'s>(&'s self, shown: &'s Shown<'_>, params: Option<&'s Arc<Value>>) -> Bindings<'s> {
        Bindings {
            object: shown.object.as_deref(),
            old: shown.old.as_deref(),
            request: shown.request.as_ref(),
            namespace: shown.namespace.as_ref(),
            params: params.map(|it| &**it),
            authorizer: shown.question.as_ref().map(|it| (&self.authorizer as &dyn cel::Authorizer, it)),
        }
    }
}

impl<'r> Shown<'r> {
    /// With this object in the place of the one of the request.
    pub(super) fn with_object<'o>(self, object: &'o Value) -> Shown<'o>
    where
        'r: 'o,
    {
        Shown { object: Some(Cow::Borrowed(object)), ..self }
    }
}
