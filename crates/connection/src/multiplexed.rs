//! One HTTP/2 connection as one task: all its streams move in it, and what they send together leaves in one write.
//!
//! Client libraries put all their watches on one connection. A task for each, as hyper does it left alone, would wake and
//! write for each event once per watch; so an event that a hundred watches see costs one wake, and one write.

use std::{
    cell::Cell,
    io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::coop,
};

use crate::SelfWaker;

/// So much is collected before it is written in the middle of a round.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The streams that hyper has begun and nobody polls yet.
#[derive(Clone, Default)]
pub struct NewStreams(Arc<Mutex<Vec<Stream>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for NewStreams {
    fn execute(&self, stream: F) {
        // The budget of one task is not meant for hundreds; each does little in a round, its window sees to that.
        self.0.lock().push(Box::pin(coop::unconstrained(stream)));
    }
}

/// The streams under way.
#[derive(Default)]
struct Streams {
    all: FuturesUnordered<Stream>,
    turn: Arc<SelfWaker>,
}

impl Streams {
    /// Lets all of them move that can. h2 wakes a stream in the midst of its own turn, and of such the set moves two and
    /// leaves the others for another time: then each two would have a write of their own.
    fn poll(&mut self, cx: &Context<'_>) {
        let n_max = self.all.len() + 1;
        let _pending = self.turn.take(cx, n_max, |cx| {
            while let Poll::Ready(Some(())) = self.all.poll_next_unpin(cx) {}
            Poll::<()>::Pending
        });
    }
}

/// A connection of hyper's with all its streams.
pub struct Multiplexed<C, S> {
    connection: Pin<Box<C>>,
    begun: NewStreams,
    streams: Streams,
    wire: BufferedWrites<S>,
}

impl<C, S> Multiplexed<C, S> {
    /// `connection` reads from and writes to a clone of `wire`, and gives its streams to a clone of `begun`.
    pub fn new(connection: C, begun: NewStreams, wire: BufferedWrites<S>) -> Self {
        Self { connection: Box::pin(connection), begun, streams: Streams::default(), wire }
    }
}

impl<C, S, E> Future for Multiplexed<C, S>
where
    C: Future<Output = Result<(), E>>,
    S: AsyncWrite + Unpin,
    E: Into<BoxError>,
{
    type Output = Result<(), BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            this.streams.poll(cx);
            if let Poll::Ready(ended) = this.connection.as_mut().poll(cx) {
                return Poll::Ready(ended.map_err(Into::into));
            }
            let begun = mem::take(&mut *this.begun.0.lock());
            if begun.is_empty() {
                break;
            }
            this.streams.all.extend(begun);
        }
        match this.wire.0.lock().drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        }
    }
}

/// Buffers writes until the poll round ends; ignores inner flushes.
pub struct BufferedWrites<S>(Arc<Mutex<WriteBuffer<S>>>);

struct WriteBuffer<S> {
    stream: S,
    kept: Vec<u8>,
    /// How much of `kept` is written.
    written: usize,
}

impl<S> BufferedWrites<S> {
    pub fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(WriteBuffer { stream, kept: Vec::new(), written: 0 })))
    }
}

impl<S> Clone for BufferedWrites<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncWrite + Unpin> WriteBuffer<S> {
    /// Writes all that is kept, and sends it.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.kept.len() {
            match std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, &self.kept[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.written += n,
            }
        }
        put_back(mem::take(&mut self.kept));
        self.written = 0;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn make_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.kept.len() >= BUFFERED_BYTES_MAX {
            std::task::ready!(self.drain(cx))?;
        }
        if self.kept.capacity() == 0 {
            self.kept = SPARE.take();
        }
        Poll::Ready(Ok(()))
    }
}

thread_local! {
    /// Most connections are silent most of the time and keep no buffer. Those that move on this thread write, one after
    /// the other, into the same memory, which is in the core's cache.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

fn put_back(mut buffer: Vec<u8>) {
    if (1..=2 * BUFFERED_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        SPARE.set(buffer);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BufferedWrites<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BufferedWrites<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut buffer = self.0.lock();
        std::task::ready!(buffer.make_room(cx))?;
        buffer.kept.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = self.0.lock();
        std::task::ready!(buffer.make_room(cx))?;
        bufs.iter().for_each(|it| buffer.kept.extend_from_slice(it));
        Poll::Ready(Ok(bufs.iter().map(|it| it.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffer = self.0.lock();
        std::task::ready!(buffer.drain(cx))?;
        Pin::new(&mut buffer.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::{Context, Poll, Waker},
    };

    use super::Streams;

    #[test]
    fn all_streams_move_in_one_turn_even_such_as_wake_themselves() {
        let (n_streams, n_moved) = (100, Arc::new(AtomicUsize::new(0)));
        let mut streams = Streams::default();
        for _ in 0..n_streams {
            let (n_moved, mut has_moved) = (n_moved.clone(), false);
            let stream = poll_fn(move |cx| {
                if !std::mem::replace(&mut has_moved, true) {
                    n_moved.fetch_add(1, Ordering::Relaxed);
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            });
            streams.all.push(Box::pin(stream));
        }
        streams.poll(&Context::from_waker(Waker::noop()));
        assert_eq!(n_moved.load(Ordering::Relaxed), n_streams);
    }

    #[test]
    fn a_stream_that_never_rests_ends_the_turn() {
        let mut streams = Streams::default();
        streams.all.push(Box::pin(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        streams.poll(&Context::from_waker(Waker::noop()));
    }
}
