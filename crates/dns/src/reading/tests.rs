use super::*;
use crate::{
    numbers::{A, TXT},
    parse,
    tests::{name, query, shown, with_edns},
};

pub(crate) fn question(of: &str, qtype: u16) -> Question {
    Question { name: name(of), qtype, dnssec_ok: false, checking_disabled: false }
}

pub(crate) fn asked(question: &Question) -> Vec<u8> {
    let mut out = Vec::new();
    ask(question, 0x1234, &[0b1010_0101, 0b0101_1010], &mut out);
    out
}

/// A server's answer to that: a code, and records as section, owner, type, ttl and data.
pub(crate) fn answered(asked: &[u8], flags: u16, records: &[(u8, &str, u16, u32, Vec<u8>)]) -> Vec<u8> {
    let end = Name::skip(asked, HEADER).expect("a name") + 4;
    let mut packet = asked[..end].to_vec();
    put_word(&mut packet, 2, QR | RA | RD | flags);
    for section in 0..3 {
        let n = records.iter().filter(|it| usize::from(it.0) == section).count();
        put_word(&mut packet, 6 + 2 * section, u16::try_from(n).expect("few"));
    }
    for (_, owner, rtype, ttl, data) in records {
        packet.extend_from_slice(name(owner).as_wire());
        packet.extend_from_slice(&rtype.to_be_bytes());
        packet.extend_from_slice(&INTERNET.to_be_bytes());
        packet.extend_from_slice(&ttl.to_be_bytes());
        packet.extend_from_slice(&u16::try_from(data.len()).expect("short").to_be_bytes());
        packet.extend_from_slice(data);
    }
    packet
}

pub(crate) fn a(last: u8) -> Vec<u8> {
    vec![192, 0, 2, last]
}

fn soa(minimum: u32) -> Vec<u8> {
    let mut data = [name("ns.test").as_wire(), name("root.test").as_wire()].concat();
    for number in [1, 2, 3, 4, minimum] {
        data.extend_from_slice(&u32::to_be_bytes(number));
    }
    data
}

#[test]
fn only_the_answer_is_believed() {
    let question = question("www.example.test", A);
    let asked = asked(&question);
    let good = || answered(&asked, 0, &[(0, "www.example.test", A, 60, a(1))]);
    let with = |at: usize, byte: u8| {
        let mut packet = good();
        packet[at] = byte;
        packet
    };
    let lower = |mut packet: Vec<u8>| {
        packet[HEADER..HEADER + 18].make_ascii_lowercase();
        packet
    };
    for (what, packet, expected) in [
        ("the answer", good(), Ok(true)),
        ("in another case", lower(good()), Ok(false)),
        ("of another id", with(0, 0), Err(AnswerError::Foreign)),
        ("a query", with(2, 1), Err(AnswerError::Foreign)),
        ("of another kind", with(2, 0xa1), Err(AnswerError::Foreign)),
        ("to another name", with(14, b'x'), Err(AnswerError::Foreign)),
        ("to another type", with(HEADER + 18 + 1, 28), Err(AnswerError::Foreign)),
        ("to no question", with(5, 0), Err(AnswerError::Foreign)),
        ("a stump", good()[..20].to_vec(), Err(AnswerError::Foreign)),
        (
            "with a name made of a TTL",
            {
                let mut packet = answered(&asked, 0, &[(0, "www.example.test", A, 0x0161_0000, a(1))]);
                let ttl = u8::try_from(packet.len() - 10).expect("a short packet");
                packet[7] = 2;
                packet.extend_from_slice(&[0xc0, ttl, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 2]);
                packet
            },
            Err(AnswerError::Malformed),
        ),
        ("cut off", good()[..good().len() - 1].to_vec(), Err(AnswerError::Malformed)),
        ("with fewer records than it says", with(7, 2), Err(AnswerError::Malformed)),
    ] {
        assert_eq!(Reading::of(&packet, &asked, &question).map(|it| it.is_echo), expected, "{what}");
    }
}

