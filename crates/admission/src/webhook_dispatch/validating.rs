//! Webhooks that may only refuse. All are asked at the same time about the object as it is to be stored.

use corten_cacher::body::BoxFuture;
use corten_kinds::Kind;
use corten_meta::Status;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    call::{Objects, Settled},
    dispatch::Round,
};
use crate::{
    plugin::{Admission, Attributes},
    review_request,
    versions::may_concern,
    webhook_source::{Hook, Phase, Webhooks},
};

pub(crate) struct ValidatingWebhook;

impl Admission for ValidatingWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        let webhooks = &request.cluster.webhooks;
        let compiled = webhooks.compiled(request.cluster.caches());
        if !may_concern(&compiled.validating.index, request) {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move {
            let round = Round::of(request, Phase::Validating);
            let mut relevant = Vec::new();
            for (_, hook) in round.candidates(&compiled.validating, object) {
                relevant.extend(round.row(hook, object).await?.map(|row| (hook, row)));
            }
            let asking =
                relevant.iter().enumerate().map(|(at, (hook, row))| one(webhooks, request, at, hook, row, object));
            // Of several refusals that of the first webhook in order is told.
            join_all(asking).await.into_iter().collect()
        })
    }
}

async fn one(
    webhooks: &Webhooks,
    request: &Attributes<'_>,
    at: usize,
    hook: &Hook,
    row: &Kind,
    object: &Value,
) -> Result<(), Status> {
    let old = request.old.unwrap_or(&Value::Null);
    let objects = Objects {
        new: review_request::written(request, row, object).await?,
        old: review_request::written(request, row, old).await?,
    };
    let begun = Instant::now();
    let asked = hook.ask(request, row, object, &objects, Phase::Validating).await.map(drop);
    if hook.settle(webhooks, request, Phase::Validating, begun, &asked)? == Settled::FailedOpen {
        let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{at}");
        request.notes.annotate(&key, hook.name.clone());
    }
    Ok(())
}
