//! IP addresses: what an address can be, and ranges of them; and hosts with their ports. An IPv4 address that is written as IPv6 is the IPv4 address.

use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Does it mean something else on each link? `169.254.0.0/16` and `fe80::/10`.
pub fn is_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    }
}

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

/// Can it be one machine's, at which others reach it across a network? An address that a network translates is what it becomes.
pub fn is_reachable(address: IpAddr) -> bool {
    let address = translated(address);
    // In `0.0.0.0/8`, too, a machine is itself.
    let is_this_machine =
        address.is_loopback() || address.is_unspecified() || matches!(address, IpAddr::V4(it) if it.octets()[0] == 0);
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    !(is_this_machine || is_broadcast || address.is_multicast() || is_link_local(address) || address == METADATA)
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    pub address: IpAddr,
    pub bits: u8,
}

impl Cidr {
    /// The bits behind the prefix are cleared. A prefix that is too long is the whole address.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        let bits = bits.min(if address.is_ipv4() { 32 } else { 128 });
        Self { address: masked(address, bits), bits }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (address, bits): (IpAddr, u8) = (address.trim().parse().ok()?, bits.trim().parse().ok()?);
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then(|| Self::new(address, bits))
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }

    /// Has it an address that the other has, too?
    pub fn meets(&self, other: &Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

impl core::fmt::Display for Cidr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(it.to_bits() & mask))
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() & mask))
        }
    }
}

/// `[2001:db8::1]:443`, `example.com:443` (`net.JoinHostPort`).
pub fn join_host_port(host: &str, port: impl fmt::Display) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What stands before the path of a URL, or of what has no scheme: `[2001:db8::1]:443` of `https://[2001:db8::1]:443/a`.
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Host and port of an authority; the port is empty where it has none. An address of IPv6 comes without its brackets.
pub fn split_host_port(authority: &str) -> (&str, &str) {
    match authority.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
        None => authority.rsplit_once(':').unwrap_or((authority, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reachable_or_not_however_it_is_written() {
        for (address, link_local, reachable) in [
            ("10.0.0.5", false, true),
            ("192.0.2.7", false, true),
            ("fd00::5", false, true),
            ("2001:db8::5", false, true),
            ("169.254.169.254", true, false),
            ("::ffff:169.254.169.254", true, false),
            ("fe80::1", true, false),
            ("febf::1", true, false),
            ("fec0::1", false, true),
            ("255.255.255.255", false, false),
            ("127.8.9.1", false, false),
            ("::1", false, false),
            ("::ffff:127.0.0.1", false, false),
            ("0.0.0.0", false, false),
            ("0.1.2.3", false, false),
            ("::", false, false),
            ("224.0.0.1", false, false),
            ("ff02::1", false, false),
            ("64:ff9b::c000:201", false, true),
            ("64:ff9b::7f00:1", false, false),
            ("64:ff9b::a9fe:a9fe", false, false),
            ("fd00:ec2::254", false, false),
            ("fd00:ec2::255", false, true),
        ] {
            let it: IpAddr = address.parse().expect("an address");
            assert_eq!((is_link_local(it), is_reachable(it)), (link_local, reachable), "{address}");
        }
    }

    #[test]
    fn addresses_are_in_their_ranges() {
        for (range, address, expected) in [
            ("10.96.0.0/16", "10.96.3.4", true),
            ("10.96.0.0/16", "::ffff:10.96.3.4", true),
            ("10.96.0.0/16", "10.97.0.1", false),
            ("10.96.0.0/30", "10.96.0.4", false),
            ("10.96.0.9/30", "10.96.0.11", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "1.2.3.4", false),
            ("fd00::/64", "fd00::1", true),
            ("fd00::/64", "fd00:0:0:1::1", false),
            ("fd00::1/128", "fd00::1", true),
        ] {
            let range = Cidr::parse(range).expect("a range");
            assert_eq!(range.contains(address.parse().expect("an address")), expected, "{range:?} {address}");
        }
        for no_range in ["10.96.0.0", "10.96.0.0/33", "::/129", "10.96.0/8", "/8", "10.96.0.0/-1", ""] {
            assert_eq!(Cidr::parse(no_range), None, "{no_range}");
        }
    }

    #[test]
    fn hosts_and_ports_of_urls() {
        for (url, expected) in [
            ("https://api.example.com:6443", ("api.example.com", "6443")),
            ("https://rancher/k8s/clusters/c-1", ("rancher", "")),
            ("https://[fd00::1]", ("fd00::1", "")),
            ("https://[fd00::1]:2379/x", ("fd00::1", "2379")),
            ("192.0.2.1:80", ("192.0.2.1", "80")),
            ("name", ("name", "")),
        ] {
            assert_eq!(split_host_port(authority(url)), expected, "{url}");
        }
        assert_eq!(join_host_port("fd00::1", 80), "[fd00::1]:80");
        assert_eq!(join_host_port("a", "b"), "a:b");
    }
}
