//! The addresses that load balancers are given: ranges and single addresses, of both families.

use core::{fmt, net::IpAddr};

use corten_meta::address::{Cidr, is_reachable};

/// Between two addresses that machines are reached at there may be some of these.
const UNREACHABLE: [&str; 5] = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "fe80::/10"];

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
            let ends = [range.first, range.last].map(|it| address(range.is_ipv4, it));
            let bad = ends.iter().find(|it| !is_reachable(**it)).map(ToString::to_string);
            let inside =
                || UNREACHABLE.iter().find(|it| Cidr::parse(it).is_some_and(|it| Range::of(it).overlaps(&range)));
            if let Some(bad) = bad.or_else(|| inside().map(|it| (*it).to_owned())) {
                return Err(format!("{word} holds {bad}, which no machine can be reached at from outside"));
            }
            if let Some(other) = ranges.iter().find(|it| it.overlaps(&range)) {
                return Err(format!("{word} overlaps {other}"));
            }
            ranges.push(range);
        }
        Ok(Self(ranges))
    }

    /// # Errors
    /// An address of the pool is in one of these ranges, which are others'.
    pub fn apart_from(self, others: &[Cidr], whose: &str) -> Result<Self, String> {
        let overlapping = |it: &Range| others.iter().find(|other| Range::of(**other).overlaps(it));
        match self.0.iter().find_map(|it| Some((it, overlapping(it)?))) {
            Some((range, other)) => Err(format!("{range} overlaps {other}: these addresses are {whose}")),
            None => Ok(self),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        self.0.iter().any(|it| it.is_ipv4 == address.is_ipv4() && (it.first..=it.last).contains(&number))
    }

    pub fn has_family(&self, is_ipv4: bool) -> bool {
        self.0.iter().any(|it| it.is_ipv4 == is_ipv4)
    }

    /// All of one family, in the order of the ranges.
    pub fn addresses(&self, is_ipv4: bool) -> impl Iterator<Item = IpAddr> {
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
        // A prefix of IPv4 addresses in IPv6's form means other addresses than it seems to.
        (range.address.to_canonical() == range.address).then(|| Self::of(range))
    }

    fn of(range: Cidr) -> Self {
        let (is_ipv4, first) = (range.address.is_ipv4(), number(range.address));
        let width = if is_ipv4 { 32 } else { 128 };
        let hosts = u128::MAX.checked_shr(128 - (width - u32::from(range.bits))).unwrap_or_default();
        Self { is_ipv4, first, last: first | hosts }
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
            (
                &["126.0.0.9-128.0.0.9"],
                Err("126.0.0.9-128.0.0.9 holds 127.0.0.0/8, which no machine can be reached at"),
            ),
            (&["::ffff:10.5.0.0/120"], Err("\"::ffff:10.5.0.0/120\" is neither a range")),
        ] {
            match (AddressPool::parse(words), expected) {
                (Ok(pool), Ok(expected)) => assert_eq!(pool.to_string(), expected, "{words:?}"),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{words:?}: {error}"),
                (found, _) => panic!("{words:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_pool_is_apart_from_what_is_others() {
        let pool = || AddressPool::parse(&["10.0.0.8/30", "fd00::/64"]).expect("a pool");
        let others = |text: &str| [Cidr::parse(text).expect("a range")];
        assert_eq!(pool().apart_from(&others("10.0.1.0/24"), "Pods'"), Ok(pool()));
        let refused = pool().apart_from(&others("10.0.0.0/24"), "Pods'");
        assert_eq!(refused, Err("10.0.0.8-10.0.0.11 overlaps 10.0.0.0/24: these addresses are Pods'".to_owned()));
        assert!(pool().apart_from(&others("fd00::/48"), "Pods'").is_err());
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
