use super::*;

fn version(revision: u64, value: &str) -> Version {
    Version { revision, value: value.into() }
}

fn at(begun: u64, ended: u64, what: Request) -> Operation {
    Operation { begun: Duration::from_millis(begun), ended: Duration::from_millis(ended), what }
}

fn put(begun: u64, ended: u64, value: &str, outcome: Outcome) -> Operation {
    at(begun, ended, Request::Put { key: "k".into(), value: value.into(), expected: None, outcome })
}

fn cas(begun: u64, ended: u64, value: &str, expected: u64, outcome: Outcome) -> Operation {
    at(begun, ended, Request::Put { key: "k".into(), value: value.into(), expected: Some(expected), outcome })
}

fn read(begun: u64, ended: u64, revision: u64, value: &str) -> Operation {
    at(begun, ended, Request::Read { key: "k".into(), found: version(revision, value) })
}

fn list(begun: u64, ended: u64, revision: u64, of: u64, value: &str) -> Operation {
    let found = BTreeMap::from([("k".to_owned(), version(of, value))]);
    at(begun, ended, Request::List { revision, found })
}

fn checked(history: Vec<Operation>) -> String {
    Checker::default().take(history).err().map(|it| it.to_string()).unwrap_or_default()
}

#[test]
fn what_one_server_could_have_answered_is_right() {
    use Outcome::{At, InDoubt, Refused};
    let history = vec![
        put(0, 1, "a", At(5)),
        put(2, 9, "b", InDoubt),
        read(3, 4, 5, "a"),
        read(5, 6, 6, "b"),
        cas(10, 11, "c", 6, At(8)),
        cas(10, 12, "d", 6, Refused),
        list(13, 14, 9, 8, "c"),
        put(15, 16, "e", InDoubt),
    ];
    assert_eq!(checked(history), "");
    // Two at once may be answered in either order.
    assert_eq!(checked(vec![put(0, 9, "a", At(6)), put(1, 8, "b", At(5)), read(2, 3, 5, "b")]), "");
}

#[test]
fn each_lie_is_found() {
    use Outcome::{At, InDoubt, Refused};
    for (history, said) in [
        (vec![put(0, 1, "a", At(5)), put(2, 3, "b", At(6)), read(4, 5, 5, "a")], "was read as of 5"),
        (vec![put(0, 1, "a", At(5)), put(2, 3, "b", At(4))], "was written at 4"),
        (vec![put(0, 1, "a", Refused), read(2, 3, 5, "a")], "and that was refused"),
        (vec![put(0, 1, "a", InDoubt), read(2, 3, 5, "a"), read(4, 5, 7, "a")], "twice"),
        (vec![put(0, 1, "a", At(5)), read(2, 3, 5, "x")], "nobody asked for it"),
        (vec![put(4, 5, "a", At(5)), read(2, 3, 5, "a")], "before anybody asked"),
        (vec![put(0, 1, "a", At(5)), put(2, 3, "b", At(6)), cas(4, 5, "c", 5, At(7))], "it was of 6"),
        (vec![put(0, 1, "a", At(5)), put(2, 3, "b", At(6)), list(2, 9, 7, 5, "a")], "a list at 7 holds k as of 5"),
        (vec![put(0, 1, "a", At(5)), put(2, 3, "b", At(6)), list(4, 5, 5, 5, "a")], "a list is of 5"),
        (vec![put(0, 1, "a", At(5)), put(0, 1, "b", At(5))], "and also"),
    ] {
        let found = checked(history);
        assert!(found.contains(said), "{said:?} is not what was found: {found:?}");
    }
}

#[test]
fn what_was_in_doubt_may_come_rounds_later_and_then_counts() {
    let mut checker = Checker::default();
    checker.take(vec![put(0, 1, "a", Outcome::At(5)), put(2, 3, "b", Outcome::InDoubt)]).expect("it is right");
    checker.take(vec![read(10, 11, 7, "b")]).expect("it is right");
    let found = checker.take(vec![read(12, 13, 5, "a")]).expect_err("it goes back");
    assert!(found.to_string().contains("after it had been of 7"), "{found}");
}
