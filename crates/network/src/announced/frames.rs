//! The packets that tell a link where an address is now: an ARP announcement (RFC 5227), an unsolicited neighbour advertisement
//! (RFC 4861, section 7.2.6). Whoever has another machine's Ethernet address for it replaces that.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType,
    addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque},
    sendto, socket_with,
};

type Mac = [u8; 6];

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const EVERYBODY: Mac = [0xff; 6];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: Mac = [0x33, 0x33, 0, 0, 0, 1];
const ICMPV6: u8 = 58;

/// Where a packet goes out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) index: i32,
    pub(super) mac: Mac,
}

/// `02:42:ac:11:00:02`
pub(super) fn mac(text: &str) -> Option<Mac> {
    let bytes: Vec<u8> = text.split(':').map(|it| u8::from_str_radix(it, 16)).collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok()
}

/// Tells everybody on the link that the address is at this machine.
pub(super) fn make_known(link: Link, address: IpAddr) -> io::Result<()> {
    let frame = match address {
        IpAddr::V4(it) => arp_announcement(link.mac, it),
        IpAddr::V6(it) => neighbour_advertisement(link.mac, it),
    };
    // Without a protocol it receives nothing.
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &frame, SendFlags::DONTWAIT, &LinkAddress::of(link))?;
    Ok(())
}

fn arp_announcement(mac: Mac, address: Ipv4Addr) -> Vec<u8> {
    let mut frame = ethernet(EVERYBODY, mac, ARP);
    // Ethernet, IPv4, their lengths, a request: who has asked for its own address.
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac);
    frame.extend(address.octets());
    frame.extend([0; 6]);
    frame.extend(address.octets());
    frame
}

fn neighbour_advertisement(mac: Mac, address: Ipv6Addr) -> Vec<u8> {
    const OVERRIDE: u8 = 0x20;
    const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
    let mut message = vec![136, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(address.octets());
    message.extend([TARGET_LINK_LAYER_ADDRESS, 1]);
    message.extend(mac);
    let length = u16::try_from(message.len()).unwrap_or_default();
    let mut pseudo_header = [address.octets(), ALL_NODES.octets()].concat();
    pseudo_header.extend(u32::from(length).to_be_bytes());
    pseudo_header.extend([0, 0, 0, ICMPV6]);
    let checksum = checksum(pseudo_header.iter().chain(&message).copied());
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = ethernet(ALL_NODES_MAC, mac, IPV6);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    // Of what has come through a router nobody believes it.
    frame.extend([ICMPV6, 255]);
    frame.extend(address.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(message);
    frame
}

fn ethernet(to: Mac, from: Mac, kind: u16) -> Vec<u8> {
    [&to[..], &from, &kind.to_be_bytes()].concat()
}

/// The complement of the sum of all pairs of bytes, of which there are no odd ones here.
fn checksum(bytes: impl Iterator<Item = u8>) -> u16 {
    let sum = bytes
        .enumerate()
        .fold(0_u32, |sum, (at, byte)| sum + if at % 2 == 0 { u32::from(byte) << 8 } else { u32::from(byte) });
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded).unwrap_or_default()
}

/// The kernel's `sockaddr_ll`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LinkAddress {
    family: u16,
    protocol: u16,
    index: i32,
    hardware_type: u16,
    packet_type: u8,
    length: u8,
    address: [u8; 8],
}

impl LinkAddress {
    fn of(link: Link) -> Self {
        Self {
            family: AddressFamily::PACKET.as_raw(),
            protocol: 0,
            index: link.index,
            hardware_type: 0,
            packet_type: 0,
            length: 6,
            address: [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
        }
    }
}

#[expect(unsafe_code, reason = "the kernel's own form of an address that rustix has no type for")]
// SAFETY: it is laid out as `sockaddr_ll`, all of it is initialized, and it outlives the call.
unsafe impl SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        f(std::ptr::from_ref(self).cast(), SocketAddrLen::try_from(size_of::<Self>()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|it| format!("{it:02x}")).collect()
    }

    #[test]
    fn packets_say_where_the_address_is() {
        let own = mac("02:42:ac:11:00:02").expect("an address of Ethernet");
        assert_eq!(
            hex(&arp_announcement(own, Ipv4Addr::new(10, 0, 0, 200))),
            "ffffffffffff0242ac1100020806\
             00010800060400010242ac1100020a0000c80000000000000a0000c8"
        );
        let advertisement = neighbour_advertisement(own, "fd00::200".parse().expect("an address"));
        assert_eq!(
            hex(&advertisement[..56]),
            "3333000000010242ac11000286dd\
             6000000000203afffd000000000000000000000000000200ff0200000000000000000000000000018800"
        );
        assert_eq!(
            hex(&advertisement[58..]),
            "20000000fd0000000000000000000000000002000201\
             0242ac110002"
        );
        // What is sent sums up to nothing.
        let sum = advertisement[22..54].iter().chain(&[0, 0, 0, 32, 0, 0, 0, ICMPV6]).chain(&advertisement[54..]);
        assert_eq!(checksum(sum.copied()), 0);
        assert_eq!(mac("00:00"), None);
    }
}
