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
use corten_meta::Status;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::{Notify, watch};

use crate::{
    Server,
    access::{Attributes, Authorizer, Decision},
    filters::{authenticate::Credential, authorize::attributes, impersonate::Wanted},
    request::{Body, BoxError, Context, Identity, Peer, RequestInfo},
    watch_cache::{Caches, Events, ResourceCache},
};

/// How often a right is asked for again where no RBAC object has changed.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// Changes that come closer together than this are answered by one round of questions.
const PAUSE: Duration = Duration::from_secs(1);

/// Tells everything that goes on that RBAC objects have changed.
pub(crate) struct RightsChanged {
    sources: Vec<Events>,
    told: Notify,
}

impl RightsChanged {
    pub(crate) fn new(caches: &Caches) -> Self {
        Self { sources: Authorizer::sources(caches).map(ResourceCache::events).collect(), told: Notify::new() }
    }

    /// A larger number after each change: before the change is answered, and before any event that comes after it.
    pub(crate) fn count(&self) -> u64 {
        self.sources.iter().map(Events::count).sum()
    }

    async fn after(&self, count: u64) {
        let mut told = std::pin::pin!(self.told.notified());
        // Before the look: a change that comes after it wakes.
        told.as_mut().enable();
        if self.count() == count {
            told.await;
        }
    }

    /// Wakes those who wait for something else, until the server ends.
    pub(crate) async fn run(self: Arc<Self>, caches: Arc<Caches>, mut ended: watch::Receiver<bool>) {
        let telling = async {
            let mut counts: Vec<u64> = self.sources.iter().map(Events::count).collect();
            loop {
                let any = self.sources.iter().zip(&counts).map(|(it, count)| Box::pin(it.after(*count)));
                futures_util::future::select_all(any).await;
                counts = self.sources.iter().map(Events::count).collect();
                caches.wake_watchers();
                self.told.notify_waiters();
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {}
            () = telling => {}
        }
    }
}

/// What a request was asked when it began, to be asked again.
pub(crate) struct Recheck {
    server: Server,
    peer: Option<Peer>,
    credential: Credential,
    /// Who the credential said it was.
    asker: Identity,
    impersonated: Option<Wanted>,
    info: RequestInfo,
    /// A right that is needed beside that of the request's verb.
    also: Option<&'static str>,
}

impl Recheck {
    pub(crate) fn of(ctx: &Context) -> Self {
        let mut info = ctx.info.clone();
        // There can be tens of thousands of these: what no question looks at is let go.
        info.query.0.retain(|(name, _)| name == "fieldSelector");
        Self {
            server: ctx.server.clone(),
            peer: ctx.peer.clone(),
            credential: ctx.credential.clone(),
            asker: ctx.impersonator.clone().unwrap_or_else(|| ctx.who()),
            impersonated: ctx.impersonated.clone(),
            info,
            also: None,
        }
    }

    pub(crate) fn and(self, verb: &'static str) -> Self {
        Self { also: Some(verb), ..self }
    }

    /// # Errors
    /// 401 where the credential has ended, 403 where the right has.
    pub(crate) fn ask(&self) -> Result<(), Status> {
        let server = &self.server;
        let asker = self.credential.holder(server, self.peer.as_ref(), &self.asker).ok_or_else(Status::unauthorized)?;
        let who = match &self.impersonated {
            None => asker,
            Some(wanted) => wanted.allowed(server, &self.info, &asker)?.identity,
        };
        let question = attributes(&who, &self.info);
        may(server, &question)?;
        self.also.map_or(Ok(()), |verb| may(server, &Attributes { verb, ..question }))
    }

    /// Waits until the answer is no.
    pub(crate) async fn refused(self) -> Status {
        let changes = self.server.rights_changed().clone();
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
    pub(crate) fn guard(self, body: impl http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static) -> Body {
        Guarded { body: Box::pin(body), refused: Box::pin(self.refused()) }.boxed_unsync()
    }
}

/// # Errors
/// 403.
pub(crate) fn may(server: &Server, question: &Attributes<'_>) -> Result<(), Status> {
    match server.authorizer().decide(server.caches(), question) {
        Decision::Allowed(_) => Ok(()),
        Decision::Denied(reason) => Err(question.forbidden(&reason)),
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
