//! An answer whose server may not keep still in the midst of it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use corten_cacher::body::BoxError;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// In the midst of an answer. Less than its client has to read it in: the server's fault ends this answer, and nothing else of its client.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A body that ends with an error after a long silence of who sends it.
pub(crate) struct IdleTimeoutBody<B> {
    body: B,
    /// May it go on for as long as both sides like?
    goes_on: bool,
    /// Since when nothing was said, where somebody waits for it.
    silence: Option<Pin<Box<Sleep>>>,
}

impl<B> IdleTimeoutBody<B> {
    pub(crate) fn of(body: B, goes_on: bool) -> Self {
        Self { body, goes_on, silence: None }
    }

    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        if self.goes_on {
            return false;
        }
        self.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE_MAX))).as_mut().poll(context).is_ready()
    }
}

impl<B> Body for IdleTimeoutBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(polled) = Pin::new(&mut self.body).poll_frame(context) else {
            if self.is_silent(context) {
                return Poll::Ready(Some(Err("the other API server does not go on with its answer".into())));
            }
            return Poll::Pending;
        };
        self.silence = None;
        Poll::Ready(polled.map(|it| it.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
