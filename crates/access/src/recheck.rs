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

use crate::{
    access::Access,
    credential::Credential,
    identity::{Identity, Peer},
    impersonation::ImpersonatedUser,
    question::Attributes,
};

/// How often a right is asked for again where no RBAC object has changed.
pub const EVERY: Duration = Duration::from_secs(60);

/// What there is to ask of a request again.
pub struct Request {
    pub peer: Option<Peer>,
    pub credential: Credential,
    /// Who the credential said it was.
    pub asker: Identity,
    pub impersonated: Option<ImpersonatedUser>,
    pub info: RequestInfo,
}

/// What a request was asked when it began, to be asked again.
pub struct Recheck {
    access: Arc<Access>,
    peer: Option<Peer>,
    credential: Credential,
    /// Who the credential said it was.
    asker: Identity,
    impersonated: Option<ImpersonatedUser>,
    info: RequestInfo,
    /// A right that is needed beside that of the request's verb.
    also: Option<&'static str>,
}

impl Recheck {
    pub fn new(access: Arc<Access>, request: Request) -> Self {
        let Request { peer, credential, asker, impersonated, mut info } = request;
        // There can be tens of thousands of these: what no question looks at is let go.
        info.query.0.retain(|(name, _)| name == "fieldSelector");
        Self { access, peer, credential, asker, impersonated, info, also: None }
    }

    #[must_use]
    pub fn and(self, verb: &'static str) -> Self {
        Self { also: Some(verb), ..self }
    }

    /// # Errors
    /// 401 where the credential has ended, 403 where the right has.
    pub fn ask(&self) -> Result<(), Status> {
        let access = &self.access;
        let asker = access
            .holder(&self.credential, self.peer.as_ref(), &self.asker, &self.info.path)
            .ok_or_else(Status::unauthorized)?;
        let who = match &self.impersonated {
            None => asker,
            Some(wanted) => access.impersonated(wanted, &self.info, &asker)?.identity,
        };
        let question = Attributes::of_request(&who, &self.info);
        access.may(&question)?;
        self.also.map_or(Ok(()), |verb| access.may(&Attributes { verb, ..question }))
    }

    /// Waits until the answer is no.
    pub async fn refused(self) -> Status {
        let changes = self.access.rights_changed().clone();
        loop {
            let count = changes.count();
            if let Err(status) = self.ask() {
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