#[test]
fn how_long_an_answer_holds() {
    const ALIAS: u16 = CNAME;
    let of = "www.example.test";
    let target = || name("host.test").as_wire().to_vec();
    for (what, flags, records, expected) in [
        ("the shortest of all", 0, vec![(0, of, A, 60, a(1)), (0, of, A, 20, a(2))], 20),
        ("with its alias", 0, vec![(0, of, ALIAS, 10, target()), (0, "host.test", A, 20, a(2))], 10),
        ("not for ever", 0, vec![(0, of, A, 86400, a(1))], TTL_MAX),
        ("a number that is none", 0, vec![(0, of, A, 0x8000_0001, a(1))], 0),
        ("what rides along does not count", 0, vec![(0, of, A, 60, a(1)), (2, "x.test", A, 1, a(1))], 60),
        ("no such name", NX_DOMAIN, vec![(1, "test", SOA, 25, soa(900))], 25),
        ("the SOA's minimum", NX_DOMAIN, vec![(1, "test", SOA, 900, soa(7))], 7),
        ("not for long", NX_DOMAIN, vec![(1, "test", SOA, 900, soa(900))], NEGATIVE_TTL_MAX),
        ("nothing of this type", 0, vec![(1, "test", SOA, 25, soa(900))], 25),
        ("an alias of nothing", 0, vec![(0, of, ALIAS, 10, target()), (1, "test", SOA, 25, soa(900))], 10),
        ("nobody says how long", NX_DOMAIN, vec![], 0),
        ("nobody says how long there is nothing", 0, vec![], 0),
        ("a failure", SERVER_FAILURE, vec![(1, "test", SOA, 25, soa(900))], 0),
        ("half an answer", TC, vec![(0, of, A, 60, a(1))], 0),
    ] {
        let question = question(of, A);
        let asked = asked(&question);
        let reading = Reading::of(&answered(&asked, flags, &records), &asked, &question).expect("an answer");
        assert_eq!(reading.ttl, expected, "{what}");
    }
}

/// What a client that asked so is told.
fn relayed(reading: &Reading, packet: &[u8], age: u32, limit: usize) -> Vec<String> {
    let mut out = Vec::new();
    let query = parse(packet).expect("a query");
    relay(&query, reading, age, limit, &mut out);
    assert!(out.len() <= limit && out[..2] == packet[..2]);
    assert_eq!(out[HEADER..query.question_bytes().len() + HEADER], *query.question_bytes());
    shown(&out)
}

#[test]
fn an_answer_is_passed_on_as_it_came() {
    let question = question("www.example.test", A);
    let asked = asked(&question);
    let mut packet = answered(
        &asked,
        AA | AD,
        &[
            (0, "www.example.test", A, 60, a(1)),
            (0, "www.example.test", A, 60, a(2)),
            (1, "example.test", NS, 5, name("ns.test").as_wire().to_vec()),
        ],
    );
    // What stands behind EDNS's record stays away with it.
    put_word(&mut packet, 10, 2);
    crate::numbers::write_opt(&mut packet, NO_ERROR, false);
    packet.extend_from_slice(&[1, b'x', 0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4]);
    let reading = Reading::of(&packet, &asked, &question).expect("an answer");
    let client = query(7, "WWW.example.test", A);
    let records = |ttl: u32, ns: u32| {
        vec![
            format!("www.example.test. {ttl} A 192.0.2.1"),
            format!("www.example.test. {ttl} A 192.0.2.2"),
            format!("authority example.test. {ns} NS ns.test."),
        ]
    };
    let all = |head: &str, rest: Vec<String>| [vec![head.to_owned()], rest].concat();
    assert_eq!(relayed(&reading, &client, 0, 512), all("NOERROR qr rd ra", records(60, 5)));
    assert_eq!(relayed(&reading, &client, 10, 512), all("NOERROR qr rd ra", records(50, 0)));
    assert_eq!(
        relayed(&reading, &with_edns(client.clone(), 1232, false), 0, 512),
        all("NOERROR qr rd ra edns=1232", records(60, 5))
    );
    assert_eq!(
        relayed(&reading, &with_edns(client.clone(), 1232, true), 0, 512),
        all("NOERROR qr rd ra ad edns=1232", records(60, 5)),
        "that it is proven is told those who ask for proofs"
    );
    // Too long: first what is not the answer goes, without a word; then the answer, with one.
    let (one, two) = (reading.records[0].end, reading.records[1].end);
    assert_eq!(relayed(&reading, &client, 0, two), all("NOERROR qr rd ra", records(60, 5)[..2].to_vec()));
    assert_eq!(relayed(&reading, &client, 0, one), all("NOERROR qr tc rd ra", records(60, 5)[..1].to_vec()));
    assert_eq!(relayed(&reading, &client, 0, one - 1), ["NOERROR qr tc rd ra"]);
}

