//! Between a client that speaks the newest WebSocket protocols and a server that speaks SPDY.
//!
//! What is not a message's or a stream's content ends here: pings, replies, ends of streams. One direction waits for the
//! other side to read, and then reads no more itself: nothing is held but what was read at once.

mod portforward;
mod remote_command;

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

pub(crate) use portforward::PortForward;
pub use remote_command::Streams;
pub(crate) use remote_command::{halves as remote_command, put_status};

use crate::{
    Copied, Limits,
    tunnel::{Pulse, silence},
    websocket::{self, Piece},
};

/// How many answers to pings wait to be sent; a peer that asks more often gets no answer.
const ANSWERS_MAX: usize = 8;
/// How often a client hears that we live while the other side does not take what it sends.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long a client has to say goodbye: closing on what it still sends could cost it what it has not read.
const FAREWELL: Duration = Duration::from_secs(2);

/// From a client's messages to the server's bytes.
pub(crate) trait Up: Send {
    /// What is sent to the server before anything else.
    fn open(&mut self, _: &mut BytesMut) {}

    /// # Errors
    /// The client breaks the protocol.
    fn message(&mut self, begins: bool, ends: bool, bytes: &[u8], server: &mut BytesMut) -> io::Result<()>;
}

/// From the server's bytes to frames for the client.
pub(crate) trait Down: Send {
    /// The client may not be ready to hear anything yet.
    const HAS_HEAD_START: bool = false;

    /// What is sent to the client before anything else.
    fn open(&mut self, _: &mut BytesMut) {}

    /// Takes what it can of `input`.
    ///
    /// # Errors
    /// The server breaks the protocol.
    fn bytes(&mut self, input: &mut BytesMut, client: &mut BytesMut, server: &mut BytesMut) -> io::Result<Flow>;

    /// Nothing more comes. The last words for the client.
    fn end(&mut self, client: &mut BytesMut);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// All has been said.
    Done,
}

/// Both halves of a translation, joined to their connections until one side is done.
pub(crate) async fn run<C, S>(
    client: C,
    server: S,
    (mut up, mut down): (impl Up, impl Down),
    limits: Limits,
) -> io::Result<Copied>
where
    C: AsyncRead + AsyncWrite + Unpin + Send,
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (server_read, server_write) = tokio::io::split(server);
    let (pulse, quiet) = watch::channel(Pulse::new());
    let (pongs, pongs_due) = mpsc::channel(ANSWERS_MAX);
    let (replies, replies_due) = mpsc::channel(ANSWERS_MAX);
    let mut copied = Copied::default();
    let there = upward(&mut client_read, server_write, &mut up, pongs, replies_due, &pulse, limits);
    let back = downward(server_read, &mut client_write, &mut down, replies, pongs_due, &pulse, limits);
    tokio::select! {
        biased;
        back = back => copied.b_to_a = back?,
        // The client is gone: whatever still comes for it is for nobody.
        there = there => { copied.a_to_b = there?; return Ok(copied) }
        () = silence(quiet, limits) => return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing moved for too long")),
    }
    let mut rest = [0; 1024];
    let farewell = async { while matches!(client_read.read(&mut rest).await, Ok(1..)) {} };
    // In time or not: the connection ends now.
    let _ = timeout(FAREWELL, farewell).await;
    Ok(copied)
}

async fn upward<C: AsyncRead, S: AsyncWrite>(
    client: &mut ReadHalf<C>,
    mut server: WriteHalf<S>,
    up: &mut impl Up,
    pongs: mpsc::Sender<Bytes>,
    mut replies: mpsc::Receiver<Bytes>,
    pulse: &watch::Sender<Pulse>,
    limits: Limits,
) -> io::Result<u64> {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    let mut decoder = websocket::Decoder::default();
    let mut copied = 0;
    up.open(&mut out);
    let mut is_open = true;
    loop {
        if is_open && !out.is_empty() {
            // A server that takes no more may still have something to say: go on reading, for the client's pings.
            is_open = write(&mut server, &out, &pongs).await.is_ok();
        }
        out.clear();
        input.reserve(limits.buffer_bytes);
        tokio::select! {
            biased;
            Some(reply) = replies.recv() => out.extend_from_slice(&reply),
            read = client.read_buf(&mut input) => {
                if read? == 0 {
                    return Ok(copied);
                }
                pulse.send_if_modified(Pulse::beats);
                while let Some(piece) = decoder.next(&mut input).map_err(io::Error::other)? {
                    match piece {
                        Piece::Data { begins, ends, bytes } => {
                            copied += bytes.len() as u64;
                            up.message(begins, ends, &bytes, &mut out)?;
                        }
                        // One that does not read its answers gets none.
                        Piece::Ping(bytes) => drop(pongs.try_send(bytes)),
                        Piece::Pong => {}
                        Piece::Close => return Ok(copied),
                    }
                }
            }
        }
    }
}

/// Writes it all, and lets the client know meanwhile that somebody is there.
async fn write<S: AsyncWrite>(server: &mut WriteHalf<S>, bytes: &[u8], pongs: &mpsc::Sender<Bytes>) -> io::Result<()> {
    let mut writing = std::pin::pin!(async {
        server.write_all(bytes).await?;
        server.flush().await
    });
    loop {
        tokio::select! {
            biased;
            written = &mut writing => return written,
            () = sleep(SIGN_OF_LIFE) => drop(pongs.try_send(Bytes::new())),
        }
    }
}

async fn downward<C: AsyncWrite, S: AsyncRead, D: Down>(
    mut server: ReadHalf<S>,
    client: &mut WriteHalf<C>,
    down: &mut D,
    replies: mpsc::Sender<Bytes>,
    mut pongs: mpsc::Receiver<Bytes>,
    pulse: &watch::Sender<Pulse>,
    limits: Limits,
) -> io::Result<u64> {
    let (mut input, mut out, mut reply) = (BytesMut::new(), BytesMut::new(), BytesMut::new());
    let mut copied = 0;
    if D::HAS_HEAD_START {
        sleep(limits.head_start).await;
    }
    down.open(&mut out);
    loop {
        if !out.is_empty() {
            client.write_all(&out).await?;
            client.flush().await?;
            out.clear();
        }
        input.reserve(limits.buffer_bytes);
        tokio::select! {
            biased;
            Some(pong) = pongs.recv() => websocket::put_pong(&pong, &mut out),
            read = server.read_buf(&mut input) => {
                pulse.send_if_modified(Pulse::beats);
                let flow = match read {
                    Ok(read @ 1..) => {
                        copied += read as u64;
                        let flow = down.bytes(&mut input, &mut out, &mut reply);
                        if !reply.is_empty() {
                            drop(replies.try_send(reply.split().freeze()));
                        }
                        flow
                    }
                    // However it ended: what became of it stands in what came before.
                    _ => Ok(Flow::Done),
                };
                if !matches!(flow, Ok(Flow::More)) {
                    down.end(&mut out);
                    websocket::put_close(websocket::NORMAL, &mut out);
                    client.write_all(&out).await?;
                    client.shutdown().await?;
                    return flow.map(|_| copied);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
