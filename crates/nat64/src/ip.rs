//! What both kinds of packets say before their payload, and which addresses stand for which.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP4: u8 = 1;
pub(crate) const ICMP6: u8 = 58;
pub(crate) const HEADER4: usize = 20;
pub(crate) const HEADER6: usize = 40;
pub(crate) const FRAGMENT_HEADER: usize = 8;
/// Of no IPv6 link is less.
pub(crate) const MTU_MIN: usize = 1280;

/// Which addresses stand for which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Of 96 bits: with an IPv4 address behind it, it stands for that (RFC 6052).
    pub prefix: Ipv6Addr,
    /// All that speaks from the IPv6 side, and what it is called on the other.
    pub inside: Ipv6Addr,
    pub outside: Ipv4Addr,
}

impl Ends {
    /// Those of one machine, which no other sees: a prefix for translation within a network (RFC 8215), and an address for just that (RFC 7335).
    pub const LOCAL: Self = Self {
        prefix: Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        inside: Ipv6Addr::new(0x64, 0xff9b, 1, 1, 0, 0, 0, 1),
        outside: Ipv4Addr::new(192, 0, 0, 1),
    };

    /// The address by which this one is reached; none where nobody is reached there.
    pub fn way_to(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        self.is_host(address).then(|| self.ipv6_of(address))
    }

    /// Nobody is reached at the others: this machine's own loopback and link, groups, addresses that are none, and the end itself.
    pub(crate) fn is_host(&self, address: Ipv4Addr) -> bool {
        let [first, ..] = address.octets();
        let is_unicast = first != 0 && first < 224;
        is_unicast && !address.is_loopback() && !address.is_link_local() && address != self.outside
    }

    /// The address that stands for this one behind the prefix.
    pub fn ipv6_of(&self, address: Ipv4Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.prefix.to_bits() | u128::from(address.to_bits()))
    }

    /// What stands behind the prefix.
    pub fn ipv4_behind(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let low = u32::try_from(address.to_bits() & u128::from(u32::MAX)).ok()?;
        let address4 = Ipv4Addr::from_bits(low);
        (self.ipv6_of(address4) == address).then_some(address4)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) id: u32,
    /// In eights of bytes.
    pub(crate) offset: u16,
    pub(crate) has_more: bool,
}

/// What a packet says before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers<A> {
    /// Traffic class, or type of service.
    pub(crate) class: u8,
    /// Hop limit, or time to live. The kernel counts: it forwards the packet on both sides.
    pub(crate) hops: u8,
    pub(crate) protocol: u8,
    pub(crate) source: A,
    pub(crate) destination: A,
    pub(crate) fragment: Option<Fragment>,
    /// Of an IPv4 packet: what its fragments would be known by, and whether it may have some.
    pub(crate) id: u32,
    pub(crate) may_be_fragmented: bool,
    /// As it says itself: of a packet within an error not all is there.
    pub(crate) payload_length: usize,
}

impl<A> Headers<A> {
    pub(crate) fn with<B>(&self, protocol: u8, source: B, destination: B) -> Headers<B> {
        let Self { class, hops, fragment, id, may_be_fragmented, payload_length, .. } = *self;
        Headers { class, hops, protocol, source, destination, fragment, id, may_be_fragmented, payload_length }
    }

    /// Does the payload begin with that of the whole packet?
    pub(crate) fn is_first(&self) -> bool {
        self.fragment.is_none_or(|it| it.offset == 0)
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, word: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&word.to_be_bytes());
    Some(())
}
