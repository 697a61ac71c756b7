//! Queries in datagrams. What the zone or the cache answers is answered on the spot; the rest waits in tasks of its own.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::UdpSocket,
    task::{JoinError, JoinSet},
};

use super::{Handled, NameServer};

/// No query is longer: what follows is cut off, and the packet then malformed.
const QUERY_BYTES_MAX: usize = 4096;
/// Of one client's queries so many may wait for other servers, so that one Pod cannot take all places.
pub(super) const WAITING_OF_ONE_MAX: usize = 256;
/// So many queries are answered before other tasks get their turn.
const BATCH: usize = 64;
/// A socket that fails is not asked again at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Queries that wait for other servers, and whose they are.
#[derive(Default)]
struct ForwardedQueries {
    tasks: JoinSet<IpAddr>,
    of: BTreeMap<IpAddr, usize>,
}

impl ForwardedQueries {
    fn admits(&self, from: IpAddr) -> bool {
        self.of.get(&from).is_none_or(|it| *it < WAITING_OF_ONE_MAX)
    }

    fn end(&mut self, ended: Result<IpAddr, JoinError>) {
        let Ok(from) = ended else {
            // Whose it was is not known any more.
            return self.of.clear();
        };
        if let Some(n) = self.of.get_mut(&from) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.of.remove(&from);
            }
        }
    }
}

pub(super) async fn serve(socket: UdpSocket, name_server: Arc<NameServer>) {
    let socket = Arc::new(socket);
    let mut waiting = ForwardedQueries::default();
    let (mut packet, mut out) = (vec![0; QUERY_BYTES_MAX], Vec::new());
    loop {
        tokio::select! {
            Some(ended) = waiting.tasks.join_next() => waiting.end(ended),
            readable = socket.readable() => {
                let mut failed = readable.is_err();
                for _ in 0..BATCH {
                    match socket.try_recv_from(&mut packet) {
                        Ok((n, from)) => take(&socket, &name_server, &packet[..n], from, &mut out, &mut waiting),
                        Err(error) => {
                            failed |= error.kind() != std::io::ErrorKind::WouldBlock;
                            break;
                        }
                    }
                }
                if failed {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

fn take(
    socket: &Arc<UdpSocket>,
    name_server: &Arc<NameServer>,
    packet: &[u8],
    from: SocketAddr,
    out: &mut Vec<u8>,
    waiting: &mut ForwardedQueries,
) {
    match name_server.handle(packet, from.ip(), None, out) {
        Handled::Silence => return,
        Handled::Answered => {}
        Handled::Later(later) => match (waiting.admits(from.ip()), name_server.in_flight.clone().try_acquire_owned()) {
            (true, Ok(permit)) => {
                *waiting.of.entry(from.ip()).or_default() += 1;
                let (socket, name_server, packet) = (socket.clone(), name_server.clone(), packet.to_vec());
                waiting.tasks.spawn(async move {
                    let answer = name_server.finish(&packet, &later, None).await;
                    let _ = socket.try_send_to(&answer, from);
                    drop(permit);
                    from.ip()
                });
                return;
            }
            _ => NameServer::overloaded(packet, None, out),
        },
    }
    // A datagram that finds no room is lost, as on any way: the client asks again.
    let _ = socket.try_send_to(out, from);
}
