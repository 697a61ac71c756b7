//! Networks: an address and how many of its bits are the network's.

use std::net::IpAddr;

use super::{Row, ip};
use crate::{
    error::Error,
    opaque::Cidr,
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("string_to_cidr", "cidr(string) -> CIDR", |it| ip::text(it, |it| Ok(Opaque::Cidr(converted(it)?).into()))),
    ("cidr_contains_ip_string", ".containsIP(CIDR, string) -> bool", |it| {
        let cidr = get(&it[0])?;
        ip::text(&it[1..], |it| Ok(Value::Bool(cidr.contains(ip::parse(it)?))))
    }),
    ("cidr_contains_ip_ip", ".containsIP(CIDR, IP) -> bool", |it| {
        Ok(Value::Bool(get(&it[0])?.contains(ip::get(&it[1])?)))
    }),
    ("cidr_contains_cidr_string", ".containsCIDR(CIDR, string) -> bool", |it| {
        let cidr = get(&it[0])?;
        ip::text(&it[1..], |it| Ok(Value::Bool(cidr.covers(converted(it)?))))
    }),
    ("cidr_contains_cidr", ".containsCIDR(CIDR, CIDR) -> bool", |it| {
        Ok(Value::Bool(get(&it[0])?.covers(get(&it[1])?)))
    }),
    ("cidr_ip", ".ip(CIDR) -> IP", |it| Ok(Opaque::Ip(get(&it[0])?.address).into())),
    ("cidr_prefix_length", ".prefixLength(CIDR) -> int", |it| Ok(Value::Int(get(&it[0])?.prefix.into()))),
    ("cidr_masked", ".masked(CIDR) -> CIDR", |it| Ok(Opaque::Cidr(get(&it[0])?.masked()).into())),
    ("is_cidr", "isCIDR(string) -> bool", |it| ip::text(it, |it| Ok(Value::Bool(parse(it).is_ok())))),
    ("cidr_to_string", "string(CIDR) -> string", |it| Ok(get(&it[0])?.to_string().into())),
];

fn get(value: &Value<'_>) -> Result<Cidr, Box<Error>> {
    if let Value::Opaque(it) = value
        && let Opaque::Cidr(it) = &**it
    {
        return Ok(*it);
    }
    Err(Error::no_such_overload())
}

const WHY: &str = "network address parse error during conversion from string: ";

fn converted(text: &str) -> Result<Cidr, Box<Error>> {
    parse(text).map_err(|it| Error::other(format!("{WHY}{it}")))
}

fn parse(text: &str) -> Result<Cidr, String> {
    let wrong = |why: &str| format!("{WHY}netip.ParsePrefix({text:?}): {why}");
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    if address.contains('%') {
        return Err(wrong("IPv6 zones cannot be present in a prefix"));
    }
    let parsed: IpAddr = address.parse().map_err(|_| wrong(&format!("ParseAddr({address:?}): unable to parse IP")))?;
    let is_number =
        !bits.is_empty() && bits.bytes().all(|it| it.is_ascii_digit()) && (bits.len() == 1 || !bits.starts_with('0'));
    if !is_number {
        return Err(wrong(&format!("bad bits after slash: {bits:?}")));
    }
    let most = if parsed.is_ipv4() { 32 } else { 128 };
    let prefix: u8 = bits.parse().ok().filter(|it| *it <= most).ok_or_else(|| wrong("prefix length out of range"))?;
    if ip::is_mapped(parsed) {
        return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
    }
    Ok(Cidr { address: parsed, prefix })
}
