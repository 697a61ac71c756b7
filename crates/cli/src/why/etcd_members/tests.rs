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
fn who_answers_and_does_not_agree_is_not_called_too_few() {
    let log = "tail -n 40 /var/lib/corten/log/etcd.log";
    for (names, away, said_of, next) in [
        ("a b", "", "2 of 2", format!("ping -c 3 -M do -s 1372 b; {log}")),
        ("a b c", "b", "2 of 3", format!("ping -c 3 -M do -s 1372 c; {log}")),
        ("a [fd00::2]", "", "2 of 2", format!("ping -c 3 -M do -s 1352 fd00::2; {log}")),
        ("a", "", "1 of 1", log.to_owned()),
    ] {
        let members = names.split(' ').map(|it| member(it, (it == away).then_some(90))).collect();
        let lost_since = Some(Time::from_unix_seconds(95));
        let health = EtcdHealth { has_quorum: false, lost_since, members, ..EtcdHealth::default() };
        let begin = format!(
            "etcd: EtcdQuorumLost: {said_of} members of etcd answer, which are enough, and do not agree on a leader: nothing is read or \
             written for 5.0s, since 1970-01-01T00:01:35Z. Packets between them may be lost"
        );
        let told = said(&health).swap_remove(0);
        assert!(told.starts_with(&begin) && told.ends_with(&format!(" | {next}")), "{told}");
    }
}

#[test]
fn a_full_member_is_told_of() {
    let full = MemberHealth { alarms: vec!["NOSPACE".into()], ..member("a", None) };
    let health = EtcdHealth { has_quorum: true, members: vec![full], ..EtcdHealth::default() };
    assert!(said(&health)[0].starts_with("etcd/a: EtcdNoSpace: it is full and takes no writes"), "{:?}", said(&health));
}

#[test]
fn says_who_was_removed_and_where_two_are_too_few() {
    let of = |names: &[&str]| EtcdHealth {
        at: Some(Time::from_unix_seconds(100)),
        has_quorum: true,
        lost_since: None,
        members: names.iter().map(|it| member(it, None)).collect(),
    };
    let two = "etcd: EtcdNotRedundant: etcd has 2 members, a and b, and both must agree: the loss of either stops all writes. With a third \
               the cluster goes on without any one of them | corten token create --control-plane # on a or b; its line on a third machine";
    assert_eq!(said(&of(&["a", "b"])), [two]);
    let mut third_comes = of(&["a", "b", "c"]);
    third_comes.members[2].is_learner = true;
    for fine in [of(&["a"]), of(&["a", "b", "c"]), third_comes] {
        assert_eq!(said(&fine), Vec::<String>::new());
    }
    let removed = said(&of(&["b", "c"]));
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert!(removed[0].starts_with(
        "etcd: EtcdMemberRemoved: this machine's member of etcd was removed, and those that there are (b, c)"
    ));
    assert!(removed[0].ends_with("then here: corten reset, and the line that was printed"), "{removed:?}");
}
