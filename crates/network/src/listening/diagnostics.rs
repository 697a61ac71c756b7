//! The TCP sockets that listen, by `inet_diag` of sock_diag(7). The kernel keeps them in a table of their own: those of
//! `/proc/net/tcp` are found by a walk through the table of all connections, which takes milliseconds on a machine of much memory.

use std::{fs::File, io, net::IpAddr, os::fd::AsFd, path::Path};

use rustix::{
    net::netlink::SOCK_DIAG,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::netlink::{Bytes, DUMP, Socket};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `AF_INET`, `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
/// Bit `TCP_LISTEN` of the states.
const LISTEN: u32 = 1 << 10;
/// Of `inet_diag_sockid`, all zero where any socket is meant.
const SOCKET_ID_BYTES: usize = 48;
/// A Pod can have any number of sockets, many of them at one port: what is read of them must have an end.
const SOCKETS_MAX: usize = 4096;

/// Address and port of each in this thread's network namespace. An error where they are more than [`SOCKETS_MAX`].
pub(super) fn listeners() -> io::Result<Vec<(IpAddr, u16)>> {
    at_most(SOCKETS_MAX)
}

pub(super) fn at_most(n_sockets: usize) -> io::Result<Vec<(IpAddr, u16)>> {
    let mut socket = Socket::open(SOCK_DIAG)?;
    let mut all = Vec::new();
    for family in FAMILIES {
        let mut request = Bytes::default();
        request.framed(SOCK_DIAG_BY_FAMILY, DUMP, 0, [family, TCP, 0, 0], |it| {
            it.0.extend(LISTEN.to_ne_bytes());
            it.0.extend([0; SOCKET_ID_BYTES]);
        });
        socket.try_ask(&request.0, |id| {
            all.extend(local_end(family, id));
            if all.len() > n_sockets { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
        })?;
    }
    Ok(all)
}

/// Those in the network namespace of a process.
pub(super) fn listeners_of(proc: &Path) -> io::Result<Vec<(IpAddr, u16)>> {
    let namespace = File::open(proc.join("ns/net"))?;
    let look = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        listeners()
    };
    // The thread ends with it: none goes back, and none stays in a namespace that is not its own.
    std::thread::scope(|scope| {
        let looking = std::thread::Builder::new().spawn_scoped(scope, look)?;
        looking.join().unwrap_or_else(|_| Err(io::Error::other("looking into a network namespace panicked")))
    })
}

/// The first fields of `inet_diag_sockid`: both ports, and the local address.
fn local_end(family: u8, id: &[u8]) -> Option<(IpAddr, u16)> {
    let port = u16::from_be_bytes(*id.first_chunk()?);
    let address = id.get(4..20)?;
    let address = if family == FAMILIES[0] {
        IpAddr::from(*address.first_chunk::<4>()?)
    } else {
        IpAddr::from(*address.first_chunk::<16>()?).to_canonical()
    };
    Some((address, port))
}
