//! IP addresses: without zones, without IPv4 in IPv6, without leading zeros.

use std::net::IpAddr;

use super::{Evaluated, Row};
use crate::{
    error::Error,
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("string_to_ip", "ip(string) -> IP", |it| text(it, |it| Ok(Opaque::Ip(parse(it)?).into()))),
    ("ip_family", ".family(IP) -> int", |it| with(it, |it| Value::Int(if it.is_ipv4() { 4 } else { 6 }))),
    ("ip_is_canonical", "ip.isCanonical(string) -> bool", |it| {
        text(it, |text| Ok(Value::Bool(parse(text)?.to_string() == text)))
    }),
    ("ip_is_unspecified", ".isUnspecified(IP) -> bool", |it| is(it, |it| it.is_unspecified())),
    ("ip_is_loopback", ".isLoopback(IP) -> bool", |it| is(it, |it| it.is_loopback())),
    ("ip_is_link_local_multicast", ".isLinkLocalMulticast(IP) -> bool", |it| is(it, is_link_local_multicast)),
    ("ip_is_link_local_unicast", ".isLinkLocalUnicast(IP) -> bool", |it| is(it, is_link_local)),
    ("ip_is_global_unicast", ".isGlobalUnicast(IP) -> bool", |it| is(it, is_global)),
    ("is_ip", "isIP(string) -> bool", |it| text(it, |it| Ok(Value::Bool(parse(it).is_ok())))),
    ("ip_to_string", "string(IP) -> string", |it| with(it, |it| it.to_string().into())),
];

pub(super) fn text<'a>(args: &[Value<'a>], make: impl Fn(&str) -> Evaluated<'a>) -> Evaluated<'a> {
    match &args[0] {
        Value::String(text) => make(text),
        _ => Err(Error::no_such_overload()),
    }
}

fn with<'a>(args: &[Value<'a>], make: fn(IpAddr) -> Value<'a>) -> Evaluated<'a> {
    Ok(make(get(&args[0])?))
}

fn is<'a>(args: &[Value<'a>], holds: fn(IpAddr) -> bool) -> Evaluated<'a> {
    Ok(Value::Bool(holds(get(&args[0])?)))
}

pub(super) fn get(value: &Value<'_>) -> Result<IpAddr, Box<Error>> {
    if let Value::Opaque(it) = value
        && let Opaque::Ip(it) = &**it
    {
        return Ok(*it);
    }
    Err(Error::no_such_overload())
}

/// # Errors
/// In upstream's words, and Go's for what is no address at all.
pub(super) fn parse(text: &str) -> Result<IpAddr, Box<Error>> {
    let (address, zone) = text.split_once('%').unwrap_or((text, ""));
    let parsed: IpAddr = address.parse().map_err(|_| {
        let why = format!("ParseAddr({text:?}): unable to parse IP");
        Error::other(format!("IP Address {text:?} parse error during conversion from string: {why}"))
    })?;
    if !zone.is_empty() {
        return Err(Error::other(format!("IP address {text:?} with zone value is not allowed")));
    }
    if is_mapped(parsed) {
        return Err(Error::other(format!("IPv4-mapped IPv6 address {text:?} is not allowed")));
    }
    Ok(parsed)
}

pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some())
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
        IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());

    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local(address)
}
