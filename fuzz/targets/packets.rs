//! Packets of Pods, and of whoever answers them, on their way between IPv6 and IPv4.

#![no_main]

use corten_nat64::{Ends, Translator};
use libfuzzer_sys::fuzz_target;

const MTU: usize = 1500;
/// As long as a packet may be.
const FITS: usize = 65_535;

fuzz_target!(|data: &[u8]| {
    let mut packet = data[..data.len().min(FITS)].to_vec();
    put_right(&mut packet);
    let mut sent = Vec::new();
    Translator::new(Ends::LOCAL, MTU).translate(&packet, |it| sent.push(it.to_vec()));
    for it in &sent {
        match it[0] >> 4 {
            6 => {
                assert!(it.len() <= MTU && usize::from(u16::from_be_bytes([it[4], it[5]])) == it.len() - 40);
                assert_eq!(it[24..40], Ends::LOCAL.inside.octets(), "for the Pods of this machine alone");
            }
            _ => {
                assert_eq!((it[0], usize::from(u16::from_be_bytes([it[2], it[3]]))), (0x45, it.len()));
                assert_eq!(it[12..16], Ends::LOCAL.outside.octets(), "from nobody else");
                assert!(![0, 127, 169].contains(&it[16]) && it[16] < 224 || it[16] == 169 && it[17] != 254);
                assert_ne!(it[16..20], Ends::LOCAL.outside.octets(), "not to itself");
            }
        }
    }
});

/// Gives it what no packet is looked at without: a version, a length, the right ends, and the checksum of the header.
fn put_right(packet: &mut [u8]) {
    let length = packet.len();
    if length < 40 {
        return;
    }
    if packet[0] & 0x80 == 0 {
        packet[0] = 0x45 + (packet[0] & 3);
        packet[2..4].copy_from_slice(&u16::try_from(length).expect("it fits").to_be_bytes());
        packet[16..20].copy_from_slice(&Ends::LOCAL.outside.octets());
        packet[10..12].fill(0);
        let header = usize::from(packet[0] & 0xf) * 4;
        let words = packet[..header].chunks(2).map(|it| u32::from(u16::from_be_bytes([it[0], it[1]])));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let checksum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("it is folded");
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&u16::try_from(length - 40).expect("it fits").to_be_bytes());
        packet[8..24].copy_from_slice(&Ends::LOCAL.inside.octets());
        packet[24..36].copy_from_slice(&Ends::LOCAL.prefix.octets()[..12]);
    }
}
