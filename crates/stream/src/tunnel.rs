//! Copies bytes both ways until both sides have ended, one side breaks, or nothing has moved for too long.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
    time::Instant,
};

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
}

impl Default for Limits {
    /// Four hours of silence, as the kubelet allows.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(4 * 3600),
            half_closed: Duration::from_secs(30),
            switch: Duration::from_secs(30),
            buffer_bytes: 16 * 1024,
        }
    }
}

/// How many bytes went which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub a_to_b: u64,
    pub b_to_a: u64,
}

/// Copies from `a` to `b` and from `b` to `a`. The end of one side is passed on as the end of writing to the other, which
/// may go on sending.
///
/// # Errors
/// A side broke, or was quiet for longer than `limits` allow (`TimedOut`).
pub async fn copy_both<A, B>(a: A, b: B, limits: Limits) -> io::Result<Copied>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (a_read, a_write) = tokio::io::split(a);
    let (b_read, b_write) = tokio::io::split(b);
    let (pulse, quiet) = watch::channel(Pulse { last: Instant::now(), half_closed: false });
    let there = pump(a_read, b_write, &pulse, limits.buffer_bytes);
    let back = pump(b_read, a_write, &pulse, limits.buffer_bytes);
    let both = async { tokio::try_join!(there, back) };
    tokio::select! {
        biased;
        copied = both => copied.map(|(a_to_b, b_to_a)| Copied { a_to_b, b_to_a }),
        () = silence(quiet, limits) => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing moved for too long")),
    }
}

/// When something last moved.
#[derive(Clone, Copy)]
struct Pulse {
    last: Instant,
    half_closed: bool,
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pulse: &watch::Sender<Pulse>,
    buffer_bytes: usize,
) -> io::Result<u64> {
    let mut buffer = vec![0; buffer_bytes];
    let mut copied = 0;
    loop {
        let n = match from.read(&mut buffer).await {
            // A TLS peer that left without saying so has ended too.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        if n == 0 {
            break;
        }
        to.write_all(&buffer[..n]).await?;
        to.flush().await?;
        copied += n as u64;
        // Only the end of a side must wake the watcher of silence; a moved byte merely moves its deadline.
        pulse.send_if_modified(|it| {
            it.last = Instant::now();
            false
        });
    }
    // A peer that is gone already needs no goodbye.
    match to.shutdown().await {
        Err(error) if error.kind() != io::ErrorKind::NotConnected && error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(error);
        }
        _ => {}
    }
    pulse.send_modify(|it| *it = Pulse { last: Instant::now(), half_closed: true });
    Ok(copied)
}

/// Ends once the tunnel has been quiet for too long.
async fn silence(mut pulse: watch::Receiver<Pulse>, limits: Limits) {
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
