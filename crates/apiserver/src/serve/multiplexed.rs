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

use corten_access::Peer;
use corten_cacher::body::{BoxError, Response};
use corten_connection::{Leftover, SelfWaker};
use futures_util::{StreamExt, stream::FuturesUnordered};
use http_body_util::BodyExt;
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::Watcher,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::{JoinSet, coop},
};

use crate::Server;

use super::{
    Connection, HEADER_BYTES_MAX, KEEP_ALIVE, RESETS_MAX, STREAMS_MAX, TlsStream, WINDOW_BYTES, ambiguous, attended,
    peer_of,
};

/// So much is collected before it is written in the middle of a round.
const CORKED_BYTES_MAX: usize = 64 * 1024;

/// Serves a connection on which the client chose HTTP/2.
pub(super) async fn serve(connection: Connection, stream: TlsStream, watcher: Watcher) -> Result<(), BoxError> {
    let peer = peer_of(&stream, connection.address);
    let (server, rhythm) = (connection.server, connection.rhythm);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (server, peer) = (server.clone(), peer.clone());
        let in_work = rhythm.begin();
        async move {
            let _in_work = in_work;
            let answer = if request.method().is_safe() {
                aside(answer(server, request, peer)).await
            } else {
                let (unattended, place) = (server.unattended().clone(), server.place_of(request.body()));
                unattended.finish(&place, |it| answer(server, attended(request, it), peer)).await
            };
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let (begun, wire) = (NewStreams::default(), Corked::new(stream));
    let connection = http(begun.clone()).serve_connection(TokioIo::new(wire.clone()), service);
    let connection = Box::pin(watcher.watch(connection));
    Multiplexed { connection, begun, streams: Streams::default(), wire }.await
}

async fn answer(server: Server, request: http::Request<Incoming>, peer: Peer) -> Response {
    let leftover = Leftover::default();
    let request = request.map(|it| leftover.lend(it).map_err(Into::into).boxed_unsync());
    let response = match ambiguous::refused_stream(&request) {
        Some(refused) => refused,
        None => server.answer(request, Some(peer), None).await,
    };
    leftover.drain().await;
    response
}

fn http(begun: NewStreams) -> http2::Builder<NewStreams> {
    let mut http = http2::Builder::new(begun);
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(64 * 1024)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    http
}

/// Requests of one connection are worked on side by side; dropping the answer ends the work of reads.
async fn aside(answer: impl Future<Output = Response> + Send + 'static) -> Response {
    let mut work = JoinSet::new();
    work.spawn(answer);
    match work.join_next().await.expect("one was spawned") {
        Ok(response) => response,
        Err(broken) => match broken.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

type Stream = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The streams that hyper has begun and nobody polls yet.
#[derive(Clone, Default)]
struct NewStreams(Arc<Mutex<Vec<Stream>>>);

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

struct Multiplexed<C> {
    connection: Pin<Box<C>>,
    begun: NewStreams,
    streams: Streams,
    wire: Corked,
}

impl<C, E> Future for Multiplexed<C>
where
    C: Future<Output = Result<(), E>>,
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

/// Keeps what is written until the round ends: a flush from inside is no end.
#[derive(Clone)]
struct Corked(Arc<Mutex<Cork>>);

struct Cork {
    stream: TlsStream,
    kept: Vec<u8>,
    /// How much of `kept` is written.
    written: usize,
}

impl Corked {
    fn new(stream: TlsStream) -> Self {
        Self(Arc::new(Mutex::new(Cork { stream, kept: Vec::new(), written: 0 })))
    }
}

impl Cork {
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
        if self.kept.len() >= CORKED_BYTES_MAX {
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
    if (1..=2 * CORKED_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        SPARE.set(buffer);
    }
}

impl AsyncRead for Corked {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Corked {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut cork = self.0.lock();
        std::task::ready!(cork.make_room(cx))?;
        cork.kept.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut cork = self.0.lock();
        std::task::ready!(cork.make_room(cx))?;
        bufs.iter().for_each(|it| cork.kept.extend_from_slice(it));
        Poll::Ready(Ok(bufs.iter().map(|it| it.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut cork = self.0.lock();
        std::task::ready!(cork.drain(cx))?;
        Pin::new(&mut cork.stream).poll_shutdown(cx)
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
