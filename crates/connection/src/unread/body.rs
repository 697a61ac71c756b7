//! The body of an answer that is counted until it has been read: in pieces, each of which knows when it has left hyper.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::{Answers, progress::Progress};

/// hyper takes a whole piece as soon as one byte of it can be sent.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Of what goes on, as events of watches, hyper has one or two frames at a time: smaller ones are as little as what it has of its own.
const LARGE_FRAME_BYTES: usize = 16 * 1024;

/// An answer, as long as it or a piece of it is there.
pub(super) struct Unread {
    pub(super) id: u64,
    pub(super) answers: Arc<Answers>,
    /// Known when it began, and counted since.
    pub(super) whole_bytes: Option<u64>,
    pub(super) goes_on: bool,
}

impl Unread {
    fn change(&self, change: impl FnOnce(&mut Progress, Instant)) {
        // What goes on has no time: a watch costs nothing here for each of its events.
        if !self.goes_on {
            self.answers.change(self.id, |it| change(it, Instant::now()));
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.answers.forget(self.id, self.whole_bytes.unwrap_or_default());
    }
}

/// A frame of an answer of which nobody knows how large it becomes: in memory whole as soon as it is there, and until its last piece
/// has been sent.
pub(super) struct HeldFrame {
    /// Where it is in memory nothing else is as long as this is there.
    frame: Bytes,
    unread: Arc<Unread>,
}

impl HeldFrame {
    fn new(frame: &Bytes, unread: &Arc<Unread>) -> Option<Arc<Self>> {
        if unread.whole_bytes.is_some() {
            return None;
        }
        unread.answers.hold_frame(frame);
        Some(Arc::new(Self { frame: frame.clone(), unread: unread.clone() }))
    }
}

impl Drop for HeldFrame {
    fn drop(&mut self) {
        self.unread.answers.release_frame(&self.frame);
    }
}

struct Piece {
    bytes: Bytes,
    unread: Arc<Unread>,
    _frame: Option<Arc<HeldFrame>>,
}

impl Piece {
    fn new(bytes: Bytes, unread: &Arc<Unread>, frame: Option<Arc<HeldFrame>>) -> Self {
        let n = bytes.len() as u64;
        unread.change(|it, now| it.took(n, now));
        Self { bytes, unread: unread.clone(), _frame: frame }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let n = self.bytes.len() as u64;
        self.unread.change(|it, now| it.sent(n, now));
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer that is counted until it has been read.
pub struct UnreadBody<B> {
    pub(super) body: B,
    /// Of a frame, what has not been taken.
    pub(super) rest: Bytes,
    pub(super) frame: Option<Arc<HeldFrame>>,
    pub(super) unread: Arc<Unread>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for UnreadBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let unread = &this.unread;
        if this.rest.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(context);
            if polled.is_pending() {
                unread.change(Progress::waits_for_server);
            }
            match ready!(polled).map(|it| it.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if unread.goes_on && data.len() < LARGE_FRAME_BYTES => {
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Ok(Ok(data))) => {
                    this.frame = HeldFrame::new(&data, unread);
                    this.rest = data;
                }
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES_MAX));
        let frame = if this.rest.is_empty() { this.frame.take() } else { this.frame.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(Piece::new(piece, unread, frame))))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
