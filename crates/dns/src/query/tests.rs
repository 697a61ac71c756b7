use proptest::prelude::*;

use super::*;
use crate::{
    Keeper, answer,
    tests::{name, query, shown, with_edns},
};

/// A good query with some bytes changed: `(at, byte)`.
fn changed(mut packet: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    for (at, byte) in changes {
        packet[*at] = *byte;
    }
    packet
}

#[test]
fn who_asks_badly_is_told_so() {
    let good = || query(7, "web.shop", 1);
    let opt = good().len();
    let end = opt + 11;
    let silence = Err(Rejected::Silence);
    let wrong = Err(Rejected::Code(FORMAT_ERROR));
    for (what, packet, expected) in [
        ("a good one", good(), Ok(())),
        ("with EDNS", with_edns(good(), 4096, true), Ok(())),
        ("nothing", Vec::new(), silence),
        ("half a header", good()[..11].to_vec(), silence),
        ("an answer", changed(good(), &[(2, 0x81)]), silence),
        ("an update", changed(good(), &[(2, 0x28)]), Err(Rejected::Code(NOT_IMPLEMENTED))),
        ("a notification", changed(good(), &[(2, 0x20)]), Err(Rejected::Code(NOT_IMPLEMENTED))),
        ("no question", changed(good(), &[(5, 0)]), wrong),
        ("two questions", changed(good(), &[(5, 2)]), wrong),
        ("a question cut off", good()[..opt - 1].to_vec(), wrong),
        ("a name cut off", good()[..14].to_vec(), wrong),
        ("a name that points", changed(good(), &[(12, 0xc0), (13, 0)]), wrong),
        ("an unknown label", changed(good(), &[(12, 0x43)]), wrong),
        ("a record that is not there", changed(good(), &[(11, 1)]), wrong),
        ("EDNS cut off", with_edns(good(), 512, false)[..end - 1].to_vec(), wrong),
        ("EDNS with a name", changed(with_edns(good(), 512, false), &[(opt, 1)]), wrong),
        ("EDNS twice", with_edns(with_edns(good(), 512, false), 512, false), wrong),
        ("EDNS among the answers", changed(with_edns(good(), 512, false), &[(7, 1), (11, 0)]), wrong),
        (
            "EDNS of a version to come",
            changed(with_edns(good(), 512, false), &[(opt + 6, 1)]),
            Err(Rejected::Code(BAD_VERSION)),
        ),
        ("data longer than the packet", changed(with_edns(good(), 512, false), &[(end - 1, 9)]), wrong),
    ] {
        assert_eq!(parse(&packet).map(drop), expected, "{what}");
    }
}

#[test]
fn what_is_no_query_gets_a_header_and_no_more() {
    let packet = query(0x0102, "web.shop", 1);
    let mut out = Vec::new();
    for (code, expected) in [
        (FORMAT_ERROR, "FORMERR qr rd ra"),
        (NOT_IMPLEMENTED, "NOTIMP qr rd ra"),
        (crate::REFUSED, "REFUSED qr rd ra"),
        (BAD_VERSION, "NOERROR qr rd ra edns=1232 upper=1"),
    ] {
        reject(&packet, code, &mut out);
        assert_eq!(shown(&out), [expected]);
        assert_eq!(out[..2], [1, 2], "the id comes back");
        assert!(out.len() <= packet.len());
    }
    reject(b"\x01", FORMAT_ERROR, &mut out);
    assert!(out.is_empty());
}

#[test]
fn how_long_an_answer_may_be() {
    for (payload, expected) in
        [(None, 512), (Some(0), 512), (Some(600), 600), (Some(1232), 1232), (Some(u16::MAX), 1232)]
    {
        let edns = payload.map(|payload| Edns { payload, dnssec_ok: false });
        assert_eq!(udp_limit(edns), expected, "{payload:?}");
    }
}

proptest! {
    /// Whatever comes is read or refused, and its answer keeps within the limit and is a message.
    #[test]
    fn anything_can_come(packet in proptest::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
        let packet = if head { [&query(7, "a.svc.cluster.local", 1)[..12], &packet].concat() } else { packet };
        if let Ok(query) = parse(&packet) {
            let mut out = Vec::new();
            let zone = Keeper::new(name("cluster.local")).zone();
            answer(&query, &zone, 0, query.udp_limit(), &mut out);
            prop_assert!(out.len() <= query.udp_limit());
        }
    }
}
