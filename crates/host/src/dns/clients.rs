//! Who may ask: this machine, and the networks of Pods.

use std::net::IpAddr;

use corten_network::is_of_this_machine;

use super::IsPeer;

/// Addresses by their first bits.
pub(super) struct Clients {
    networks: Vec<(IpAddr, u32)>,
    is_peer: IsPeer,
}

impl Clients {
    /// `networks` are written as `10.244.0.0/24`; what is none admits nobody.
    pub(super) fn new(networks: &[String], is_peer: IsPeer) -> Self {
        let network = |text: &String| {
            let (address, bits) = text.split_once('/')?;
            Some((address.parse().ok()?, bits.parse().ok()?))
        };
        Self { networks: networks.iter().filter_map(network).collect(), is_peer }
    }

    /// A Pod of another node comes with that node's address, where it does not come through the tunnel. A machine of several
    /// interfaces asks from the address of its default route, whichever of them the Node has.
    pub(super) fn admit(&self, from: IpAddr) -> bool {
        from.is_loopback()
            || self.networks.iter().any(|it| is_within(from, *it))
            || is_of_this_machine(from)
            || (self.is_peer)(from)
    }
}

fn is_within(address: IpAddr, (network, bits): (IpAddr, u32)) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => (address.to_bits() ^ network.to_bits()).leading_zeros(),
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits() ^ network.to_bits()).leading_zeros(),
        _ => return false,
    };
    differ >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_the_node_may_ask() {
        let networks = ["10.244.0.0/24".to_owned(), "fd00:244::/64".to_owned(), "nonsense".to_owned()];
        let another: IpAddr = "192.0.2.20".parse().expect("an address");
        let clients = Clients::new(&networks, Box::new(move |it| it == another));
        assert!(corten_network::addresses().into_iter().all(|it| clients.admit(it)));
        for (from, expected) in [
            ("10.244.0.255", true),
            ("10.244.1.0", false),
            ("fd00:244::5", true),
            ("fd00:244:0:1::5", false),
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.10", false),
            ("192.0.2.20", true),
        ] {
            assert_eq!(clients.admit(from.parse().expect("an address")), expected, "{from}");
        }
    }
}
