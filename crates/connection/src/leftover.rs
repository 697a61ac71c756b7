//! What a request's answer left unread of its body: taken in before the answer goes, where it is little and comes soon.
//!
//! Else the stream is reset right behind the answer, as RFC 9113 (8.1) wants it; clients that are still about to send take
//! that for a failure and never look at the answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;

const BYTES_MAX: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_millis(200);

/// Where a body goes when nobody reads it any more.
#[derive(Clone, Default)]
pub struct Leftover(Arc<Mutex<Option<Incoming>>>);

/// A body that is not lost when it is dropped.
pub struct Lent {
    body: Option<Incoming>,
    back: Leftover,
}

impl Leftover {
    pub fn lend(&self, body: Incoming) -> Lent {
        Lent { body: Some(body), back: self.clone() }
    }

    /// Reads the rest, within bounds.
    pub async fn drain(self) {
        let Some(mut body) = self.0.lock().take() else { return };
        let reading = async {
            let mut n_read = 0;
            while n_read < BYTES_MAX
                && let Some(Ok(frame)) = body.frame().await
            {
                n_read += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        // Whoever is slower gets the answer and the reset.
        let _ = tokio::time::timeout(PATIENCE, reading).await;
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |it| Pin::new(it).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.back.0.lock() = self.body.take().filter(|it| !it.is_end_stream());
    }
}
