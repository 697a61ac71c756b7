//! The indexes of a view follow every change of an object.

use corten_api::resources::{NODES, PODS, SECRETS};
use corten_meta::{OwnerReference, selector::requirements};

use super::*;
use crate::{Effect, Propagation};

struct Pod(ObjectMeta);

impl Named for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.0
    }

    fn found_by(&self) -> Option<&str> {
        self.0.labels.get("node").map(|it| &**it)
    }
}
impl<'de> serde::Deserialize<'de> for Pod {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ObjectMeta::deserialize(deserializer).map(Self)
    }
}
impl Projection for Pod {
    const RESOURCE: Resource = PODS;
}

/// `owners`: uids, the first of which controls where it begins with `!`.
fn pod(name: &str, owners: &[&str]) -> ObjectMeta {
    let reference = |text: &&str| OwnerReference {
        uid: text.trim_start_matches('!').into(),
        controller: text.starts_with('!').then_some(true),
        ..OwnerReference::default()
    };
    let key = Key::parse(name);
    ObjectMeta {
        namespace: key.namespace,
        uid: format!("uid-{}", key.name),
        name: key.name,
        owner_references: owners.iter().map(reference).collect(),
        ..ObjectMeta::default()
    }
}

fn insert(view: &mut View, meta: ObjectMeta) {
    view.insert(&PODS, Arc::new(Pod(meta)));
}

fn names<'a>(pods: impl Iterator<Item = &'a Pod>) -> Vec<&'a str> {
    pods.map(|it| &*it.0.name).collect()
}

#[test]
fn objects_are_found_by_namespace_owner_and_absence_of_one() {
    let mut view = View::default();
    for (name, owners) in [("b/3", &["!s"][..]), ("a/1", &["!s", "t"]), ("b/1", &[]), ("b/2", &["t"]), ("c/1", &[])] {
        insert(&mut view, pod(name, owners));
    }
    assert_eq!(names(view.in_namespace::<Pod>("b")), ["1", "2", "3"]);
    let namespaces_of = |name| view.named(&PODS, name).map(|it| &*it.namespace).collect::<Vec<_>>();
    assert_eq!(namespaces_of("1"), ["a", "b", "c"]);
    assert_eq!(namespaces_of("3"), ["b"]);
    assert!(namespaces_of("4").is_empty());
    assert_eq!(names(view.uncontrolled::<Pod>("b")), ["1", "2"]);
    assert_eq!(names(view.owned_by::<Pod>("s")), ["1", "3"]);
    assert_eq!(view.dependents("t").count(), 2);

    insert(&mut view, pod("b/1", &["!s"]));
    insert(&mut view, pod("b/3", &[]));
    assert_eq!(names(view.uncontrolled::<Pod>("b")), ["2", "3"]);
    assert_eq!(names(view.owned_by::<Pod>("s")), ["1", "1"]);
    view.remove(&PODS, &Key::new("b", "2"));
    assert_eq!(names(view.uncontrolled::<Pod>("b")), ["3"]);
    assert_eq!(view.dependents("t").count(), 1);
}

#[test]
fn what_blocks_an_owners_deletion_is_found_as_long_as_it_does() {
    let mut view = View::default();
    let blocking = |name: &str, blocks: &[bool]| {
        let mut meta = pod(name, &vec!["s"; blocks.len()]);
        for (owner, blocks) in meta.owner_references.iter_mut().zip(blocks) {
            owner.block_owner_deletion = blocks.then_some(true);
        }
        meta
    };
    let names = |view: &View| view.blocking("s").map(|it| it.1.name.clone()).collect::<Vec<_>>();
    for (name, blocks) in [("a/1", &[true][..]), ("a/2", &[false]), ("b/1", &[true, false])] {
        insert(&mut view, blocking(name, blocks));
    }
    assert_eq!(names(&view), ["1", "1"]);
    insert(&mut view, blocking("a/1", &[false]));
    insert(&mut view, blocking("a/2", &[false, true]));
    assert_eq!((names(&view), view.dependents("s").count()), (vec!["2".into(), "1".into()], 3));
    view.remove(&PODS, &Key::new("b", "1"));
    assert_eq!(names(&view), ["2"]);
}

