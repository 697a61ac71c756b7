//! IP addresses and ranges, written strictly: one text for one address.

use core::net::{IpAddr, Ipv6Addr};

use corten_meta::address::{Cidr, is_link_local};
use corten_schema::Cursor;

const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const MAPPED: &str = "must not be an IPv4-mapped IPv6 address";

/// The address of a text; leading zeros are allowed, as Go's older parser reads them.
fn sloppy(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let parts: Vec<&str> = text.split('.').collect();
    let part = |it: &str| -> Option<u8> {
        let is_number = !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        if is_number { it.parse().ok() } else { None }
    };
    match parts[..] {
        [a, b, c, d] => Some(IpAddr::from([part(a)?, part(b)?, part(c)?, part(d)?])),
        _ => None,
    }
}

fn reasons(text: &str) -> Vec<&'static str> {
    match (text.parse::<IpAddr>(), sloppy(text)) {
        (_, None) => vec![ADDRESS],
        (Err(_), Some(_)) => vec!["must not have leading 0s"],
        (Ok(IpAddr::V6(it)), _) if is_mapped(it) => vec![MAPPED],
        _ => Vec::new(),
    }
}

fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// True where it is an address.
pub fn address(value: Cursor<'_>) -> bool {
    let reasons = reasons(value.str());
    reasons.iter().for_each(|it| value.invalid_as(value.str(), it));
    reasons.is_empty()
}

pub fn is_address(text: &str) -> bool {
    reasons(text).is_empty()
}

/// What is said of an address or a range of IPv6 that has another text in RFC 5952 (`GetWarningsForIP`, `GetWarningsForCIDR`).
pub fn not_canonical(value: Cursor<'_>) -> Option<String> {
    let text = value.str();
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let known: Ipv6Addr = address.parse().ok()?;
    let (what, canonical) = match length {
        None => ("address", known.to_string()),
        Some(length) => ("CIDR value", format!("{known}/{length}")),
    };
    let told =
        || format!("{}: IPv6 {what} {text:?} should be in RFC 5952 canonical format ({canonical:?})", value.path());
    (canonical != text).then(told)
}

pub fn is_v6(text: &str) -> bool {
    text.contains(':')
}

/// An address that other machines can be reached at.
pub fn not_special(value: Cursor<'_>) {
    let Ok(address) = value.str().parse::<IpAddr>() else { return };
    let link_local_multicast = match address {
        IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
        IpAddr::V6(it) => it.segments()[0] == 0xff02,
    };
    if address.is_unspecified() {
        value.invalid("may not be unspecified (0.0.0.0 or ::)");
    }
    if address.is_loopback() {
        value.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if is_link_local(address) {
        value.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        value.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// True where it is a range of addresses with no bit set beyond its prefix.
pub fn range(value: Cursor<'_>) -> bool {
    let Some((address, length)) = value.str().split_once('/') else {
        value.invalid_as(value.str(), RANGE);
        return false;
    };
    let known = sloppy(address).filter(|it| length.parse::<u8>().is_ok_and(|length| length <= bits(*it)));
    let (Some(known), Ok(length)) = (known, length.parse::<u8>()) else {
        value.invalid_as(value.str(), RANGE);
        return false;
    };
    if address.parse::<IpAddr>().is_err() {
        value.invalid_as(value.str(), "must not have leading 0s in IP");
        return false;
    }
    if Cidr::new(known, length).address != known {
        value.invalid_as(value.str(), "must not have bits set beyond the prefix length");
        return false;
    }
    true
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