#[test]
fn codes_that_need_edns_are_failures_without_it() {
    let question = question("www.example.test", A);
    let asked = asked(&question);
    let mut packet = answered(&asked, 0, &[]);
    put_word(&mut packet, 10, 1);
    crate::numbers::write_opt(&mut packet, crate::numbers::BAD_VERSION, false);
    let reading = Reading::of(&packet, &asked, &question).expect("an answer");
    let client = query(7, "www.example.test", A);
    assert_eq!(relayed(&reading, &client, 0, 512), ["SERVFAIL qr rd ra"]);
    assert_eq!(relayed(&reading, &with_edns(client, 512, false), 0, 512), ["NOERROR qr rd ra edns=1232 upper=1"]);
}

#[test]
fn an_alias_is_answered_with_what_it_stands_for() {
    let (asked_name, target) = ("out.shop.svc.cluster.local", name("www.example.test"));
    let question = Question { name: target, ..question(asked_name, A) };
    let asked = asked(&question);
    let client = query(7, asked_name, A);
    let told = |packet: &[u8], aliases: &[Name], age| {
        let reading = Reading::of(packet, &asked, &question).expect("an answer");
        let mut out = Vec::new();
        crate::chased(&parse(&client).expect("a query"), aliases, &reading, age, 512, &mut out);
        shown(&out)
    };
    // The names in it point into the packet they came in.
    let pointer = vec![0xc0, u8::try_from(HEADER).expect("twelve")];
    let packet = answered(
        &asked,
        0,
        &[
            (0, "www.example.test", CNAME, 60, [vec![4], b"host".to_vec(), vec![0xc0, 12 + 4]].concat()),
            (0, "host.example.test", A, 20, a(9)),
            (1, "x.test", NS, 1, pointer),
        ],
    );
    assert_eq!(
        told(&packet, &[target], 5),
        [
            "NOERROR qr aa rd ra",
            "out.shop.svc.cluster.local. 30 CNAME www.example.test.",
            "www.example.test. 55 CNAME host.example.test.",
            "host.example.test. 15 A 192.0.2.9",
        ]
    );
    let gone = answered(&asked, NX_DOMAIN, &[(1, "test", SOA, 25, soa(900))]);
    assert_eq!(
        told(&gone, &[name("two.shop.svc.cluster.local"), target], 0),
        [
            "NXDOMAIN qr aa rd ra",
            "out.shop.svc.cluster.local. 30 CNAME two.shop.svc.cluster.local.",
            "two.shop.svc.cluster.local. 30 CNAME www.example.test.",
            "authority test. 25 SOA ns.test. root.test. * 2 3 4 900",
        ]
    );
}

#[test]
fn a_question_is_asked_in_odd_letters() {
    let question = Question { dnssec_ok: true, checking_disabled: true, ..question("www.example.test", TXT) };
    let packet = asked(&question);
    let query = parse(&packet).expect("a query");
    assert_eq!(query.question, question, "and is the same question");
    let text = String::from_utf8_lossy(query.question_bytes()).into_owned();
    assert!(text.contains(char::is_uppercase) && text.contains(char::is_lowercase), "{text:?}");
    assert_eq!(query.edns.map(|it| it.dnssec_ok), Some(true));
}
