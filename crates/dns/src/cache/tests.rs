use super::*;
use crate::{
    Name,
    numbers::{A, INTERNET, QR, put_word},
    tests::query,
};

fn question(idx: usize) -> Question {
    let name = Name::parse(&format!("n{idx}.test")).expect("a name");
    Question { name, qtype: A, dnssec_ok: false, checking_disabled: false }
}

fn reading(idx: usize, ttl: u32) -> Arc<Reading> {
    let asked = query(7, &format!("n{idx}.test"), A);
    let mut packet = asked.clone();
    put_word(&mut packet, 2, QR);
    put_word(&mut packet, 6, 1);
    packet.extend_from_slice(&[0xc0, 12, 0, 1]);
    packet.extend_from_slice(&INTERNET.to_be_bytes());
    packet.extend_from_slice(&ttl.to_be_bytes());
    packet.extend_from_slice(&[0, 4, 192, 0, 2, 1]);
    Arc::new(Reading::of(&packet, &asked, &question(idx)).expect("an answer"))
}

#[test]
fn answers_hold_for_their_time_and_then_a_while() {
    let mut cache = Cache::new(1 << 20);
    cache.keep(&question(1), reading(1, 60), 100);
    let found = |cache: &Cache, now| cache.find(&question(1), now).map(|it| (it.age, it.is_stale));
    assert_eq!(found(&cache, 100), Some((0, false)));
    assert_eq!(found(&cache, 159), Some((59, false)));
    assert_eq!(found(&cache, 160), Some((60, true)));
    assert_eq!(found(&cache, 160 + 3599), Some((3659, true)));
    assert_eq!(found(&cache, 160 + 3600), None);
    assert_eq!(cache.find(&question(2), 100), None);
    let signed = Question { dnssec_ok: true, ..question(1) };
    assert_eq!(cache.find(&signed, 100), None, "another question");
    cache.keep(&question(1), reading(1, 60), 150);
    assert_eq!((found(&cache, 160), cache.len()), (Some((10, false)), 1));
    cache.keep(&question(3), reading(3, 0), 100);
    assert_eq!(cache.len(), 1, "what holds no time is not kept");
}

#[test]
fn what_ends_first_makes_room() {
    let one = reading(1, 60).bytes_held() + OVERHEAD;
    let mut cache = Cache::new(10 * one + one / 2);
    for idx in 0..100 {
        let ttl = if idx % 2 == 0 { 300 } else { 10 };
        cache.keep(&question(idx), reading(idx, ttl), 0);
        assert!(cache.bytes <= cache.bytes_max);
    }
    assert_eq!(cache.len(), 10);
    assert_eq!(cache.len(), cache.by_end.len());
    let kept: Vec<usize> = (0..100).filter(|it| cache.find(&question(*it), 0).is_some()).collect();
    assert!(kept.iter().all(|it| it % 2 == 0), "{kept:?}");
    for idx in kept {
        cache.forget(&question(idx));
    }
    assert_eq!((cache.bytes, cache.by_end.len()), (0, 0));
}
