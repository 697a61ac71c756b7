//! A request as policies see it: in which versions, with which objects, in which namespace.

use std::{borrow::Cow, sync::Arc};

use corten_api::resources::NAMESPACES;
use corten_cel as cel;
use corten_kinds::{Kind, Subresource};
use corten_meta::{Resource, Status};
use corten_policies::{
    admission_policy::{Binding, Policy},
    matching::{Bindings, Criteria, Index, NoNamespace, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::params::{self, Misconfigured, Params};
use crate::{
    expression_authorizer::ExpressionAuthorizer,
    plugin::Attributes,
    review_request,
    versions::{Versions, resource_attributes},
};

/// What is the same for all policies.
pub(super) struct PolicyRequest<'r> {
    pub(super) request: &'r Attributes<'r>,
    versions: Versions<'r>,
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

impl<'r> PolicyRequest<'r> {
    pub(super) fn of(request: &'r Attributes<'r>) -> Self {
        let authorizer = ExpressionAuthorizer::new(&request.cluster.access, request.who);
        Self { request, versions: Versions::of(request), authorizer }
    }

    pub(super) fn candidates(&self, index: &Index, object: &Value) -> Vec<usize> {
        self.versions.candidates(index, object)
    }

    /// The row in whose version the request meets the criteria; `None` where it does not.
    pub(super) fn row(&self, criteria: &Criteria, object: &Value) -> Result<Option<&Kind>, NoNamespace> {
        self.versions.row(criteria, object)
    }

    /// What whoever asks why is told of a binding: why it could not give its policy the parameters, or that it could.
    pub(super) fn note_binding(
        &self,
        policies: Resource,
        policy: (&Policy, u64),
        binding: &Binding,
        object: &Value,
        error: Option<&str>,
    ) {
        if binding.param_ref.is_none() {
            return;
        }
        let (cluster, namespace) = (self.request.cluster, review_request::namespace(self.request, object));
        cluster.policies.note_binding(policies, policy, (&binding.name, namespace), error, cluster.now());
    }

    /// The parameters of each evaluation; `None` where the binding is not about the request.
    ///
    /// # Errors
    /// The policy or the binding cannot be asked.
    pub(super) async fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        object: &Value,
    ) -> Result<Option<Params>, Misconfigured> {
        let found = self.row(&binding.criteria, object);
        if found.map_err(|it| Misconfigured::binding(it.to_string()))?.is_none() {
            return Ok(None);
        }
        // There parameters are looked for unless the binding says otherwise: empty for what has no namespace.
        let namespace = review_request::namespace(self.request, object);
        params::collect(self.request, policy, binding, namespace).await.map(Some)
    }

    /// Is the policy about the request, as far as its conditions say? One without conditions asks nothing.
    pub(super) async fn matches(&self, policy: &Policy, bindings: &Bindings<'_>) -> Verdict {
        if policy.conditions.is_empty() {
            return Verdict::Matches;
        }
        let begun = Instant::now();
        let verdict = self.authorizer.answered(self.request, || policy.matches(bindings)).await;
        let operation = review_request::operation(self.request.operation).as_str();
        self.request.cluster.policies.measures.conditions(policy, operation, &verdict, begun.elapsed());
        verdict
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
            request: uses.request.then(|| review_request::request(request, row, object)),
            namespace,
            question: uses.authorizer.then(|| resource_attributes(request, object)),
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
