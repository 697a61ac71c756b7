//! Which webhooks are asked about a request, and in which version.

use corten_api::resources::NAMESPACES;
use corten_cel::{Attributes as CelAttributes, Authorizer};
use corten_kinds::{Kind, KindRef, Subresource};
use corten_meta::Status;
use corten_policies::matching::{Bindings, Operation as Matched, Place, Request, Verdict, is_exempt};
use serde_json::Value;

use crate::{
    expression_authorizer::ExpressionAuthorizer,
    plugin::{Attributes, Operation},
    refusal::forbidden,
    review_request,
    webhook_configurations::{Hook, Hooks},
};

/// Could any of them be asked? Nothing is read for that.
pub(super) fn may_concern(hooks: &Hooks, request: &Attributes<'_>) -> bool {
    if hooks.all.is_empty() {
        return false;
    }
    let resource = &request.kind.resource;
    // The deletion that an eviction makes is the server's own.
    let is_own = request.operation == Operation::Delete && request.subresource.is_some();
    hooks.index.has(review_request::operation(request.operation), &request.asked.resource.plural)
        && !is_own
        && !is_exempt(&resource.group, &resource.plural)
}

/// What is the same for all webhooks that are asked about a request.
pub(super) struct Round<'r> {
    pub(super) request: &'r Attributes<'r>,
    rows: Vec<KindRef>,
}

impl<'r> Round<'r> {
    pub(super) fn of(request: &'r Attributes<'r>) -> Self {
        Self { request, rows: review_request::equivalents(request) }
    }

    /// Those that could be asked, with their places in the order of all.
    pub(super) fn candidates<'h>(&self, hooks: &'h Hooks, object: &Value) -> Vec<(usize, &'h Hook)> {
        let numbers = self.with(object, |request| hooks.index.candidates(request));
        numbers.into_iter().map(|it| (it, &hooks.all[it])).collect()
    }

    /// The row in whose version the webhook is to be asked. `None` where it is not to be.
    ///
    /// # Errors
    /// As the request is to be answered where that cannot be found out.
    pub(super) async fn row(&self, hook: &Hook, object: &Value) -> Result<Option<&Kind>, Status> {
        let namespaces = self.request.cluster.cache_of(&NAMESPACES);
        let labels = |name: &str| namespaces.get("", name).map(|it| it.labels().clone());
        let found = self.with(object, |request| {
            let matched = hook.criteria.matches(request, labels);
            matched.map(|it| it.and_then(|it| self.rows.iter().position(|row| review_request::place(row) == it.0)))
        });
        let found = found.map_err(|it| Status::not_found(&NAMESPACES, &it.0))?;
        let Some(row) = found.map(|it| &*self.rows[it]) else { return Ok(None) };
        Ok(self.meets_conditions(hook, row, object).await?.then_some(row))
    }

    /// The request as rules see it.
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

    /// Asks expressions. What they do not name is not made.
    async fn meets_conditions(&self, hook: &Hook, row: &Kind, object: &Value) -> Result<bool, Status> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let (request, uses) = (self.request, hook.conditions.uses());
        let shown = review_request::shown(request, row, object).await?;
        let old = match request.old {
            Some(old) => Some(review_request::shown(request, row, old).await?),
            None => None,
        };
        let described = uses.request.then(|| review_request::request(request, row, object, ""));
        let namespace_name = review_request::namespace(request, object);
        let namespaces = request.cluster.cache_of(&NAMESPACES);
        let namespace = uses.namespace.then(|| namespaces.get("", namespace_name).map(|it| it.parse())).flatten();
        let authorizer = ExpressionAuthorizer::new(&request.cluster.access, request.who);
        let question = question(request, object);
        let bindings = Bindings {
            object: (!shown.is_null()).then_some(&shown),
            old: old.as_ref(),
            request: described.as_ref(),
            namespace: namespace.as_ref(),
            params: None,
            authorizer: uses.authorizer.then_some((&authorizer as &dyn Authorizer, &question)),
        };
        let verdict = loop {
            let verdict = hook.conditions.evaluate(&bindings.activation());
            if !authorizer.was_asked_in_vain().await {
                break verdict;
            }
        };
        match verdict {
            Verdict::Matches => Ok(true),
            Verdict::Excluded(_) | Verdict::Ignored => Ok(false),
            Verdict::Failed(reason) => Err(forbidden(request, object, &reason)),
        }
    }
}

/// What `authorizer.requestResource` asks about.
fn question(request: &Attributes<'_>, object: &Value) -> CelAttributes {
    let verb = match review_request::operation(request.operation) {
        Matched::Create => "create",
        Matched::Update => "update",
        Matched::Delete => "delete",
        Matched::Connect => "connect",
    };
    let resource = &request.asked.resource;
    CelAttributes {
        verb: verb.to_owned(),
        group: resource.group.to_string(),
        resource: resource.plural.to_string(),
        subresource: request.subresource.map_or("", Subresource::as_str).to_owned(),
        namespace: review_request::namespace(request, object).to_owned(),
        name: review_request::name(request, object).to_owned(),
        ..CelAttributes::default()
    }
}
