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
