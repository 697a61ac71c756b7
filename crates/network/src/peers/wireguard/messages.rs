//! What the kernel's WireGuard is asked, and what it answers: `linux/wireguard.h`, over generic netlink, which gives each family a
//! number of its own when the kernel starts.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use corten_meta::address::Cidr;
use corten_proxy::{PeerChange, PresentPeer, PublicKey};
use rustix::net::netlink::GENERIC;

use crate::netlink::{self, ACK, Bytes, DUMP, attributes};

const FAMILY: &str = "wireguard";
/// The family that knows the others, and its command and attributes.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const GET_DEVICE: u8 = 0;
const SET_DEVICE: u8 = 1;
const VERSION: u8 = 1;

const DEVICE_NAME: u16 = 2;
const DEVICE_PRIVATE_KEY: u16 = 3;
const DEVICE_PUBLIC_KEY: u16 = 4;
const DEVICE_PORT: u16 = 6;
const DEVICE_PEERS: u16 = 8;

const PEER_PUBLIC_KEY: u16 = 1;
const PEER_FLAGS: u16 = 3;
const PEER_ENDPOINT: u16 = 4;
const PEER_RANGES: u16 = 9;
const REMOVE: u32 = 1;
const REPLACE_RANGES: u32 = 2;
/// A peer that has gone meanwhile is not made again.
const UPDATE_ONLY: u32 = 4;

const RANGE_FAMILY: u16 = 1;
const RANGE_ADDRESS: u16 = 2;
const RANGE_BITS: u16 = 3;

const IPV4: u16 = 2;
const IPV6: u16 = 10;

/// `ENODEV` and `ENOENT`: there is no such device, no such family.
const NO_DEVICE: i32 = 19;
const NO_ENTRY: i32 = 2;

/// This node's own. Not shown, wherever it may come to stand.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PrivateKey([u8; 32]);

impl PrivateKey {
    /// Bits that no key of this curve has are cleared, as the kernel does it.
    pub(super) fn new(mut bytes: [u8; 32]) -> Self {
        bytes[0] &= 0xf8;
        bytes[31] = (bytes[31] & 0x7f) | 0x40;
        Self(bytes)
    }

    /// As its file has it, and as WireGuard's own tools do.
    pub(super) fn text(&self) -> String {
        PublicKey(self.0).to_string()
    }
}

/// A device, as the kernel has it.
#[derive(Default)]
pub(super) struct Device {
    private_key: Option<PrivateKey>,
    pub(super) public_key: Option<PublicKey>,
    port: u16,
    pub(super) peers: BTreeMap<PublicKey, PresentPeer>,
}

impl Device {
    pub(super) fn is_set(&self, key: &PrivateKey, port: u16) -> bool {
        self.private_key.as_ref() == Some(key) && self.port == port
    }

    /// One message: of many peers there are several, and a peer whose ranges did not all fit goes on in the next.
    fn take(&mut self, body: &[u8]) {
        for (kind, value) in attributes(body) {
            match kind {
                DEVICE_PRIVATE_KEY => self.private_key = value.try_into().ok().map(PrivateKey),
                DEVICE_PUBLIC_KEY => self.public_key = value.try_into().ok().map(PublicKey),
                DEVICE_PORT => self.port = short(value).unwrap_or_default(),
                DEVICE_PEERS => attributes(value).for_each(|it| self.take_peer(it.1)),
                _ => {}
            }
        }
    }

    fn take_peer(&mut self, body: &[u8]) {
        let find = |kind: u16| attributes(body).find(|it| it.0 == kind).map(|it| it.1);
        let Some(key) = find(PEER_PUBLIC_KEY).and_then(|it| it.try_into().ok()).map(PublicKey) else { return };
        let peer = self.peers.entry(key).or_default();
        peer.endpoint = peer.endpoint.or(find(PEER_ENDPOINT).and_then(endpoint));
        peer.ranges.extend(attributes(find(PEER_RANGES).unwrap_or_default()).filter_map(|it| range(it.1)));
    }
}

/// Speaks to the kernel's WireGuard. Blocking, with a deadline.
pub(super) struct Socket {
    socket: netlink::Socket,
    family: u16,
}

impl Socket {
    /// `None`: the kernel has no WireGuard. It loads the module where it is one.
    pub(super) fn open() -> io::Result<Option<Self>> {
        let mut socket = netlink::Socket::open(GENERIC)?;
        Ok(family(&mut socket, FAMILY)?.map(|family| Self { socket, family }))
    }

    /// `None`: there is no such device.
    pub(super) fn device(&mut self, name: &str) -> io::Result<Option<Device>> {
        let mut device = Device::default();
        match self.socket.ask(&get_device(self.family, name), |it| device.take(it)) {
            Err(error) if error.raw_os_error() == Some(NO_DEVICE) => Ok(None),
            other => other.map(|()| Some(device)),
        }
    }

