use super::*;
use corten_node_process::node_folders::DATA_DIR;

fn member(name: &str, away_since: Option<i64>) -> MemberHealth {
    MemberHealth {
        name: name.into(),
        url: format!("https://{name}:2379"),
        is_own: name == "a",
        away_since: away_since.map(Time::from_unix_seconds),
        says: away_since.map(|_| "connection refused".into()),
        ..MemberHealth::default()
    }
}

fn said(health: &EtcdHealth) -> Vec<String> {
    let groups = of(health, Path::new(DATA_DIR), Time::from_unix_seconds(100));
    groups.iter().map(|it| format!("{}: {} | {}", it.subjects[0].subject, it.summary, it.next)).collect()
}

#[test]
fn says_who_is_away_since_when_and_who_agrees() {
    let mut health = EtcdHealth {
        at: Some(Time::from_unix_seconds(100)),
        has_quorum: true,
        lost_since: None,
        members: vec![member("a", None), member("b", None), member("c", None)],
    };
    assert_eq!(said(&health), Vec::<String>::new());
    health.members[2] = member("c", Some(40));
    assert_eq!(
        said(&health),
        [
            "etcd/c: EtcdMemberAway: the member at https://c:2379 does not answer for 60s, since 1970-01-01T00:00:40Z: connection refused; \
             2 of 3 members agree, and 2 are needed: the next loss stops all writes | corten up # on c; where it never comes back: \
             corten node remove c"
        ]
    );
    health.members[1] = member("b", Some(90));
    (health.has_quorum, health.lost_since) = (false, Some(Time::from_unix_seconds(95)));
    let told = said(&health);
    assert_eq!(
        told[0],
        "etcd: EtcdQuorumLost: 1 of 3 members of etcd answer, and 2 must agree: nothing is read or written for 5.0s, since \
         1970-01-01T00:01:35Z | corten up # on b or c; where none of them comes back, this one goes on alone, until \
         it is up: corten down && ETCD_FORCE_NEW_CLUSTER=true corten server --ha"
    );
    assert!(told.len() == 3 && told[1].ends_with("2 of 3 are needed | corten up # on b"), "{told:?}");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("etcd")).expect("made");
    health.save(folder.path()).expect("written");
    let lost = quorum_lost(folder.path(), Time::from_unix_seconds(101)).expect("too few");
    assert_eq!(lost.groups.len(), 3);
    let next = &lost.groups[0].next;
    assert!(next.starts_with("corten up # on b or c; where none of them comes back, this one goes on alone, until it is up: corten down --data-dir="), "{next}");
    for member in &mut health.members[1..] {
        member.says = Some("tcp connect error: No route to host (os error 113)".into());
    }
    health.save(folder.path()).expect("written");
    let lost = quorum_lost(folder.path(), Time::from_unix_seconds(101)).expect("too few");
    let alone =
        "ping b # no other member is reached: look at this machine's own link first; then corten up # on b or c";
    assert_eq!(lost.groups[0].next, alone);
    assert!(quorum_lost(folder.path(), Time::from_unix_seconds(1000)).is_none(), "nobody looks any more");
}

#[test]
fn a_full_member_is_told_of() {
    let full = MemberHealth { alarms: vec!["NOSPACE".into()], ..member("a", None) };
    let health = EtcdHealth { has_quorum: true, members: vec![full], ..EtcdHealth::default() };
    assert!(said(&health)[0].starts_with("etcd/a: EtcdNoSpace: it is full and takes no writes"), "{:?}", said(&health));
}
