//! Ranges of IPv6 that are nobody else's: out of a prefix that is drawn at random (RFC 4193, section 3.2), so that clusters which are
//! joined one day do not meet.
//!
//! ```text
//! fdXX:XXXX:XXXX:0001::/112   Services
//! fdXX:XXXX:XXXX:0100::/56    Pods
//! ```

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use corten_api::cluster_network::{CLUSTER_CIDR, SERVICE_RANGE};
use corten_meta::address::Cidr;

/// In the place of a range.
const DRAWN: &str = "ula";

/// The 40 bits of a prefix.
#[derive(Clone, Copy)]
pub(super) struct GlobalId(pub(super) [u8; 5]);

impl GlobalId {
    pub(super) fn drawn() -> Self {
        let [a, b, c, d, e, ..] = uuid::Uuid::new_v4().into_bytes();
        Self([a, b, c, d, e])
    }

    fn range(self, subnet: u16, bits: u8) -> String {
        let [a, b, c, d, e] = self.0.map(u16::from);
        let address = Ipv6Addr::new(0xfd00 | a, b << 8 | c, d << 8 | e, subnet, 0, 0, 0, 0);
        Cidr::new(IpAddr::V6(address), bits).to_string()
    }

    /// The options, with ranges of this prefix where one is to be drawn.
    pub(super) fn into(self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        replaced(given, |name| if name == CLUSTER_CIDR { self.range(0x100, 56) } else { self.range(1, 112) })
    }
}

/// The options, with what the cluster has where one was to be drawn; a cluster whose range is not of that kind has another one.
pub(super) fn as_drawn_before(
    given: &BTreeMap<String, String>,
    kept: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    replaced(given, |name| {
        let ranges = kept.get(name).map(String::as_str).unwrap_or_default().split(',');
        let mut ranges = ranges.filter(|it| it.starts_with("fd"));
        ranges.next().unwrap_or(DRAWN).to_owned()
    })
}

fn replaced(given: &BTreeMap<String, String>, range: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let replace = |(name, text): (&String, &String)| {
        let is_range = [CLUSTER_CIDR, SERVICE_RANGE].contains(&name.as_str());
        let word = |it: &str| if is_range && it.trim() == DRAWN { range(name) } else { it.to_owned() };
        (name.clone(), text.split(',').map(word).collect::<Vec<_>>().join(","))
    };
    given.iter().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use corten_api::cluster_network::ClusterNetwork;

    use super::*;

    fn given(options: &[(&str, &str)]) -> BTreeMap<String, String> {
        options.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
    }

    #[test]
    fn ranges_of_a_prefix_make_a_cluster() {
        let id = GlobalId([0x12, 0x34, 0x56, 0x78, 0x9a]);
        for (pods, services, expected_pods, expected_services) in [
            ("ula", "ula", "fd12:3456:789a:100::/56", "fd12:3456:789a:1::/112"),
            (
                "10.1.0.0/16, ula",
                "10.2.0.0/16,ula",
                "10.1.0.0/16,fd12:3456:789a:100::/56",
                "10.2.0.0/16,fd12:3456:789a:1::/112",
            ),
        ] {
            let settings = id.into(&given(&[(CLUSTER_CIDR, pods), (SERVICE_RANGE, services)]));
            let network = ClusterNetwork::of(&settings).expect("good ranges").settings();
            assert_eq!((&*network[CLUSTER_CIDR], &*network[SERVICE_RANGE]), (expected_pods, expected_services));
            let again = as_drawn_before(&given(&[(CLUSTER_CIDR, pods)]), &network);
            assert_eq!(again[CLUSTER_CIDR].replace(' ', ""), expected_pods);
        }
        let other = as_drawn_before(&given(&[(CLUSTER_CIDR, "ula")]), &given(&[(CLUSTER_CIDR, "2001:db8::/56")]));
        assert_eq!(other[CLUSTER_CIDR], "ula", "the cluster has another range");
        assert_ne!(GlobalId::drawn().0, GlobalId::drawn().0);
    }
}
