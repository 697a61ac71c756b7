//! TCP between two Pods. Times are in milliseconds, the middle one of many.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use super::super::namespace::Namespace;

const BUFFER_BYTES: usize = 128 << 10;
/// A packet that is lost on the way is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who begins, who listens, and where.
pub(super) struct Ends<'a> {
    pub(super) client: &'a Namespace,
    pub(super) server: &'a Namespace,
    pub(super) address: IpAddr,
}

impl Ends<'_> {
    fn listen(&self) -> Result<(TcpListener, SocketAddr)> {
        let listener = self.server.run(|| Ok(TcpListener::bind((self.address, 0))?)).context("listening")?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    }

    /// Both ends of one connection.
    fn connect(&self) -> Result<[TcpStream; 2]> {
        let (listener, address) = self.listen()?;
        let client = self.client.run(|| connect(address))?;
        let server = listener.accept()?.0;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
        }
        Ok([client, server])
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect_timeout(&address, PATIENCE).with_context(|| format!("connecting to {address}"))
}

/// From the first byte until the last one has arrived.
pub(super) fn megabytes_per_second(ends: &Ends<'_>, time: Duration) -> Result<f64> {
    let [mut client, mut server] = ends.connect()?;
    let receiver = thread::spawn(move || {
        let (mut buffer, mut n_bytes) = (vec![0; BUFFER_BYTES], 0_usize);
        loop {
            match server.read(&mut buffer)? {
                0 => return anyhow::Ok(n_bytes),
                n => n_bytes += n,
            }
        }
    });
    let (buffer, begun) = (vec![0; BUFFER_BYTES], Instant::now());
    while begun.elapsed() < time {
        client.write_all(&buffer).context("sending")?;
    }
    drop(client);
    let n_bytes = receiver.join().map_err(|_| anyhow!("the receiver broke"))?.context("receiving")?;
    Ok(n_bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// One byte, and one back.
pub(super) fn round_trip(ends: &Ends<'_>, n: usize) -> Result<f64> {
    let [mut client, mut server] = ends.connect()?;
    let answering = thread::spawn(move || {
        let mut byte = [0];
        while server.read(&mut byte)? > 0 {
            server.write_all(&byte)?;
        }
        anyhow::Ok(())
    });
    let mut times = Vec::with_capacity(n);
    for _ in 0..n {
        let begun = Instant::now();
        client.write_all(&[0])?;
        client.read_exact(&mut [0]).context("waiting for an answer")?;
        times.push(begun.elapsed());
    }
    drop(client);
    answering.join().map_err(|_| anyhow!("who answers broke"))??;
    Ok(median(times))
}

pub(super) fn connection(ends: &Ends<'_>, n: usize) -> Result<f64> {
    let (listener, address) = ends.listen()?;
    let accepting = thread::spawn(move || {
        // Who has accepted closes first, so that the client's port is free again.
        (0..n).try_for_each(|_| listener.accept().map(drop))
    });
    let times = ends.client.run(|| {
        let mut times = Vec::with_capacity(n);
        for _ in 0..n {
            let begun = Instant::now();
            let mut stream = connect(address)?;
            times.push(begun.elapsed());
            stream.read_to_end(&mut Vec::new())?;
        }
        Ok(times)
    })?;
    accepting.join().map_err(|_| anyhow!("who accepts broke"))?.context("accepting")?;
    Ok(median(times))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
