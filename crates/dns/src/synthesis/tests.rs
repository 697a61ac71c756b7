use super::*;
use crate::{
    Cache, parse,
    reading::{
        relay,
        tests::{a, answered, asked, question},
    },
    tests::{name, query, shown},
};

fn reading(question: &Question, records: &[(u8, &str, u16, u32, Vec<u8>)]) -> Reading {
    let asked = asked(question);
    Reading::of(&answered(&asked, 0, records), &asked, question).expect("an answer")
}

fn way_to(address: Ipv4Addr) -> Option<Ipv6Addr> {
    (!address.is_loopback()).then(|| Ipv6Addr::from_bits(0x64 << 112 | u128::from(address.to_bits())))
}

#[test]
fn addresses_stand_for_those_that_there_are() {
    let wanted = question("www.example.test", AAAA);
    let instead = instead(&wanted).expect("it has one");
    let target = name("cdn.example.test").as_wire().to_vec();
    let answer = reading(
        &instead,
        &[
            (0, "www.example.test", CNAME, 50, target),
            (0, "cdn.example.test", A, 60, a(1)),
            (0, "cdn.example.test", A, 70, vec![127, 0, 0, 1]),
            (1, "example.test", 2, 70, name("ns.example.test").as_wire().to_vec()),
        ],
    );
    let made = answer.as_ipv6(&wanted, way_to).expect("one can be reached");
    assert_eq!((made.ttl, made.code, made.is_truncated), (50, NO_ERROR, false));
    let packet = query(7, "www.example.test", AAAA);
    let mut out = Vec::new();
    relay(&parse(&packet).expect("a query"), &made, 10, 512, &mut out);
    assert_eq!(
        shown(&out),
        ["NOERROR qr rd ra", "www.example.test. 40 CNAME cdn.example.test.", "cdn.example.test. 50 AAAA 64::c000:201",]
    );
    // It is kept as any other.
    let mut cache = Cache::new(1 << 20);
    cache.keep(&wanted, made.into(), 0);
    assert!(cache.find(&wanted, 49).is_some_and(|it| !it.is_stale));
}

#[test]
fn no_answer_is_longer_than_can_be_told() {
    let long = format!("{}.example.test", ["a"; 50].join(".").replace('a', "abc"));
    let wanted = question(&long, AAAA);
    let instead = instead(&wanted).expect("it has one");
    let records: Vec<_> = (0..4000_u32).map(|it| (0, &*long, A, 60, it.to_be_bytes().to_vec())).collect();
    let made = Reading::of(&answered(&asked(&instead), 0, &records), &asked(&instead), &instead).expect("an answer");
    let made = made.as_ipv6(&wanted, way_to).expect("they can be reached");
    assert!(made.len() <= TCP_BYTES_MAX && made.len() > TCP_BYTES_MAX - 100, "{}", made.len());
}

#[test]
fn nothing_stands_for_what_cannot_be_reached() {
    let wanted = question("www.example.test", AAAA);
    let instead = instead(&wanted).expect("it has one");
    for records in
        [&[][..], &[(0, "www.example.test", A, 60, vec![127, 0, 0, 1])], &[(0, "www.example.test", A, 60, vec![1])]]
    {
        assert!(reading(&instead, records).as_ipv6(&wanted, way_to).is_none(), "{records:?}");
    }
}

#[test]
fn a_name_lacks_ipv6_where_it_has_no_such_address() {
    let wanted = question("www.example.test", AAAA);
    let mapped = |last| [&MAPPED[..], &a(last)].concat();
    for (records, expected) in [
        (vec![], true),
        (vec![(0, "www.example.test", AAAA, 60, mapped(1))], true),
        (vec![(0, "www.example.test", AAAA, 60, mapped(1)), (0, "www.example.test", AAAA, 60, vec![0x20; 16])], false),
    ] {
        assert_eq!(reading(&wanted, &records).lacks_ipv6(), expected, "{records:?}");
    }
    let asked = asked(&wanted);
    let broken = Reading::of(&answered(&asked, 2, &[]), &asked, &wanted).expect("an answer");
    assert!(broken.lacks_ipv6(), "an error is no answer");
    let gone = Reading::of(&answered(&asked, 3, &[]), &asked, &wanted).expect("an answer");
    assert!(!gone.lacks_ipv6(), "there is no such name at all");
}

#[test]
fn who_checks_signatures_gets_what_was_signed() {
    for (qtype, dnssec_ok, checking_disabled, expected) in
        [(AAAA, false, false, true), (AAAA, true, false, true), (AAAA, true, true, false), (A, false, false, false)]
    {
        let question = Question { dnssec_ok, checking_disabled, ..question("www.example.test", qtype) };
        assert_eq!(instead(&question).map(|it| it.qtype), expected.then_some(A));
    }
}
