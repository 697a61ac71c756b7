//! A server that somebody else runs is asked whether somebody may do something. Answers are kept for a while.

use std::{sync::Arc, time::Duration};

use corten_meta::aggregate;
use corten_webhook::Client;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    compiled::{CompiledWebhook, ReviewVersion},
    conditions::Conditions,
    measures::WebhookMeasures,
    review::{self, Answer},
    verdict::{Opinion, Verdict},
};
use crate::{
    question::{Attributes, ResourceOrPath},
    remote::{Key, Keys, Memory, Outcome, Remote, Trouble, Unanswering},
};

/// So many answers of one webhook are kept.
const KEPT_MAX: usize = 8192;
/// What the asker chooses of a question may be so long where the answer is kept (`shouldCache`).
const CHOSEN_BYTES_MAX: usize = 10_000;
/// An answer with a longer reason takes the place of several: together they have no more than 32 MiB.
const REASON_BYTES: usize = 4096;

pub(super) struct Webhook {
    remote: Remote,
    version: ReviewVersion,
    authorized: Duration,
    unauthorized: Duration,
    denies_on_error: bool,
    conditions: Conditions,
    keys: Keys,
    known: Memory<Arc<Answer>>,
    trouble: Trouble,
    measures: WebhookMeasures,
}

/// A question that has to be asked.
pub(crate) struct Unasked {
    spec: Value,
    key: Option<Key>,
}

impl Webhook {
    pub(super) fn new(compiled: CompiledWebhook, client: Arc<Client>, measures: WebhookMeasures) -> Self {
        let CompiledWebhook { timeout, authorized, unauthorized, version, denies_on_error, conditions, .. } = compiled;
        Self {
            remote: Remote::new(client, timeout),
            version,
            authorized,
            unauthorized,
            denies_on_error,
            conditions,
            keys: Keys::default(),
            known: Memory::new(KEPT_MAX),
            trouble: Trouble::default(),
            measures,
        }
    }

    /// The verdict, where nobody need be asked for it.
    pub(super) fn known(&self, question: &Attributes<'_>) -> Result<Verdict, Unasked> {
        let spec = review::spec(question);
        if !self.conditions.is_empty() {
            let begun = Instant::now();
            let holds = self.conditions.hold(&review::shown(&spec));
            self.measures.conditions_took(begun.elapsed());
            match holds {
                Ok(true) => {}
                Ok(false) => {
                    self.measures.excluded();
                    return Ok(Verdict::of(Opinion::None));
                }
                Err(errors) => {
                    self.measures.condition_failed();
                    return Ok(self.failed(aggregate(errors).unwrap_or_default()));
                }
            }
        }
        if n_chosen_bytes(question) >= CHOSEN_BYTES_MAX {
            return Err(Unasked { spec, key: None });
        }
        let text = serde_json::to_vec(&spec).expect("texts can be written");
        let key = self.keys.key([&*text]);
        match self.known.get(&key) {
            Some(answer) => Ok(verdict(&answer)),
            None => Err(Unasked { spec, key: Some(key) }),
        }
    }

    pub(super) async fn ask(&self, unasked: Unasked) -> Verdict {
        let Unasked { spec, key } = unasked;
        let body = review::body(self.version, spec).to_string().into();
        let last = parking_lot::Mutex::new(Outcome::Error);
        let answer = self.remote.ask(body, |outcome, took| {
            *last.lock() = outcome;
            self.measures.asked(outcome, took);
        });
        let answer = match answer.await {
            Ok(answer) => review::answer(self.version, &answer),
            Err(error) => Err(error.to_string()),
        };
        let answer = match answer {
            Ok(answer) => {
                self.trouble.over();
                answer
            }
            Err(error) => {
                self.trouble.goes_on(&error);
                tracing::error!(error, webhook = %self.measures.name(), "failed to make webhook authorizer request");
                if !self.denies_on_error {
                    let outcome = *last.lock();
                    self.measures.failed_open(if outcome == Outcome::Success { Outcome::Error } else { outcome });
                }
                return self.failed(error);
            }
        };
        let found = verdict(&answer);
        if let Some(key) = key {
            let keep = if answer.allowed { self.authorized } else { self.unauthorized };
            let n_places = answer.reason.len() / REASON_BYTES + 1;
            self.known.put_large(key, Arc::new(answer), keep, n_places);
        }
        found
    }

    /// Where it gave no answer the last time it was asked.
    pub(super) fn trouble(&self) -> Option<Unanswering> {
        self.trouble.of(|| words(self.measures.name()))
    }

    fn failed(&self, error: String) -> Verdict {
        let opinion = if self.denies_on_error { Opinion::Deny } else { Opinion::None };
        Verdict { error, ..Verdict::of(opinion) }
    }
}

/// In a sentence.
pub(super) fn words(name: &str) -> String {
    format!("the authorization webhook {name:?}")
}

fn verdict(answer: &Answer) -> Verdict {
    let opinion = match (answer.allowed, answer.denied) {
        (true, true) => {
            let error = "webhook subject access review returned both allow and deny response".to_owned();
            return Verdict { error, ..Verdict::of(Opinion::Deny) };
        }
        (_, true) => Opinion::Deny,
        (true, _) => Opinion::Allow,
        _ => Opinion::None,
    };
    Verdict { reason: answer.reason.clone(), ..Verdict::of(opinion) }
}

fn n_chosen_bytes(question: &Attributes<'_>) -> usize {
    question.verb.len()
        + match question.target {
            ResourceOrPath::Path(path) => path.len(),
            ResourceOrPath::Resource { group, resource, subresource, namespace, name } => {
                [group, question.version, resource, subresource, namespace, name].iter().map(|it| it.len()).sum()
            }
        }
}
