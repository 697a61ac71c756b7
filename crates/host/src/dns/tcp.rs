//! Queries over connections: a bounded number, each idle for a bounded time, one query after the other.

use std::{collections::BTreeMap, io, net::IpAddr, sync::Arc, time::Duration};

use corten_dns::TCP_BYTES_MAX;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use super::{Handled, NameServer};

const CONNECTIONS_MAX: usize = 256;
/// Of one address, so that one Pod cannot take all.
const CONNECTIONS_OF_ONE_MAX: usize = 32;
/// How long a connection may be silent, as RFC 7766 would have it short.
const IDLE: Duration = Duration::from_secs(10);
/// How long one query may take to come, or one answer to go.
const MESSAGE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(listener: TcpListener, name_server: Arc<NameServer>) {
    let mut connections: JoinSet<IpAddr> = JoinSet::new();
    let mut open: BTreeMap<IpAddr, usize> = BTreeMap::new();
    loop {
        tokio::select! {
            Some(ended) = connections.join_next() => match ended {
                Ok(from) => {
                    let n_open = open.entry(from).or_default();
                    *n_open = n_open.saturating_sub(1);
                    open.retain(|_, it| *it > 0);
                }
                // Whose it was is not known any more.
                Err(_) => open.clear(),
            },
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, from)) => {
                    let n_open = open.entry(from.ip()).or_default();
                    if *n_open < CONNECTIONS_OF_ONE_MAX {
                        *n_open += 1;
                        let name_server = name_server.clone();
                        connections.spawn(async move {
                            // Who goes away amid a message tells nobody anything.
                            let _ = converse(stream, from.ip(), &name_server).await;
                            from.ip()
                        });
                    }
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

async fn converse(mut stream: TcpStream, from: IpAddr, name_server: &NameServer) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        let length = timeout(IDLE, stream.read_u16()).await??;
        let mut packet = vec![0; usize::from(length)];
        timeout(MESSAGE, stream.read_exact(&mut packet)).await??;
        let limit = Some(TCP_BYTES_MAX);
        match name_server.handle(&packet, from, limit, &mut out) {
            Handled::Silence => return Ok(()),
            Handled::Answered => {}
            Handled::Later(later) => match name_server.in_flight.try_acquire() {
                Ok(_permit) => out = name_server.finish(&packet, &later, limit).await,
                Err(_) => NameServer::overloaded(&packet, limit, &mut out),
            },
        }
        let length = u16::try_from(out.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let message = [&length.to_be_bytes()[..], &out].concat();
        timeout(MESSAGE, stream.write_all(&message)).await??;
    }
}