#[test]
fn objects_are_found_by_the_node_they_are_on() {
    let mut view = View::default();
    let on = |name: &str, node: Option<&str>| {
        let mut meta = pod(name, &[]);
        meta.labels.extend(node.map(|it| ("node".to_owned(), it.to_owned())));
        meta
    };
    for (name, node) in [("b/2", Some("n1")), ("a/1", Some("n1")), ("a/2", Some("n2")), ("a/3", None)] {
        insert(&mut view, on(name, node));
    }
    assert_eq!(names(view.on_node::<Pod>("n1")), ["1", "2"]);
    insert(&mut view, on("a/3", Some("n2")));
    assert_eq!(names(view.on_node::<Pod>("n2")), ["2", "3"]);
    view.remove(&PODS, &Key::new("a", "1"));
    assert_eq!(names(view.on_node::<Pod>("n1")), ["2"]);
    assert_eq!(names(view.on_node::<Pod>("n3")), [""; 0]);
}

#[test]
fn an_answer_that_stays_the_same_keeps_its_first_time() {
    let (mut view, key) = (View::default(), Key::new("a", "1"));
    let at = Time::from_unix_seconds;
    for (answer, now, since) in [
        (Answer::Missing, 1, 1),
        (Answer::Missing, 5, 1),
        (Answer::Found { uid: "u".into() }, 6, 6),
        (Answer::Missing, 7, 7),
    ] {
        view.record_answer_at(PODS, key.clone(), answer, at(now));
        assert_eq!(view.answered_at(&PODS, &key), Some(at(since)));
    }
    view.forget_answers();
    assert_eq!(view.answered_at(&PODS, &key), None);
}

#[test]
fn what_is_being_deleted_is_found_by_uid_until_it_is_gone() {
    let mut view = View::default();
    insert(&mut view, pod("a/1", &[]));
    assert!(view.deleting("uid-1").is_none());
    let mut going = pod("a/1", &[]);
    going.deletion_timestamp = Some(corten_meta::Time::from_unix_seconds(1));
    insert(&mut view, going);
    assert_eq!(view.deleting("uid-1").map(|it| (it.0, &*it.1.name)), Some((&PODS, "1")));
    view.remove(&PODS, &Key::new("a", "1"));
    assert!(view.deleting("uid-1").is_none());
}

#[test]
fn answers_last_until_the_object_changes_and_failures_until_success() {
    let mut view = View::default();
    let key = Key::new("a", "1");
    view.record_answer(PODS, key.clone(), Answer::Missing);
    view.record_answer(SECRETS, key.clone(), Answer::Missing);
    assert_eq!(view.answer(&PODS, &key), Some(&Answer::Missing));
    insert(&mut view, pod("a/1", &[]));
    assert_eq!((view.answer(&PODS, &key), view.answer(&SECRETS, &key)), (None, Some(&Answer::Missing)));

    let effect = Effect::Delete {
        resource: PODS,
        key: key.clone(),
        uid: "u".into(),
        propagation: Propagation::Background,
        grace_seconds: None,
    };
    let failure = Failure { effect, message: "busy".into(), is_final: false };
    view.record_failure(&key, Some(failure.clone()));
    assert_eq!(view.failure(&key), Some(&failure));
    view.record_failure(&key, None);
    assert_eq!(view.failure(&key), None);
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
    ObjectMeta { labels, ..pod(name, &[]) }
}

/// With an index as without one.
#[test]
fn objects_are_selected_by_their_labels_as_they_are_now() {
    for table in [Table::default(), Table::by_labels()] {
        let mut view = View::default();
        view.declare_with(&PODS, table);
        let selected = |view: &View, selector: &str| {
            let requirements = requirements(selector).expect("it can be read");
            names(view.selected::<Pod>("a", &requirements).into_iter()).join(" ")
        };
        for (name, app, tier) in [("a/1", "web", "x"), ("a/2", "web", "y"), ("a/3", "db", "x"), ("b/4", "web", "x")] {
            insert(&mut view, labelled(name, &[("app", app), ("tier", tier)]));
        }
        insert(&mut view, labelled("a/5", &[]));
        for (selector, expected) in [
            ("app=web", "1 2"),
            ("tier=x,app=web", "1"),
            ("app=web,tier!=x", "2"),
            ("app in (web,db)", "1 2 3"),
            ("!app", "5"),
            ("app=none", ""),
            ("", "1 2 3 5"),
        ] {
            assert_eq!(selected(&view, selector), expected, "{selector}");
        }
        insert(&mut view, labelled("a/1", &[("app", "db")]));
        insert(&mut view, labelled("a/5", &[("app", "web")]));
        view.remove(&PODS, &Key::new("a", "2"));
        assert_eq!((selected(&view, "app=web"), selected(&view, "app=db")), ("5".into(), "1 3".into()));
        assert_eq!(["a", "b", "c"].map(|it| view.count_in_namespace::<Pod>(it)), [3, 1, 0]);
    }
}

