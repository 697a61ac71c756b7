//! What a request can end with, in the three ways a caller branches on.

use std::time::Duration;

use corten_meta::{Retry, Status};
use tokio::time::Instant;

use crate::TransportError;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server answered, and the answer is no.
    #[error("{0}")]
    Status(Box<Status>),
    /// There was no answer, or not all of it; the server may have acted nevertheless.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The answer is not what was asked for.
    #[error("cannot read the API server's answer: {0}")]
    Decode(String),
}

impl Error {
    /// The server's answer, where it gave one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            Self::Transport(_) | Self::Decode(_) => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }

    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// Is it refused because its namespace is being deleted? It goes with the namespace, and nothing is missed by it.
    pub fn is_namespace_terminating(&self) -> bool {
        let details = self.status().and_then(|it| it.details.as_ref());
        details.is_some_and(|it| it.causes.iter().any(|it| it.reason == "NamespaceTerminating"))
    }

    /// The revision asked for is no longer kept: list again.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|it| it.code == 410)
    }

    /// Does the same request stand a chance? A lost answer may be asked for again: the caller looks first.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Status(status) => status.retry(),
            Self::Transport(_) => Retry::After,
            Self::Decode(_) => Retry::Never,
        }
    }

    /// Will the same request fail the same way another time? An error of no kind that the server has a name for is one that it did
    /// not expect to go away (`isRetriableError` of the storage version migrator).
    pub fn is_final(&self) -> bool {
        match self {
            Self::Status(status) => match status.code {
                404 | 409 | 410 | 429 | 503 | 504 => false,
                500 => status.reason != "InternalError",
                _ => true,
            },
            Self::Transport(_) => false,
            Self::Decode(_) => true,
        }
    }

    /// Is it open whether the request was carried out? 429 and 503 are refusals before the work, and so is a 500 that tells of a webhook
    /// which was to be asked about it; a lost answer, any other 500 and a 504 leave it open.
    pub fn may_have_been_done(&self) -> bool {
        const OF_WEBHOOK: &str = "Internal error occurred: failed calling webhook ";
        match self {
            Self::Status(status) if status.message.starts_with(OF_WEBHOOK) => false,
            Self::Status(status) => matches!(status.code, 500 | 502 | 504),
            Self::Transport(_) | Self::Decode(_) => true,
        }
    }

    /// How long the server asked to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds?;
        Some(Duration::from_secs(seconds.into()))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// What keeps a cache from its contents.
#[derive(Clone, Debug)]
pub struct Failing {
    pub since: Instant,
    /// `cannot list: service unavailable (503)`.
    pub said: String,
}

impl Failing {
    pub(crate) fn of(before: Option<&Self>, verb: &str, error: &Error) -> Self {
        let since = before.map_or_else(Instant::now, |it| it.since);
        let code = error.status().map(|it| it.code);
        let said = code.map_or_else(|| error.to_string(), |code| format!("{error} ({code})"));
        Self { since, said: format!("cannot {verb}: {said}") }
    }
}
