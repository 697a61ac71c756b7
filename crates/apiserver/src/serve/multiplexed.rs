//! A connection on which the client chose HTTP/2.

use corten_access::Peer;
use corten_cacher::{
    answer,
    body::{BoxError, Response},
};
use corten_connection::{
    BufferedWrites, EndsUnread, Leftover, Multiplexed, NewStreams, RequestPlacement, UnreadAnswers, said_twice,
};
use corten_meta::Status;
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::Watcher,
};

use crate::Server;

use super::{
    Connection, HEADER_BYTES_MAX, KEEP_ALIVE, RESETS_MAX, STREAMS_MAX, TlsStream, WINDOW_BYTES, attended, peer_of,
};

/// Serves a connection on which the client chose HTTP/2.
pub(super) async fn serve(connection: Connection, stream: TlsStream, watcher: Watcher) -> Result<(), BoxError> {
    let peer = peer_of(&stream, connection.address);
    let Connection { server, pace, lanes, placement, .. } = connection;
    let unread = UnreadAnswers::new(server.unread());
    let answers = unread.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let (server, peer) = (server.clone(), peer.clone());
        let (in_work, lanes, connection) = (pace.begin(), lanes.clone(), placement.clone());
        let answers = answers.clone();
        async move {
            let _in_work = in_work;
            let answer = if request.method().is_safe() {
                let work = lanes.placement();
                request.extensions_mut().insert(RequestPlacement::of_stream(work.clone(), connection));
                lanes.aside(answered(server, request, peer), work).await
            } else {
                let (unattended, place) = (server.unattended().clone(), lanes.place_of(request.body()));
                unattended.finish(place, |it| answered(server, attended(request, it), peer)).await
            };
            Ok::<_, std::convert::Infallible>(answers.add(answer))
        }
    });
    let (begun, wire) = (NewStreams::default(), BufferedWrites::new(stream));
    let connection = http(begun.clone()).serve_connection(TokioIo::new(wire.clone()), service);
    EndsUnread::new(Multiplexed::new(watcher.watch(connection), begun, wire), unread).await
}

async fn answered(server: Server, request: http::Request<Incoming>, peer: Peer) -> Response {
    let leftover = Leftover::default();
    let request = request.map(|it| leftover.lend(it).map_err(Into::into).boxed_unsync());
    let response = match said_twice(request.headers()) {
        // It ends alone.
        Some(reason) => answer::status(&Status::bad_request(reason)),
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
