//! The addresses that load balancers are given: ranges and single addresses, of both families.

use core::{fmt, net::IpAddr};

use corten_meta::address::{Cidr, is_reachable};

/// What `--load-balancer-pool` says. Empty: there is no pool, and the nodes' own addresses are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPool(Vec<Range>);

/// From the first to the last address, which are of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    is_ipv4: bool,
    first: u128,
    last: u128,
}

impl AddressPool {
    /// Reads `10.0.0.200-10.0.0.220`, `10.0.0.64/28` or `fd00::5`, as many as there are.
    ///
    /// # Errors
    /// One is none of these, overlaps another, or holds addresses that no machine can have.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let mut ranges: Vec<Range> = Vec::new();
        for word in words.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
            let range = Range::parse(word).ok_or_else(|| {
                format!("{word:?} is neither a range (10.0.0.200-10.0.0.220 or 10.0.0.64/28) nor an address")
            })?;
            if let Some(bad) =
                [range.first, range.last].map(|it| address(range.is_ipv4, it)).iter().find(|it| !is_reachable(**it))
            {
                return Err(format!("{word} holds {bad}, which no machine can be reached at from outside"));
            }
            if let Some(other) = ranges.iter().find(|it| it.overlaps(&range)) {
                return Err(format!("{word} overlaps {other}"));
            }
            ranges.push(range);
        }
        Ok(Self(ranges))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        self.0.iter().any(|it| it.is_ipv4 == address.is_ipv4() && (it.first..=it.last).contains(&number))
    }

    pub(super) fn has_family(&self, is_ipv4: bool) -> bool {
        self.0.iter().any(|it| it.is_ipv4 == is_ipv4)
    }

    /// All of one family, in the order of the ranges.
    pub(super) fn addresses(&self, is_ipv4: bool) -> impl Iterator<Item = IpAddr> {
        let of_family = self.0.iter().filter(move |it| it.is_ipv4 == is_ipv4);
        of_family.flat_map(move |it| (it.first..=it.last).map(move |it| address(is_ipv4, it)))
    }
}

impl fmt::Display for AddressPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&ranges.join(","))
    }
}

impl Range {
    fn parse(word: &str) -> Option<Self> {
        let of = |text: &str| text.trim().parse::<IpAddr>().ok().map(|it| it.to_canonical());
        if let Some((first, last)) = word.split_once('-') {
            let (first, last) = (of(first)?, of(last)?);
            let is_ordered = first.is_ipv4() == last.is_ipv4() && first <= last;
            return is_ordered.then(|| Self { is_ipv4: first.is_ipv4(), first: number(first), last: number(last) });
        }
        let range = Cidr::parse(word).or_else(|| Some(Cidr::new(of(word)?, u8::MAX)))?;
        let (is_ipv4, first) = (range.address.is_ipv4(), number(range.address));
        let width = if is_ipv4 { 32 } else { 128 };
        let hosts = u128::MAX.checked_shr(128 - (width - u32::from(range.bits))).unwrap_or_default();
        Some(Self { is_ipv4, first, last: first | hosts })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.is_ipv4 == other.is_ipv4 && self.first <= other.last && other.first <= self.last
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |it| address(self.is_ipv4, it);
        if self.first == self.last { of(self.first).fmt(f) } else { write!(f, "{}-{}", of(self.first), of(self.last)) }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => it.to_bits().into(),
        IpAddr::V6(it) => it.to_bits(),
    }
}

fn address(is_ipv4: bool, number: u128) -> IpAddr {
    if is_ipv4 { IpAddr::V4(u32::try_from(number).unwrap_or_default().into()) } else { IpAddr::V6(number.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        for (words, expected) in [
            (&[][..], Ok("")),
            (&["10.0.0.200-10.0.0.220", "fd00::100/124"], Ok("10.0.0.200-10.0.0.220,fd00::100-fd00::10f")),
            (&["10.0.0.65/28", "10.0.0.9"], Ok("10.0.0.64-10.0.0.79,10.0.0.9")),
            (&["10.0.0.9/32"], Ok("10.0.0.9")),
            (&["::ffff:10.0.0.9"], Ok("10.0.0.9")),
            (&["10.0.0.9-10.0.0.8"], Err("\"10.0.0.9-10.0.0.8\" is neither a range")),
            (&["10.0.0.9-fd00::1"], Err("\"10.0.0.9-fd00::1\" is neither a range")),
            (&["web"], Err("\"web\" is neither a range")),
            (&["10.0.0.0/24", "10.0.0.9"], Err("10.0.0.9 overlaps 10.0.0.0-10.0.0.255")),
            (&["127.0.0.1"], Err("127.0.0.1 holds 127.0.0.1, which no machine can be reached at")),
            (&["0.0.0.0/0"], Err("0.0.0.0/0 holds 0.0.0.0")),
        ] {
            match (AddressPool::parse(words), expected) {
                (Ok(pool), Ok(expected)) => assert_eq!(pool.to_string(), expected, "{words:?}"),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{words:?}: {error}"),
                (found, _) => panic!("{words:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn addresses_come_in_order() {
        let pool = AddressPool::parse(&["10.0.0.8/30", "fd00::/64", "10.0.0.2"]).expect("a pool");
        let all: Vec<String> = pool.addresses(true).map(|it| it.to_string()).collect();
        assert_eq!(all, ["10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11", "10.0.0.2"]);
        assert_eq!(pool.addresses(false).nth(2).map(|it| it.to_string()).as_deref(), Some("fd00::2"));
        assert!(pool.contains([10, 0, 0, 11].into()) && !pool.contains([10, 0, 0, 12].into()));
    }
}
