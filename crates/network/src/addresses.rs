//! The addresses that the machine is reached at.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use corten_meta::address::is_reachable;

/// The kernel says which address it would send from; asking sends nothing.
pub fn addresses() -> Vec<IpAddr> {
    // Addresses for documentation: no machine has a nearer route to them than its default one.
    let towards = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let found = towards.iter().filter_map(|(from, to)| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    });
    let addresses: Vec<IpAddr> = found.filter(|it| is_reachable(*it)).collect();
    // Without a network the node is reached from itself only.
    if addresses.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { addresses }
}
