//! A server that is asked about a user or a right: with patience, within bounds, and not twice about the same.

mod memory;
mod trouble;
mod under_way;

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_webhook::{Client, Error, Question};
use tokio::time::Instant;

pub(crate) use memory::{Key, Keys, Memory};
pub(crate) use trouble::Trouble;
pub use trouble::Unanswering;
pub(crate) use under_way::UnderWay;

/// As `DefaultAuthWebhookRetryBackoff`: so often a server is asked, and so long is rested, half as long again each time.
const STEPS: u32 = 5;
const FIRST_REST: Duration = Duration::from_millis(500);
/// A rest is longer by up to this share, so that many do not come back at once.
const JITTER: f64 = 0.2;
/// An answer is a few words.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Remote {
    client: Arc<Client>,
    /// Of one request.
    timeout: Duration,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Timeout,
    Error,
}

impl Outcome {
    /// As metrics label it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

impl Remote {
    pub(crate) fn new(client: Arc<Client>, timeout: Duration) -> Self {
        Self { client, timeout }
    }

    /// The answer; `measured` hears of each request. Asks again where the failure is one that passes (`DefaultShouldRetry`).
    pub(crate) async fn ask(&self, body: Bytes, measured: impl Fn(Outcome, Duration)) -> Result<Bytes, Error> {
        let mut rest = FIRST_REST;
        let mut step = 1;
        loop {
            let begun = Instant::now();
            let question =
                Question { query: "", body: body.clone(), deadline: self.timeout, answer_bytes_max: ANSWER_BYTES_MAX };
            let answer = self.client.post_json(question).await;
            let outcome = match &answer {
                Ok(_) => Outcome::Success,
                Err(error) if error.is_timeout() => Outcome::Timeout,
                Err(_) => Outcome::Error,
            };
            measured(outcome, begun.elapsed());
            match answer {
                Err(error) if step < STEPS && passes(&error) => {}
                answer => return answer,
            }
            tokio::time::sleep(rest.mul_f64(1.0 + JITTER * chance())).await;
            rest = rest.mul_f64(1.5);
            step += 1;
        }
    }
}

fn passes(error: &Error) -> bool {
    match error {
        Error::Refused(status) => {
            let asks_for_patience = status.details.as_ref().is_some_and(|it| it.retry_after_seconds.is_some());
            matches!(&*status.reason, "InternalError" | "Timeout" | "TooManyRequests") || asks_for_patience
        }
        Error::Unanswered { reason, .. } => reason.to_string().contains("connection reset"),
        Error::Unreadable(_) => false,
    }
}

/// From 0 to 1. It only spreads load: the seed that a map gets from the system will do.
#[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
fn chance() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
