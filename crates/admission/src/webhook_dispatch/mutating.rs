//! Webhooks that may change the object, one after another, each of which sees what those before it made of it.

use std::borrow::Cow;

use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    call::{Failure, Objects, Settled},
    dispatch::Round,
};
use crate::{
    patched::NamedAs,
    plugin::{Admission, Attributes},
    review_request,
    versions::may_concern,
    webhook_source::{Hook, Phase, Webhooks},
};

pub(crate) struct MutatingWebhook;

const NAME: &str = "MutatingAdmissionWebhook";

impl Admission for MutatingWebhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        let webhooks = &request.cluster.webhooks;
        let compiled = webhooks.compiled(request.cluster.caches());
        if !may_concern(&compiled.mutating.index, request) {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move {
            let round = Round::of(request, Phase::Admit);
            request.reinvocation.begin(NAME, object);
            for (at, hook) in round.candidates(&compiled.mutating, object) {
                one(webhooks, &round, at, hook, object).await?;
            }
            request.reinvocation.end(NAME, object);
            Ok(())
        })
    }
}

async fn one(webhooks: &Webhooks, round: &Round<'_>, at: usize, hook: &Hook, object: &mut Value) -> Result<(), Status> {
    let (request, reinvocation) = (round.request, &round.request.reinvocation);
    let Some(row) = round.row(hook, object).await? else { return Ok(()) };
    if !reinvocation.is_due(NAME, &hook.id) {
        return Ok(());
    }
    let mut new = review_request::shown(request, row, object).await?;
    review_request::hide_what_is_given_later(request, &mut new);
    let named_as = NamedAs::of(object);
    let old = review_request::written(request, row, request.old.unwrap_or(&Value::Null)).await?;
    let objects = Objects { new: Cow::Owned(new), old };
    let begun = Instant::now();
    let mut patch = Vec::new();
    let outcome: Result<bool, Failure> = async {
        let answer = hook.ask(request, row, object, &objects, Phase::Admit).await?;
        if answer.patch.is_empty() {
            return Ok(false);
        }
        patch = answer.patch;
        hook.patch(request, row, object, &objects.new, &patch).await
    }
    .await;
    let has_changed = matches!(outcome, Ok(true));
    let place = format!("round_{}_index_{at}", u8::from(reinvocation.is_reinvoked()));
    let named = |mut more: Value| {
        more["configuration"] = hook.configuration.clone().into();
        more["webhook"] = hook.name.clone().into();
        more.to_string()
    };
    let about = named(json!({ "mutated": has_changed }));
    request.notes.annotate(&format!("mutation.webhook.admission.k8s.io/{place}"), about);
    if outcome.is_ok() && !patch.is_empty() {
        let about = named(json!({ "patchType": "JSONPatch" }));
        // As the webhook wrote it: as values it would be many times as large.
        let about = format!("{{\"patch\":{},{}", String::from_utf8_lossy(&patch).trim(), &about[1..]);
        request.notes.annotate_object(&format!("patch.webhook.admission.k8s.io/{place}"), about);
    }
    if has_changed {
        reinvocation.changed(NAME);
    }
    if hook.is_reinvoked {
        reinvocation.called(NAME, &hook.id);
    }
    let moved = named_as.moved(request, object).filter(|_| has_changed);
    let result = moved.map_or(outcome.map(drop), |it| Err(Failure::Moved(it)));
    let settled = hook.settle(webhooks, request, Phase::Admit, begun, &result)?;
    if settled == Settled::FailedOpen {
        let key = format!("failed-open.mutating.webhook.admission.k8s.io/{place}");
        request.notes.annotate(&key, hook.name.clone());
    }
    Ok(())
}
