//! Why there is no answer, and what is known of the request then.

use corten_store::Error;
use tonic::{Code, ConnectError, Status};

/// What of a member's words is passed on.
const MESSAGE_CHARS_MAX: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// No member has the request.
    NotSent,
    /// A member may have it, and may still carry it out.
    Unknown,
    /// A member has refused it: it is not done, and will not be.
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) member: String,
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) certainty: Certainty,
}

impl Failure {
    pub(crate) fn of(member: &str, status: &Status) -> Self {
        let is_unconnected = sources(status).any(<dyn std::error::Error>::is::<ConnectError>);
        let certainty = match status.code() {
            _ if is_unconnected => Certainty::NotSent,
            Code::InvalidArgument
            | Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::OutOfRange
            | Code::NotFound => Certainty::Refused,
            _ => Certainty::Unknown,
        };
        // The innermost reason says more than `transport error`.
        let said = sources(status).last().map_or_else(|| status.message().to_owned(), ToString::to_string);
        let message = said.chars().take(MESSAGE_CHARS_MAX).collect();
        Self { member: member.to_owned(), code: status.code(), message, certainty }
    }

    pub(crate) fn late(member: &str) -> Self {
        Self::of(member, &Status::deadline_exceeded("it does not answer in time"))
    }

    pub(crate) fn foreign(member: &str, is: u64, was: u64) -> Self {
        let message = format!(
            "it is a member of the etcd cluster {is:x}, and not of {was:x}: name members of one cluster with --etcd-servers"
        );
        Self { member: member.to_owned(), code: Code::FailedPrecondition, message, certainty: Certainty::Unknown }
    }

    /// May another member answer, or this one a moment later?
    pub(crate) fn may_pass(&self) -> bool {
        self.certainty != Certainty::Refused || self.says("too many requests")
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        self.message.contains(words)
    }

    /// A message that was longer than this side reads.
    pub(crate) fn is_too_long(&self) -> bool {
        self.code == Code::OutOfRange && self.says("decoded message length too large")
    }

    /// The request was larger than etcd takes (`--max-request-bytes`, `--max-txn-ops`).
    pub(crate) fn is_too_large(&self) -> bool {
        self.says("request is too large")
            || self.says("too many operations in txn request")
            || self.says("received message larger than max")
    }

    pub(crate) fn is_compacted(&self) -> bool {
        self.says("required revision has been compacted")
    }

    pub(crate) fn is_future(&self) -> bool {
        self.says("required revision is a future revision")
    }

    /// Of a read, or of a write that is certainly not done.
    pub(crate) fn unavailable(&self) -> Error {
        Error::Unavailable(self.to_string())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "etcd {}: {}", self.member, self.message)
    }
}

fn sources(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(status), |it| it.source())
}
