//! Which addresses others may have this server ask.
//!
//! Whoever may write a webhook configuration chooses what the server sends a request to. Kubernetes follows wherever that leads; here a
//! machine's own services and the metadata service of a cloud (link-local) are not among it, as they are not in EndpointSlices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use corten_meta::address::is_reachable;

/// The metadata service of a cloud where it is no link-local address (EC2's over IPv6).
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The IPv4 address that a network translates an address to (`64:ff9b::/96`, RFC 6052); else the address itself.
fn translated(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => match it.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into(),
            _ => it.into(),
        },
        it @ IpAddr::V4(_) => it,
    }
}

/// Is it written in the location that the server itself is meant?
pub(crate) fn names_loopback(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback())
}

/// # Errors
/// Why the address must not be asked.
pub(crate) fn check(host: &str, address: SocketAddr) -> Result<(), String> {
    let ip = address.ip();
    let is_allowed = is_reachable(translated(ip)) && ip != METADATA;
    if is_allowed || ip.to_canonical().is_loopback() && names_loopback(host) {
        return Ok(());
    }
    Err(format!("dial tcp {address}: address not allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_and_the_machine_itself_are_not_asked_however_they_are_written() {
        for (host, address, allowed) in [
            ("example.com", "192.0.2.1:443", true),
            ("example.com", "[2001:db8::1]:443", true),
            ("example.com", "[64:ff9b::c000:201]:443", true),
            ("example.com", "169.254.169.254:80", false),
            ("example.com", "[::ffff:169.254.169.254]:80", false),
            ("example.com", "[64:ff9b::a9fe:a9fe]:80", false),
            ("example.com", "[fd00:ec2::254]:80", false),
            ("fd00:ec2::254", "[fd00:ec2::254]:80", false),
            ("example.com", "127.0.0.1:443", false),
            ("localhost", "127.0.0.1:443", true),
            ("[::1]", "[::1]:443", true),
        ] {
            assert_eq!(check(host, address.parse().expect(address)).is_ok(), allowed, "{host} {address}");
        }
    }
}