#[test]
fn notes_are_found_by_the_labels_that_they_select() {
    let mut view = View::default();
    let note = |view: &mut View, name: &str, selector: &str| {
        view.record_note(&Key::parse(name), serde_json::json!({ "selector": selector }));
    };
    for (name, selector) in [
        ("a/one", "app=web"),
        ("a/both", "app=web,tier=x"),
        ("a/set", "app in (web,db)"),
        ("a/none", "app=db"),
        ("a/broken", "app in (web"),
        ("b/other", "app=web"),
    ] {
        note(&mut view, name, selector);
    }
    view.record_note(&Key::new("a", "plain"), serde_json::json!(7));
    let pods = [labelled("a/1", &[("app", "web")]), labelled("a/2", &[("tier", "x")])];
    let selecting = |view: &View| {
        let found = view.selecting("a", pods.iter().map(|it| &it.labels));
        found.into_iter().map(|it| &*it.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(selecting(&view), "one set", "no Pod has both labels");
    note(&mut view, "a/one", "app=db");
    note(&mut view, "a/both", "tier=x");
    view.forget_note(&Key::new("a", "set"));
    assert_eq!(selecting(&view), "both");
    assert_eq!(view.note(&Key::new("a", "one")), Some(&serde_json::json!({ "selector": "app=db" })));
}

#[test]
fn what_was_fetched_for_all_is_shown_for_a_second_and_read_once() {
    let (mut view, at) = (View::default(), Time::from_unix_seconds(100));
    let (own, other) = (Key::new("a", "own"), Key::new("a", "other"));
    let path = ApiPath { path: "/x".into(), query: Vec::new() };
    view.record_fetched_for_all(&own, path.clone(), Ok(b"7"[..].into()), at);
    let sees = |view: &View, key: &Key, now: Time| {
        let brought = view.brought_for_all(key, &path, now)?;
        Some(*brought.read_as(|it| it.len()).expect("it came"))
    };
    let later = |millis| at.after(std::time::Duration::from_millis(millis));
    assert_eq!([0, 1000, 1001].map(|it| sees(&view, &other, later(it))), [Some(1), Some(1), None]);
    assert_eq!(sees(&view, &other, Time::from_unix_seconds(99)), None, "the clock was set back");
    assert_eq!(sees(&view, &own, later(60_000)), Some(1), "who has fetched it is shown it whenever that was");
    assert_eq!(view.brought_for_all(&other, &path, at).map(|it| it.read_as(|_| 5_usize)), Some(Ok(&1)));
    view.forget_fetched(&own);
    assert_eq!((sees(&view, &own, later(500)), view.has_old_fetched(later(500))), (Some(1), false));
    assert!(view.has_old_fetched(later(2000)));
    view.forget_old_fetched(later(2000));
    assert_eq!(sees(&view, &own, later(500)), None);
}

#[test]
fn where_tables_are_apart_an_answer_is_soon_old_and_keeps_since_when_it_has_been_so() {
    let (mut view, key) = (View::default(), Key::cluster("n"));
    let at = Time::from_unix_seconds;
    view.record_answer_at(NODES, key.clone(), Answer::Missing, at(100));
    view.outdate_answers(Some(at(105)));
    assert_eq!(view.answer(&NODES, &key), Some(&Answer::Missing));
    view.outdate_answers(Some(at(106)));
    assert_eq!((view.answer(&NODES, &key), view.answered_at(&NODES, &key)), (None, Some(at(100))));
    view.record_answer_at(NODES, key.clone(), Answer::Missing, at(140));
    view.outdate_answers(Some(at(141)));
    assert_eq!((view.answer(&NODES, &key), view.answered_at(&NODES, &key)), (Some(&Answer::Missing), Some(at(100))));
    view.outdate_answers(None);
    assert_eq!(view.answer(&NODES, &key), Some(&Answer::Missing));
}