    pub(super) fn set_device(&mut self, name: &str, key: &PrivateKey, port: u16) -> io::Result<()> {
        self.socket.ask(&set_device(self.family, name, key, port), |_| {})
    }

    pub(super) fn set_peers(&mut self, name: &str, changes: &[PeerChange]) -> io::Result<()> {
        self.socket.ask(&set_peers(self.family, name, changes), |_| {})
    }
}

/// The number that a family of generic netlink has; `None`: there is none of this name.
fn family(socket: &mut netlink::Socket, name: &str) -> io::Result<Option<u16>> {
    let mut bytes = Bytes::default();
    bytes.framed(CONTROL, ACK, 1, [GET_FAMILY, VERSION, 0, 0], |it| it.text(FAMILY_NAME, name));
    let mut id = None;
    let asked = socket.ask(&bytes.0, |body| {
        id = attributes(body).find(|it| it.0 == FAMILY_ID).and_then(|it| short(it.1)).or(id);
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(NO_ENTRY) => Ok(None),
        other => other.map(|()| id),
    }
}

fn get_device(family: u16, name: &str) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.framed(family, DUMP, 1, [GET_DEVICE, VERSION, 0, 0], |it| it.text(DEVICE_NAME, name));
    bytes.0
}

fn set_device(family: u16, name: &str, key: &PrivateKey, port: u16) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.framed(family, ACK, 1, [SET_DEVICE, VERSION, 0, 0], |it| {
        it.text(DEVICE_NAME, name);
        it.attribute(DEVICE_PRIVATE_KEY, &key.0);
        it.attribute(DEVICE_PORT, &port.to_ne_bytes());
    });
    bytes.0
}

fn set_peers(family: u16, name: &str, changes: &[PeerChange]) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.framed(family, ACK, 1, [SET_DEVICE, VERSION, 0, 0], |it| {
        it.text(DEVICE_NAME, name);
        it.nest(DEVICE_PEERS, |it| changes.iter().for_each(|change| it.nest(0, |it| put_peer(it, change))));
    });
    bytes.0
}

fn put_peer(bytes: &mut Bytes, change: &PeerChange) {
    let (key, endpoint, ranges, flags) = match change {
        PeerChange::Remove(key) => (key, &None, &None, REMOVE),
        PeerChange::Set { key, endpoint, ranges } => {
            (key, endpoint, ranges, if ranges.is_some() { REPLACE_RANGES } else { UPDATE_ONLY })
        }
    };
    bytes.attribute(PEER_PUBLIC_KEY, &key.0);
    bytes.attribute(PEER_FLAGS, &flags.to_ne_bytes());
    if let Some(endpoint) = endpoint {
        bytes.attribute(PEER_ENDPOINT, &socket_address(*endpoint));
    }
    if let Some(ranges) = ranges {
        bytes.nest(PEER_RANGES, |it| ranges.iter().for_each(|range| it.nest(0, |it| put_range(it, range))));
    }
}

fn put_range(bytes: &mut Bytes, range: &Cidr) {
    match range.address {
        IpAddr::V4(address) => {
            bytes.attribute(RANGE_FAMILY, &IPV4.to_ne_bytes());
            bytes.attribute(RANGE_ADDRESS, &address.octets());
        }
        IpAddr::V6(address) => {
            bytes.attribute(RANGE_FAMILY, &IPV6.to_ne_bytes());
            bytes.attribute(RANGE_ADDRESS, &address.octets());
        }
    }
    bytes.attribute(RANGE_BITS, &[range.bits]);
}

/// `struct sockaddr_in` or `sockaddr_in6`.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(it) => [&IPV4.to_ne_bytes()[..], &port, &it.octets(), &[0; 8]].concat(),
        IpAddr::V6(it) => [&IPV6.to_ne_bytes()[..], &port, &[0; 4], &it.octets(), &[0; 4]].concat(),
    }
}

