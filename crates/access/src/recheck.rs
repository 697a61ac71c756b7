//! Whether what goes on may still go on: a watch, a log that is followed, a tunnel.
//!
//! A request is authenticated and authorized once, and what it begins can last for hours. Meanwhile tokens end, accounts are
//! deleted and bindings are taken back. So both questions are asked again: at once after an RBAC object has changed, and
//! every minute for all else that ends a right. Upstream asks once.

use std::{
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};

use bytes::Bytes;
use corten_cacher::body::{Body, BoxError};
use corten_meta::Status;
use corten_routes::RequestInfo;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    access::Access,
    credential::{Credential, Holder},
    identity::{Identity, Peer},
    impersonation::ImpersonatedUser,
    question::{Attributes, Decision},
};

/// How often a right is asked for again where no RBAC object has changed.
pub const EVERY: Duration = Duration::from_secs(60);
/// A right that was taken back while a webhook is down is used no longer than this.
const UNKNOWN_MAX: Duration = Duration::from_secs(5 * 60);
const UNKNOWN: &str = "for five minutes nobody who could allow it has answered";

/// What there is to ask of a request again.
pub struct Request {
    pub peer: Option<Peer>,
    pub credential: Credential,
    /// Who the credential said it was.
    pub asker: Identity,
    pub impersonated: Option<Impersonation>,
    pub info: RequestInfo,
}

/// As whom the asker acts.
pub struct Impersonation {
    pub wanted: ImpersonatedUser,
    /// What that made of them.
    pub identity: Identity,
}

/// What a request was asked when it began, to be asked again.
pub struct Recheck {
    access: Arc<Access>,
    peer: Option<Peer>,
    credential: Credential,
    /// Who the credential said it was.
    asker: Identity,
    impersonated: Option<Box<Impersonation>>,
    info: RequestInfo,
    /// A right that is needed beside that of the request's verb.
    also: Option<&'static str>,
    /// Since when it is not known whether it may go on, as one who could say so does not answer.
    unknown_since: Mutex<Option<Instant>>,
}

impl Recheck {
    pub fn new(access: Arc<Access>, request: Request) -> Self {
        let Request { peer, credential, asker, impersonated, mut info } = request;
        // There can be tens of thousands of these: what no question looks at is let go.
        info.query.0.retain(|(name, _)| matches!(&**name, "fieldSelector" | "labelSelector"));
        let impersonated = impersonated.map(Box::new);
        Self { access, peer, credential, asker, impersonated, info, also: None, unknown_since: Mutex::default() }
    }

    #[must_use]
    pub fn and(self, verb: &'static str) -> Self {
        Self { also: Some(verb), ..self }
    }

    /// Who cannot be asked has taken nothing back: then it goes on, for some minutes.
    ///
    /// # Errors
    /// 401 where the credential has ended, 403 where the right has.
    pub async fn ask(&self) -> Result<(), Status> {
        // Boxed: tens of thousands of watches wait for the time to ask, and carry no room for the asking.
        Box::pin(self.answer()).await
    }

    async fn answer(&self) -> Result<(), Status> {
        let access = &self.access;
        // What is not known is taken to be as it was, so that what else was taken back is seen.
        let mut unknown = None;
        let asker = match access.holder(&self.credential, self.peer.as_ref(), &self.asker, &self.info.path).await {
            Holder::Known(asker) => asker,
            Holder::Unknown => {
                unknown = Some(Status::unauthorized());
                self.asker.clone()
            }
            Holder::Nobody => return Err(Status::unauthorized()),
        };
        let who = match &self.impersonated {
            None => asker,
            Some(acting) => match access.impersonated(&acting.wanted, &self.info, &asker).await {
                Ok(allowed) => allowed.identity,
                Err(refused) if refused.is_certain => return Err(refused.status),
                Err(refused) => {
                    unknown.get_or_insert(refused.status);
                    acting.identity.clone()
                }
            },
        };
        let question = Attributes::of_request(&who, &self.info);
        let mut is_known = self.still_may(&question).await?;
        if let Some(verb) = self.also {
            is_known &= self.still_may(&Attributes { verb, ..question }).await?;
        }
        if !is_known {
            unknown.get_or_insert_with(|| question.forbidden(UNKNOWN));
        }
        self.bounded(unknown)
    }

    /// Lets what is not known be so for some minutes.
    fn bounded(&self, unknown: Option<Status>) -> Result<(), Status> {
        let mut unknown_since = self.unknown_since.lock();
        let Some(status) = unknown else {
            *unknown_since = None;
            return Ok(());
        };
        let since = *unknown_since.get_or_insert_with(Instant::now);
        if since.elapsed() < UNKNOWN_MAX { Ok(()) } else { Err(status) }
    }

    /// Whether the answer is known: nobody allows it now, and one that could has not answered.
    async fn still_may(&self, question: &Attributes<'_>) -> Result<bool, Status> {
        match self.access.decide(question).await {
            Decision::Denied(denial) if denial.error.is_empty() => Err(question.forbidden(&denial.reason)),
            decision => Ok(decision.is_allowed()),
        }
    }

    /// Waits until the answer is no.
    pub async fn refused(self) -> Status {
        let changes = self.access.rights_changed().clone();
        loop {
            let count = changes.count();
            if let Err(status) = self.ask().await {
                return status;
            }
            // The end of the wait is the time to ask again, not a failure.
            let _ = tokio::time::timeout(EVERY, changes.after(count)).await;
        }
    }

    /// The body as long as it may be read. It breaks off then: an end would say that this was all.
    pub fn guard(self, body: impl http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static) -> Body {
        Guarded { body: Box::pin(body), refused: Box::pin(self.refused()) }.boxed_unsync()
    }
}

struct Guarded<B> {
    body: Pin<Box<B>>,
    refused: Pin<Box<dyn Future<Output = Status> + Send>>,
}

impl<B: http_body::Body<Data = Bytes, Error = BoxError>> http_body::Body for Guarded<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(status) = self.refused.as_mut().poll(cx) {
            return Poll::Ready(Some(Err(status.message.into())));
        }
        self.body.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
