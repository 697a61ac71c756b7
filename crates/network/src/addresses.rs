//! The addresses that the machine is reached at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use corten_meta::address::is_reachable;

/// Those of the default routes, IPv4 first.
pub fn addresses() -> Vec<IpAddr> {
    let addresses: Vec<IpAddr> = [true, false].into_iter().filter_map(address_outwards).collect();
    // Without a network the node is reached from itself only.
    if addresses.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { addresses }
}

/// Does the machine reach others by IPv4, or by IPv6?
pub fn has_way_out(is_ipv4: bool) -> bool {
    address_outwards(is_ipv4).is_some()
}

/// The kernel says which address it would send from; asking sends nothing.
fn address_outwards(is_ipv4: bool) -> Option<IpAddr> {
    // Addresses for documentation: no machine has a nearer route to them than its default one.
    let (from, to) = if is_ipv4 { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|it| is_reachable(*it))
}

/// Is it an address of this machine, of whichever interface? Asking sends nothing. Where sockets may be bound to addresses of others
/// (`ip_nonlocal_bind`), no route leads out from those.
pub fn is_of_this_machine(address: IpAddr) -> bool {
    // IPv6 answers itself from the address that was asked (RFC 6724, section 5, rule 1), IPv4 from the first of that network.
    let from: IpAddr = if address.is_ipv4() { address } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = UdpSocket::bind((from, 0)).and_then(|it| it.connect((address, 9)).and_then(|()| it.local_addr()));
    !address.is_unspecified() && local.is_ok_and(|it| it.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_the_machine_is_its_own() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("192.0.2.1", false),
            ("0.0.0.0", false),
            ("2001:db8::1", false),
            ("::", false),
        ] {
            assert_eq!(is_of_this_machine(address.parse().expect("an address")), expected, "{address}");
        }
        assert!(addresses().into_iter().all(is_of_this_machine));
    }
}
