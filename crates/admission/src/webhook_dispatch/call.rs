//! One question to one webhook.

use std::{borrow::Cow, time::Duration};

use corten_kinds::Kind;
use corten_meta::{Status, field};
use corten_webhook::{Question, told};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    answer::{self, Answer, Expected},
    large,
};
use crate::{
    plugin::Attributes,
    review_request::{self, Described, WithOwners},
    webhook_source::{Call, ErrorType, Hook, Phase, Trouble, Webhooks},
};

/// What a patch that makes the largest object takes as base64, and what is around it.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;
/// What the review of a small object takes.
const BODY_BYTES: usize = 4 * 1024;

/// Why a request does not go on.
pub(super) enum Failure {
    /// There was no answer that counts as one. With the code under which it is counted, and the one that was answered, if any was.
    Calling(String, u16, Option<u16>),
    /// The answer is no.
    Rejected(Box<Status>),
    /// What the webhook wants cannot be done.
    Internal(Box<Status>),
    /// What it made of the object is another one: that is refused when all were asked.
    Moved(String),
}

/// The objects as the webhook is shown them; null where there is none.
pub(super) struct Objects<'v> {
    pub(super) new: Cow<'v, Value>,
    pub(super) old: Cow<'v, Value>,
}

/// `admission.k8s.io/v1 AdmissionReview`, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'a str,
    api_version: &'a str,
    request: ReviewRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequest<'a> {
    #[serde(flatten)]
    described: Described<'a>,
    object: WithOwners<'a>,
    old_object: WithOwners<'a>,
}

impl Hook {
    /// # Errors
    /// The webhook refuses, or cannot be asked.
    pub(super) async fn ask(
        &self,
        request: &Attributes<'_>,
        row: &Kind,
        named: &Value,
        objects: &Objects<'_>,
        phase: Phase,
    ) -> Result<Answer, Failure> {
        if request.dry_run && !self.takes_dry_run {
            let message = format!("admission webhook {:?} does not support dry run", self.name);
            return Err(Failure::Internal(Box::new(Status::bad_request(message))));
        }
        let failed = |reason: &str| format!("failed calling webhook {:?}: {reason}", self.name);
        let calling = |reason: &str, code| Failure::Calling(failed(reason), code, None);
        let version = self.version.ok_or_else(|| {
            let reason = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            calling(&format!("could not create admission objects: {reason}"), 400)
        })?;
        let client = self.client.as_ref().map_err(|it| calling(&format!("could not get REST client: {it}"), 500))?;
        let uid = request.cluster.new_uid();
        let review = Review {
            kind: "AdmissionReview",
            api_version: version,
            request: ReviewRequest {
                described: review_request::described(request, row, named, &uid),
                object: WithOwners(&objects.new),
                old_object: WithOwners(&objects.old),
            },
        };
        let mut body = Vec::with_capacity(BODY_BYTES);
        let unwritten = |it| calling(&format!("could not write the review: {it}"), 500);
        serde_json::to_writer(&mut body, &review).map_err(unwritten)?;
        let deadline = self.deadline(request);
        let query = format!("timeout={}s", seconds(deadline));
        let body = body.into();
        let question = Question { query: &query, body, deadline, answer_bytes_max: ANSWER_BYTES_MAX };
        let answered = client.post_json(question).await;
        let unanswered = |it: corten_webhook::Error| {
            Failure::Calling(failed(&format!("failed to call webhook: {it}")), it.code(), it.answered_code())
        };
        let body = answered.map_err(unanswered)?;
        let to = Expected { uid: &uid, version, webhook: &self.name, may_patch: phase == Phase::Admit };
        let read = large::read(body.len(), || answer::read(&body, &to)).await;
        let mut answer = read.map_err(|it| calling(&it, 503))?;
        self.note(request, &mut answer);
        match answer.refused.take() {
            Some(status) => Err(Failure::Rejected(Box::new(status))),
            None => Ok(answer),
        }
    }

    /// Its own time, within what is left of the request's.
    fn deadline(&self, request: &Attributes<'_>) -> Duration {
        let left = request.deadline.map(|it| it.saturating_duration_since(Instant::now()));
        left.map_or(self.timeout, |it| it.min(self.timeout))
    }

    fn note(&self, request: &Attributes<'_>, answer: &mut Answer) {
        for warning in answer.warnings.drain(..) {
            request.notes.warn(warning);
        }
        for (key, value) in std::mem::take(&mut answer.annotations) {
            let key = format!("{}/{key}", self.name);
            if field::qualified_name(&key).is_empty() {
                request.notes.annotate(&key, value);
            } else {
                tracing::warn!(webhook = self.name, key, "an audit annotation of a webhook has no valid name");
            }
        }
    }

    /// Counts the call, and says whether the request goes on without an answer.
    ///
    /// # Errors
    /// As the request is to be answered.
    pub(super) fn settle(
        &self,
        webhooks: &Webhooks,
        request: &Attributes<'_>,
        phase: Phase,
        begun: Instant,
        result: &Result<(), Failure>,
    ) -> Result<Settled, Status> {
        let operation = review_request::operation(request.operation).as_str();
        let call = Call { name: &self.name, phase, operation };
        let took = begun.elapsed();
        match phase {
            Phase::Admit => request.notes.mutating_webhook_took(took),
            Phase::Validating => request.notes.validating_webhook_took(took),
        }
        let trouble = trouble(result);
        let trouble = trouble.as_ref().map(|(trouble, message)| (*trouble, &**message));
        webhooks.note(phase, self, trouble, request.cluster.now());
        match result {
            Ok(()) | Err(Failure::Moved(_)) => {
                webhooks.measures.called(&call, took, false, 200);
                Ok(Settled::Answered)
            }
            Err(Failure::Calling(reason, code, _)) => {
                let rejected = !self.may_fail;
                if rejected {
                    webhooks.measures.rejected(&call, ErrorType::CallingWebhook, *code);
                }
                webhooks.measures.called(&call, took, rejected, *code);
                if rejected {
                    return Err(Status::internal(reason));
                }
                tracing::warn!(webhook = self.name, configuration = self.configuration, reason, "failing open");
                webhooks.measures.failed_open(&call);
                Ok(Settled::FailedOpen)
            }
            Err(Failure::Rejected(status)) => {
                webhooks.measures.rejected(&call, ErrorType::None, status.code);
                webhooks.measures.called(&call, took, true, status.code);
                Err((**status).clone())
            }
            Err(Failure::Internal(status)) => {
                webhooks.measures.rejected(&call, ErrorType::Internal, 0);
                webhooks.measures.called(&call, took, true, 0);
                Err((**status).clone())
            }
        }
    }
}

/// What is to be remembered of a webhook.
fn trouble(result: &Result<(), Failure>) -> Option<(Trouble, String)> {
    match result {
        Err(Failure::Calling(reason, _, answered)) => Some((Trouble::NoAnswer, told(reason, *answered))),
        // One that takes no dry run was not asked, and that is a bad request.
        Err(Failure::Internal(status)) if status.code >= 500 => Some((Trouble::NoAnswer, told(&status.message, None))),
        Err(Failure::Rejected(status)) => Some((Trouble::Denies, told(&status.message, None))),
        Err(Failure::Moved(reason)) => Some((Trouble::Moves, told(reason, None))),
        Ok(()) | Err(Failure::Internal(_)) => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Answered,
    FailedOpen,
}

/// Rounded up.
fn seconds(deadline: Duration) -> u64 {
    deadline.as_secs() + u64::from(deadline.subsec_nanos() > 0)
}
