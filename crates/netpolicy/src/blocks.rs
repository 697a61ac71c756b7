//! `ipBlock`s as ranges that do not overlap, which is what an interval set takes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use corten_meta::address::Cidr;

use crate::{projections::IpBlock, rules::Family};

/// Ranges of one family, both ends in them, in order, with a gap between each two.
pub(crate) type Ranges = Vec<(IpAddr, IpAddr)>;

/// What these blocks hold together of one family.
pub(crate) fn ranges(blocks: &[&IpBlock], family: Family) -> Ranges {
    let mut all: Vec<(u128, u128)> = blocks.iter().flat_map(|it| of_block(it, family)).collect();
    all.sort_unstable();
    let mut merged: Vec<(u128, u128)> = Vec::new();
    for (first, last) in all {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged.into_iter().map(|(first, last)| (address(first, family), address(last, family))).collect()
}

fn of_block(block: &IpBlock, family: Family) -> Vec<(u128, u128)> {
    let of_family = |it: &str| Cidr::parse(it).filter(|it| Family::of(it.address) == family).map(|it| bounds(&it));
    let Some(whole) = of_family(&block.cidr) else { return Vec::new() };
    let mut holes: Vec<(u128, u128)> = block.except.iter().filter_map(|it| of_family(it)).collect();
    holes.sort_unstable();
    let mut left = Vec::new();
    let mut next = Some(whole.0);
    for (first, last) in holes {
        let Some(begin) = next else { break };
        if last < begin || first > whole.1 {
            continue;
        }
        if first > begin {
            left.push((begin, first - 1));
        }
        next = last.checked_add(1).filter(|it| *it <= whole.1);
    }
    left.extend(next.map(|it| (it, whole.1)));
    left
}

fn bounds(cidr: &Cidr) -> (u128, u128) {
    let (first, width) = match cidr.address {
        IpAddr::V4(it) => (u128::from(it.to_bits()), 32),
        IpAddr::V6(it) => (it.to_bits(), 128),
    };
    let behind = u32::from(width - cidr.bits);
    (first, first | 1_u128.checked_shl(behind).map_or(u128::MAX, |it| it - 1))
}

fn address(bits: u128, family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(u32::try_from(bits).expect("ranges of IPv4 end in IPv4")).into(),
        Family::V6 => Ipv6Addr::from_bits(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(blocks: &[(&str, &[&str])], family: Family) -> String {
        let of = |(cidr, except): &(&str, &[&str])| IpBlock {
            cidr: (*cidr).to_owned(),
            except: except.iter().map(|it| (*it).to_owned()).collect(),
        };
        let blocks: Vec<IpBlock> = blocks.iter().map(of).collect();
        let ranges = ranges(&blocks.iter().collect::<Vec<_>>(), family);
        ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_block_is_what_its_exceptions_leave() {
        let (v4, v6) = (Family::V4, Family::V6);
        for (blocks, family, expected) in [
            (&[("10.0.0.0/8", &[][..])][..], v4, "10.0.0.0-10.255.255.255"),
            (&[("10.0.0.0/8", &[])], v6, ""),
            (&[("0.0.0.0/0", &["0.0.0.0/1"])], v4, "128.0.0.0-255.255.255.255"),
            (&[("0.0.0.0/0", &["128.0.0.0/1"])], v4, "0.0.0.0-127.255.255.255"),
            (
                &[("10.0.0.0/24", &["10.0.0.64/26", "10.0.0.8/32", "10.0.0.64/27"])],
                v4,
                "10.0.0.0-10.0.0.7 10.0.0.9-10.0.0.63 10.0.0.128-10.0.0.255",
            ),
            // What one block leaves out another may hold.
            (&[("10.0.0.0/24", &["10.0.0.0/25"]), ("10.0.0.64/26", &[])], v4, "10.0.0.64-10.0.0.255"),
            (&[("10.0.1.0/24", &[]), ("10.0.0.0/24", &[])], v4, "10.0.0.0-10.0.1.255"),
            (&[("::/0", &[])], v6, "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            (&[("fd00::/64", &["fd00::/65"])], v6, "fd00::8000:0:0:0-fd00::ffff:ffff:ffff:ffff"),
            (&[("nonsense", &[])], v4, ""),
        ] {
            assert_eq!(shown(blocks, family), expected, "{blocks:?}");
        }
    }
}
