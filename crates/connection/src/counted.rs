//! How large an answer was that is made while it is sent.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Tells its size when it has been sent, or nobody takes the rest of it.
pub struct Counted<B, T: FnOnce(u64)> {
    body: B,
    bytes: u64,
    tell: Option<T>,
}

impl<B, T: FnOnce(u64)> Counted<B, T> {
    pub fn new(body: B, tell: T) -> Self {
        Self { body, bytes: 0, tell: Some(tell) }
    }
}

impl<B: Body<Data = Bytes> + Unpin, T: FnOnce(u64) + Unpin> Body for Counted<B, T> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B, T: FnOnce(u64)> Drop for Counted<B, T> {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_made_while_it_is_sent_counts_as_far_as_it_was_sent() {
        let told = Cell::new(None);
        let answer = || {
            let pieces = ["ab", "cde"].map(|it| Ok::<_, Infallible>(Frame::data(Bytes::from(it))));
            Counted::new(StreamBody::new(stream::iter(pieces)), |bytes| told.set(Some(bytes)))
        };
        let whole = answer();
        assert_eq!(told.get(), None);
        assert_eq!(whole.collect().await.expect("it is all there").to_bytes(), "abcde");
        assert_eq!(told.take(), Some(5));
        let mut left = answer();
        left.frame().await;
        drop(left);
        assert_eq!(told.get(), Some(2));
    }
}
