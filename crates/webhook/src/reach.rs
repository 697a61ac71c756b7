//! Which addresses others may have this server ask.
//!
//! Whoever may write a webhook configuration chooses what the server sends a request to. Kubernetes follows wherever that leads; here a
//! machine's own services and the metadata service of a cloud (link-local) are not among it, as they are not in EndpointSlices.

use std::net::{IpAddr, SocketAddr};

use corten_meta::address::is_reachable;

/// Is it written in the location that the server itself is meant?
pub(crate) fn names_loopback(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback())
}

/// # Errors
/// Why the address must not be asked.
pub(crate) fn check(host: &str, address: SocketAddr) -> Result<(), String> {
    let ip = address.ip();
    if is_reachable(ip) || ip.to_canonical().is_loopback() && names_loopback(host) {
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
