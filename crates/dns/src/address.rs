//! Addresses in names: `10-244-0-5`, `fd00--5`, and the names of the reverse zones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Name;

/// A label that stands for the address, as CoreDNS makes it (`endpointHostname`).
pub(crate) fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

/// The address a label stands for.
pub(crate) fn undashed(label: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(label).ok()?;
    if text.matches('-').count() == 3 && !text.contains("--") {
        return text.replace('-', ".").parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    }
    text.replace('-', ":").parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// The address whose name is asked for: `5.0.244.10.in-addr.arpa`.
pub(crate) fn reversed(name: &Name) -> Option<IpAddr> {
    let labels: Vec<&[u8]> = name.labels().collect();
    let (labels, kind) = labels.split_at_checked(labels.len().checked_sub(2)?)?;
    match (kind, labels.len()) {
        ([b"in-addr", b"arpa"], 4) => {
            let mut bytes = [0; 4];
            for (byte, label) in bytes.iter_mut().rev().zip(labels) {
                *byte = number(label)?;
            }
            Some(Ipv4Addr::from(bytes).into())
        }
        ([b"ip6", b"arpa"], 32) => {
            let mut bits = 0_u128;
            for label in labels.iter().rev() {
                let [digit] = label else { return None };
                bits = bits << 4 | u128::from(char::from(*digit).to_digit(16)?);
            }
            Some(Ipv6Addr::from(bits).into())
        }
        _ => None,
    }
}

/// A number without needless zeros in front.
fn number(label: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(label).ok()?;
    let number: u8 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_in_names() {
        for (label, expected) in [
            ("10-244-0-5", Some("10.244.0.5")),
            ("fd00--5", Some("fd00::5")),
            ("1-2-3", None),
            ("10-244-0-256", None),
            ("web", None),
            ("", None),
        ] {
            assert_eq!(undashed(label.as_bytes()).map(|it| it.to_string()).as_deref(), expected, "{label}");
        }
        assert_eq!(dashed("5678:abcd::1".parse().expect("an address")), "5678-abcd--1");
    }

    #[test]
    fn reverse_names_are_read() {
        let long = format!("5.{}0.0.d.f.ip6.arpa", "0.".repeat(27));
        for (name, expected) in [
            ("5.0.244.10.in-addr.arpa", Some("10.244.0.5")),
            ("05.0.244.10.in-addr.arpa", None),
            ("0.244.10.in-addr.arpa", None),
            ("256.0.244.10.in-addr.arpa", None),
            (long.as_str(), Some("fd00::5")),
            ("5.ip6.arpa", None),
            ("arpa", None),
        ] {
            let found = reversed(&Name::parse(name).expect("a name"));
            assert_eq!(found.map(|it| it.to_string()).as_deref(), expected, "{name}");
        }
    }
}