fn endpoint(value: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*value.get(2..)?.first_chunk()?);
    let address = match short(value)? {
        IPV4 => Ipv4Addr::from(*value.get(4..)?.first_chunk::<4>()?).into(),
        IPV6 => Ipv6Addr::from(*value.get(8..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

fn range(body: &[u8]) -> Option<Cidr> {
    let find = |kind: u16| attributes(body).find(|it| it.0 == kind).map(|it| it.1);
    let (address, bits) = (find(RANGE_ADDRESS)?, *find(RANGE_BITS)?.first()?);
    let address: IpAddr = match short(find(RANGE_FAMILY)?)? {
        IPV4 => Ipv4Addr::from(*address.first_chunk::<4>()?).into(),
        IPV6 => Ipv6Addr::from(*address.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(Cidr::new(address, bits))
}

fn short(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|it| u16::from_ne_bytes(*it))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::netlink::answers;

    /// Bytes as two digits each, a gap where one likes.
    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |it: &[u8]| u8::from_str_radix(std::str::from_utf8(it).expect("digits"), 16).expect("two digits");
        digits.chunks(2).map(byte).collect()
    }

    fn ranges(texts: &[&str]) -> BTreeSet<Cidr> {
        texts.iter().filter_map(|it| Cidr::parse(it)).collect()
    }

    const TWOS: &str = "2222222222222222222222222222222222222222222222222222222222222222";
    const THREES: &str = "3333333333333333333333333333333333333333333333333333333333333333";

    // The kernel's numbers have this machine's order of bytes.
    #[cfg(target_endian = "little")]
    #[test]
    fn a_device_is_told_its_key_and_port() {
        let expected = hex(&format!(
            "4c000000 1e00 0500 01000000 00000000  01 01 0000 \
             0900 0200 63776730 00 000000 \
             2400 0300 {key} \
             0600 0600 6cca 0000",
            key = "2020202020202020202020202020202020202020202020202020202020202060"
        ));
        let key = PrivateKey::new([0x20; 32]);
        assert_eq!(set_device(0x1e, "cwg0", &key, 51820), expected);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn peers_are_set_and_removed() {
        let changes = [
            PeerChange::Remove(PublicKey([0x33; 32])),
            PeerChange::Set {
                key: PublicKey([0x22; 32]),
                endpoint: Some(([192, 0, 2, 7], 51820).into()),
                ranges: Some(ranges(&["10.244.1.0/24", "fd00:10:244:1::/64"])),
            },
            PeerChange::Set { key: PublicKey([0x22; 32]), endpoint: "[fd00::7]:51820".parse().ok(), ranges: None },
        ];
        let expected = hex(&format!(
            "30010000 1e00 0500 01000000 00000000  01 01 0000 \
             0900 0200 63776730 00 000000 \
             1001 0880 \
               3000 0080 2400 0100 {THREES} 0800 0300 01000000 \
               8c00 0080 2400 0100 {TWOS} 0800 0300 02000000 \
                 1400 0400 0200 ca6c c0000207 0000000000000000 \
                 4800 0980 \
                   1c00 0080 0600 0100 0200 0000 0800 0200 0af40100 0500 0300 18 000000 \
                   2800 0080 0600 0100 0a00 0000 1400 0200 fd000010024400010000000000000000 0500 0300 40 000000 \
               5000 0080 2400 0100 {TWOS} 0800 0300 04000000 \
                 2000 0400 0a00 ca6c 00000000 fd000000000000000000000000000007 00000000"
        ));
        let said = set_peers(0x1e, "cwg0", &changes);
        assert_eq!(said, expected);
        assert_eq!(answers(&said).map(|it| it.kind).collect::<Vec<_>>(), [0x1e]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_device_is_asked_for_as_a_whole() {
        let expected = hex("20000000 1e00 0103 01000000 00000000  00 01 0000  0900 0200 63776730 00 000000");
        assert_eq!(get_device(0x1e, "cwg0"), expected);
    }

    #[test]
    fn what_was_set_is_read_again_also_from_several_messages() {
        let set = |range: &str| PeerChange::Set {
            key: PublicKey([0x22; 32]),
            endpoint: Some(([192, 0, 2, 7], 51820).into()),
            ranges: Some(ranges(&[range])),
        };
        let key = PrivateKey::new([0x20; 32]);
        let mut device = Device::default();
        for message in [
            set_device(0x1e, "cwg0", &key, 51820),
            set_peers(0x1e, "cwg0", &[set("10.244.1.0/24"), PeerChange::Remove(PublicKey([0x33; 32]))]),
            set_peers(0x1e, "cwg0", &[set("fd00:10:244:1::/64")]),
        ] {
            answers(&message).for_each(|it| device.take(it.body.get(4..).unwrap_or_default()));
        }
        assert!(device.is_set(&key, 51820) && !device.is_set(&key, 1));
        let both = ranges(&["10.244.1.0/24", "fd00:10:244:1::/64"]);
        let two = PresentPeer { endpoint: Some(([192, 0, 2, 7], 51820).into()), ranges: both };
        let expected = [(PublicKey([0x22; 32]), two), (PublicKey([0x33; 32]), PresentPeer::default())];
        assert_eq!(device.peers, BTreeMap::from(expected));
        // What does not add up is left out.
        for garbage in [&[][..], &[1], &[4, 0, 8, 128, 9, 0, 0, 0, 1], &[255; 64]] {
            Device::default().take(garbage);
        }
        let address = "[fd00::7]:51820".parse().expect("an address");
        assert_eq!(endpoint(&socket_address(address)), Some(address));
        assert_eq!(endpoint(&[2, 0, 1]), None);
    }

    #[test]
    fn a_family_is_found_by_its_name() {
        let mut socket = netlink::Socket::open(GENERIC).expect("a socket");
        // The one that is asked knows itself.
        assert_eq!(family(&mut socket, "nlctrl").expect("an answer"), Some(CONTROL));
        assert_eq!(family(&mut socket, "corten-none").expect("an answer"), None);
    }
}
