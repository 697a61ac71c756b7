//! Which webhooks are asked about a request, and in which version.

use corten_api::resources::NAMESPACES;
use corten_cel::Authorizer;
use corten_kinds::Kind;
use corten_meta::Status;
use corten_policies::matching::{Bindings, Verdict};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    expression_authorizer::ExpressionAuthorizer,
    plugin::Attributes,
    refusal::forbidden,
    review_request,
    versions::{Versions, resource_attributes},
    webhook_source::{Call, Hook, Hooks, Phase, Trouble},
};

/// What is the same for all webhooks that are asked about a request.
pub(super) struct Round<'r> {
    pub(super) request: &'r Attributes<'r>,
    versions: Versions<'r>,
    phase: Phase,
}

impl<'r> Round<'r> {
    pub(super) fn of(request: &'r Attributes<'r>, phase: Phase) -> Self {
        Self { request, versions: Versions::of(request), phase }
    }

    /// Those that could be asked, with their places in the order of all.
    pub(super) fn candidates<'h>(&self, hooks: &'h Hooks, object: &Value) -> Vec<(usize, &'h Hook)> {
        let numbers = self.versions.candidates(&hooks.index, object);
        numbers.into_iter().map(|it| (it, &*hooks.all[it])).collect()
    }

    /// The row in whose version the webhook is to be asked. `None` where it is not to be.
    ///
    /// # Errors
    /// As the request is to be answered where that cannot be found out.
    pub(super) async fn row(&self, hook: &Hook, object: &Value) -> Result<Option<&Kind>, Status> {
        let found = self.versions.row(&hook.criteria, object).map_err(|it| Status::not_found(&NAMESPACES, &it.0))?;
        let Some(row) = found else { return Ok(None) };
        Ok(self.meets_conditions(hook, row, object).await?.then_some(row))
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
        let described = uses.request.then(|| review_request::request(request, row, object));
        let namespace_name = review_request::namespace(request, object);
        let namespaces = request.cluster.cache_of(&NAMESPACES);
        let namespace = uses.namespace.then(|| namespaces.get("", namespace_name).map(|it| it.parse())).flatten();
        let authorizer = ExpressionAuthorizer::new(&request.cluster.access, request.who);
        let question = resource_attributes(request, object);
        let bindings = Bindings {
            object: (!shown.is_null()).then_some(&shown),
            old: old.as_ref(),
            request: described.as_ref(),
            namespace: namespace.as_ref(),
            params: None,
            authorizer: uses.authorizer.then_some((&authorizer as &dyn Authorizer, &question)),
        };
        let begun = Instant::now();
        let verdict = authorizer.answered(request, || hook.conditions.evaluate(&bindings.activation())).await;
        let operation = review_request::operation(request.operation).as_str();
        let call = Call { name: &hook.name, phase: self.phase, operation };
        request.cluster.webhooks.measures.conditions(&call, &verdict, begun.elapsed());
        let (webhooks, now) = (&request.cluster.webhooks, request.cluster.now());
        match verdict {
            Verdict::Matches => Ok(true),
            Verdict::Excluded(_) => {
                webhooks.note_excluded(self.phase, hook, now);
                Ok(false)
            }
            Verdict::Ignored(reason) => {
                webhooks.note(self.phase, hook, Some((Trouble::Condition, &*reason)), now);
                Ok(false)
            }
            // The answer is upstream's, and does not name the webhook: that is for who asks why.
            Verdict::Failed(reason) => {
                webhooks.note(self.phase, hook, Some((Trouble::Condition, &*reason)), now);
                Err(forbidden(request, object, &reason))
            }
        }
    }
}
