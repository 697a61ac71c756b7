//! Copies bytes both ways until both sides have ended, one side breaks, or nothing has moved for too long.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
    time::Instant,
};

/// So long a connection to another server of the cluster may be silent, as upstream and the kubelet allow.
pub const SILENCE_MAX: Duration = Duration::from_secs(4 * 3600);
/// Up to its version 1.33 kubectl reads before it has made its channels, and drops what is for none of them: a refusal that
/// came at once would be lost, and it would end with 0 (kubernetes#131203). No command says anything so soon.
const HEAD_START: Duration = Duration::from_millis(20);

/// How long a tunnel may be quiet, and how much it holds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Both sides open, no byte in either direction.
    pub idle: Duration,
    /// One side has ended, the other sends nothing.
    pub half_closed: Duration,
    /// From our agreement to switch protocols to the client's.
    pub switch: Duration,
    /// Bytes in flight for each direction.
    pub buffer_bytes: usize,
    /// How long a client of a command has to make its channels before it is told anything.
    pub head_start: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: SILENCE_MAX,
            half_closed: Duration::from_secs(30),
            switch: Duration::from_secs(30),
            buffer_bytes: 16 * 1024,
            head_start: HEAD_START,
        }
    }
}

/// How many bytes went which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub a_to_b: u64,
    pub b_to_a: u64,
}

/// Copies from `a` to `b` and from `b` to `a`. The end of one side, however it came, is passed on as the end of writing to the
/// other, which may go on sending: a command that did not read all its input still says how it ended.
///
/// # Errors
/// A side was quiet for longer than `limits` allow (`TimedOut`).
pub async fn copy_both<A, B>(a: A, b: B, limits: Limits) -> io::Result<Copied>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (a_read, a_write) = tokio::io::split(a);
    let (b_read, b_write) = tokio::io::split(b);
    let (pulse, quiet) = watch::channel(Pulse::new());
    let there = pump(a_read, b_write, &pulse, limits.buffer_bytes);
    let back = pump(b_read, a_write, &pulse, limits.buffer_bytes);
    let both = async { tokio::join!(there, back) };
    tokio::select! {
        biased;
        (a_to_b, b_to_a) = both => Ok(Copied { a_to_b, b_to_a }),
        () = silence(quiet, limits) => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing moved for too long")),
    }
}

/// When something last moved.
#[derive(Clone, Copy)]
pub(crate) struct Pulse {
    last: Instant,
    half_closed: bool,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { last: Instant::now(), half_closed: false }
    }

    /// Something has moved. Only the end of a side must wake the watcher of silence; this merely moves its deadline, so it
    /// is for [`watch::Sender::send_if_modified`].
    pub(crate) fn beats(&mut self) -> bool {
        self.last = Instant::now();
        false
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pulse: &watch::Sender<Pulse>,
    buffer_bytes: usize,
) -> u64 {
    let mut buffer = vec![0; buffer_bytes];
    let mut copied = 0;
    let mut is_taken = true;
    // A side that breaks has ended, too: a TLS peer that left without saying so, a runtime that closes on what it did not read.
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        if is_taken {
            // What nobody takes is thrown away: whoever sends it still wants to hear the other direction's end.
            is_taken = forward(&mut to, &buffer[..n]).await.is_ok();
            copied += n as u64;
        }
        pulse.send_if_modified(Pulse::beats);
    }
    // A peer that is gone already needs no goodbye.
    drop(to.shutdown().await);
    pulse.send_modify(|it| *it = Pulse { last: Instant::now(), half_closed: true });
    copied
}

async fn forward(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

/// Ends once the tunnel has been quiet for too long.
pub(crate) async fn silence(mut pulse: watch::Receiver<Pulse>, limits: Limits) {
    loop {
        let Pulse { last, half_closed } = *pulse.borrow_and_update();
        let deadline = last + if half_closed { limits.half_closed } else { limits.idle };
        if Instant::now() >= deadline {
            return;
        }
        tokio::select! {
            biased;
            // The sender lives as long as `copy_both`, so this never fails while anyone waits for it.
            _ = pulse.changed() => {}
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

#[cfg(test)]
mod tests;
