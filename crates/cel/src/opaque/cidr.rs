//! A network: an address and how many of its bits are the network's.

use std::{fmt, net::IpAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Cidr {
    pub(crate) fn masked(self) -> Self {
        let shift = |bits: u8| u32::from(bits - self.prefix.min(bits));
        let address = match self.address {
            IpAddr::V4(it) => {
                let mask = u32::MAX.checked_shl(shift(32)).unwrap_or(0);
                IpAddr::V4((it.to_bits() & mask).into())
            }
            IpAddr::V6(it) => {
                let mask = u128::MAX.checked_shl(shift(128)).unwrap_or(0);
                IpAddr::V6((it.to_bits() & mask).into())
            }
        };
        Self { address, prefix: self.prefix }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let other = Self { address, prefix: self.prefix };
        address.is_ipv4() == self.address.is_ipv4() && other.masked() == self.masked()
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        let is_inside = self.masked() == (Self { address: other.address, prefix: self.prefix }).masked();
        is_inside && self.prefix <= other.prefix && self.address.is_ipv4() == other.address.is_ipv4()
    }
}
