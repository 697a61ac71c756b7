//! Whatever its speed and selector, a watcher's events lead from the state it started at to the state there is: none is
//! missed, none comes twice, none comes out of order. One that stands still costs bounded memory.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_kinds::by_path;
use corten_store::{Entry, Operation, Outcome, Range, Revision, Store, Txn, memory::Memory};

use super::{
    Caches, EventType, Feed, Matcher, ResourceCache, Start, Watcher, feed,
    log::Window,
    resource::{Change, Content},
};

/// A small generator of numbers: the same from the same seed.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What a test keeps of a Pod: when it was last changed, its node, its label.
type Pod = (Revision, &'static str, &'static str);
type State = BTreeMap<String, Pod>;

const SELECTORS: &[(&str, &str, &str)] = &[
    ("", "", ""),
    ("a", "", ""),
    ("a", "", "metadata.name=p1"),
    ("", "", "spec.nodeName=n1"),
    ("b", "", "spec.nodeName=n1"),
    ("", "on=yes", ""),
    ("", "on!=yes", "spec.nodeName!=n2"),
];

fn wants(selector: (&str, &str, &str), key: &str, pod: Pod) -> bool {
    let (namespace, labels, fields) = selector;
    let (_, node, on) = pod;
    let label = match labels {
        "on=yes" => on == "yes",
        "on!=yes" => on != "yes",
        _ => true,
    };
    let field = match fields {
        "metadata.name=p1" => key.ends_with("/p1"),
        "spec.nodeName=n1" => node == "n1",
        "spec.nodeName!=n2" => node != "n2",
        _ => true,
    };
    key.starts_with(namespace) && label && field
}

fn pods(window: Window) -> ResourceCache {
    ResourceCache::with_window(by_path("", "v1", "pods").expect("Pods are served").into(), 1, window)
}

fn put(cache: &ResourceCache, key: &str, pod: Pod) -> Change {
    let (revision, node, on) = pod;
    let (namespace, name) = key.split_once('/').expect("keys have a namespace");
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","labels":{{"on":"{on}"}}}},"spec":{{"nodeName":"{node}"}}}}"#
    );
    let entry = Entry {
        key: format!("/registry/pods/{key}").into(),
        value: value.into(),
        create_revision: revision,
        mod_revision: revision,
        version: 1,
        lease: 0,
        unreadable: None,
    };
    Change { key: key.into(), revision, content: Some(cache.content(&entry).expect("a Pod")) }
}

/// One watcher and what it believes.
struct Observer {
    selector: (&'static str, &'static str, &'static str),
    watcher: Watcher,
    believes: State,
    last: Revision,
}

impl Observer {
    fn start(cache: &ResourceCache, rng: &mut SeededRng, history: &[(Revision, State)]) -> Self {
        let selector = SELECTORS[usize::try_from(rng.below(SELECTORS.len() as u64)).expect("small")];
        let matcher = Matcher::new(cache.kind(), selector.0, selector.1, selector.2).expect("valid selectors");
        let back = usize::try_from(rng.below(8)).expect("small").min(history.len() - 1);
        let (revision, state) = &history[history.len() - 1 - back];
        let start = if back == 0 { Start::State } else { Start::After(*revision) };
        let started = cache.watch(matcher, start).expect("the log holds the last revisions");
        let believes = state.iter().filter(|(key, pod)| wants(selector, key, **pod));
        let believes = believes.map(|(key, pod)| (key.clone(), *pod)).collect();
        Self { selector, watcher: started.watcher, believes, last: *revision }
    }

    /// Takes what is ready. False once it has fallen behind.
    fn observe(&mut self) -> bool {
        loop {
            let Ok(events) = self.watcher.ready() else { return false };
            if events.is_empty() {
                return true;
            }
            for (event, seen) in events {
                assert!(event.revision > self.last, "{} after {}", event.revision, self.last);
                self.last = event.revision;
                let key = event.subject(seen).key.to_string();
                let known = self.believes.contains_key(&key);
                assert_eq!(known, seen != EventType::Added, "{key} {seen:?} for {:?}", self.selector);
                if seen == EventType::Deleted {
                    self.believes.remove(&key);
                } else {
                    let json = String::from_utf8(event.frame(seen).to_vec()).expect("JSON is text");
                    let node = ["n1", "n2"].into_iter().find(|it| json.contains(it)).unwrap_or("");
                    let on = if json.contains("yes") { "yes" } else { "no" };
                    self.believes.insert(key, (event.revision, node, on));
                }
            }
        }
    }

    fn check(&self, state: &State) {
        let wanted: State = state
            .iter()
            .filter(|(key, pod)| wants(self.selector, key, **pod))
            .map(|(key, pod)| (key.clone(), *pod))
            .collect();
        assert_eq!(self.believes, wanted, "{:?}", self.selector);
    }
}

#[test]
fn what_a_cache_was_filled_with_is_not_replaced_by_what_comes_late() {
    let cache = ResourceCache::to_be_filled(by_path("", "v1", "pods").expect("Pods are served").into());
    let change = |revision: Revision| put(&cache, "a/p1", (revision, "n1", "yes"));
    let entry = Entry {
        key: "/registry/pods/a/p1".into(),
        value: br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p1","namespace":"a"}}"#.to_vec().into(),
        create_revision: 3,
        mod_revision: 9,
        version: 2,
        lease: 0,
        unreadable: None,
    };
    assert!(cache.fill_up(&[entry], 10));
    let revision = || cache.get("a", "p1").expect("it is there").revision();
    // The watch was behind what was read.
    cache.apply_or_wait(vec![change(8)]);
    assert_eq!((revision(), cache.snapshot_revision()), (9, 10));
    cache.apply_or_wait(vec![change(11)]);
    assert_eq!((revision(), cache.snapshot_revision()), (11, 11));
}

#[test]
fn the_watchers_of_an_object_are_those_of_all_of_its_namespace_and_of_itself() {
    let cache = pods(Window { events: 1000, bytes: 1 << 30 });
    let watch = |namespace: &str, fields: &str| {
        let matcher = Matcher::new(cache.kind(), namespace, "", fields).expect("valid selectors");
        cache.watch(matcher, Start::Now).expect("it is the newest").watcher
    };
    let mut watchers =
        vec![watch("", ""), watch("", ""), watch("a", ""), watch("a", "metadata.name=p"), watch("b", "")];
    assert_eq!([("a", "p"), ("a", "q"), ("a", ""), ("b", "p")].map(|it| cache.n_watchers(it.0, it.1)), [4, 3, 3, 3]);
    watchers.drain(..3);
    assert_eq!([("a", "p"), ("a", "q"), ("a", ""), ("b", "p")].map(|it| cache.n_watchers(it.0, it.1)), [1, 0, 0, 1]);
}

#[test]
fn watchers_miss_repeat_and_reorder_nothing() {
    for seed in 0..200 {
        let mut rng = SeededRng(seed);
        let cache = pods(Window { events: 1000, bytes: 1 << 30 });
        let mut state = State::new();
        let mut history = vec![(1, state.clone())];
        let mut observers: Vec<Observer> = Vec::new();
        let mut revision = 1;
        for _ in 0..120 {
            let mut batch = Vec::new();
            for _ in 0..=rng.below(3) {
                revision += 1 + rng.below(2);
                let key = format!("{}/p{}", ["a", "b"][usize::from(rng.below(2) == 1)], rng.below(3));
                if rng.below(4) == 0 {
                    state.remove(&key);
                    batch.push(Change { key: (&*key).into(), revision, content: None });
                } else {
                    let node = ["", "n1", "n2"][usize::try_from(rng.below(3)).expect("small")];
                    let pod = (revision, node, ["yes", "no"][usize::from(rng.below(2) == 1)]);
                    batch.push(put(&cache, &key, pod));
                    state.insert(key, pod);
                }
                history.push((revision, state.clone()));
            }
            cache.apply(batch);
            if rng.below(5) == 0 {
                cache.trim_lanes();
            }
            if rng.below(3) == 0 && observers.len() < 30 {
                observers.push(Observer::start(&cache, &mut rng, &history));
            }
            for observer in &mut observers {
                // Some look often, some seldom.
                if rng.below(6) == 0 {
                    assert!(observer.observe(), "the window is wide enough");
                }
            }
            if rng.below(10) == 0 && !observers.is_empty() {
                observers.remove(0);
            }
        }
        for observer in &mut observers {
            assert!(observer.observe(), "the window is wide enough");
            observer.check(&state);
        }
    }
}

#[test]
fn a_stalled_watcher_costs_the_window_and_is_told() {
    let cache = pods(Window { events: 100, bytes: 1 << 20 });
    let matcher = |fields| Matcher::new(cache.kind(), "", "", fields).expect("a valid selector");
    let mut everything = cache.watch(matcher(""), Start::Now).expect("now is held").watcher;
    let mut one_node = cache.watch(matcher("spec.nodeName=n1"), Start::Now).expect("now is held").watcher;
    let mut quiet = cache.watch(matcher("spec.nodeName=n2"), Start::Now).expect("now is held").watcher;
    let first = put(&cache, "a/p0", (2, "n1", "no"));
    let Some(Content::Object(object)) = &first.content else { panic!("a put") };
    let weak = std::sync::Arc::downgrade(object);
    cache.apply(vec![first]);
    for revision in 3..10_000 {
        cache.apply(vec![put(&cache, "a/p0", (revision, "n1", "no"))]);
    }
    cache.trim_lanes();
    assert!(weak.upgrade().is_none(), "nobody keeps what has left the window");
    assert!(everything.ready().is_err());
    assert!(one_node.ready().is_err());
    // What does not concern a watcher does not push it out of its window.
    assert!(quiet.ready().expect("its lane is empty").is_empty());
    cache.apply(vec![put(&cache, "a/p1", (10_000, "n2", "no"))]);
    assert_eq!(quiet.ready().expect("its lane holds one").len(), 1);
    assert_eq!(cache.watch(matcher(""), Start::After(5)).err(), Some(9_900));
}

#[test]
fn a_selector_may_say_several_things_of_one_field() {
    let cache = pods(Window { events: 100, bytes: 1 << 20 });
    let put = put(&cache, "a/p0", (2, "n1", "no"));
    let Some(Content::Object(pod)) = &put.content else { panic!("a put") };
    for (fields, expected) in [
        ("spec.nodeName=n1", true),
        ("spec.nodeName=n1,spec.nodeName=n1", true),
        ("spec.nodeName=n1,spec.nodeName=n2", false),
        ("spec.nodeName=n2,spec.nodeName=n1", false),
        ("spec.nodeName!=n2,spec.nodeName!=n3", true),
        ("spec.nodeName!=n2,spec.nodeName!=n1", false),
        ("spec.nodeName=n1,spec.nodeName!=n1", false),
        ("spec.nodeName=n1,metadata.name!=p1,metadata.namespace=a", true),
        ("metadata.name=p0,metadata.name=p1", false),
        ("metadata.name=p0,metadata.name!=p0", false),
    ] {
        let matcher = Matcher::new(cache.kind(), "", "", fields).expect("a valid selector");
        assert_eq!(matcher.matches(pod), expected, "{fields}");
    }
}

#[test]
fn frames_are_shared_while_they_are_new_and_made_again_when_old() {
    let cache = pods(Window { events: 1_000, bytes: 1 << 20 });
    let matcher = || Matcher::new(cache.kind(), "", "", "").expect("a valid selector");
    let mut watcher = cache.watch(matcher(), Start::Now).expect("now is held").watcher;
    cache.apply(vec![put(&cache, "a/p0", (2, "n1", "no"))]);
    let (first, seen) = watcher.ready().expect("it is held").remove(0);
    let frame = first.frame(seen);
    assert_eq!(frame.as_ptr(), first.frame(seen).as_ptr(), "encoded once for all");
    for revision in 3..500 {
        cache.apply(vec![put(&cache, "a/p0", (revision, "n1", "no"))]);
    }
    let again = first.frame(seen);
    assert_eq!(frame, again);
    assert_ne!(frame.as_ptr(), again.as_ptr(), "an old event keeps no frame");
}

/// Commits a change of one Pod and waits until the caches hold it.
async fn change(store: &dyn Store, caches: &Caches, text: &str) -> Revision {
    let value = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p","namespace":"a"}},"{text}":1}}"#);
    let put = Operation::Put { key: "/registry/pods/a/p".into(), value: value.into() };
    let outcome = store.commit(Txn { compares: Vec::new(), operations: vec![put] }).await.expect("the store is open");
    let Outcome::Committed(revision) = outcome else { panic!("nothing was compared") };
    caches.reach(revision).await.expect("the feed runs");
    revision
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_five_minutes_is_forgotten_though_nothing_happens_since() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let (caches, changes) = feed::fill(&*store).await.expect("an empty store");
    let caches = Arc::new(caches);
    let ended = tokio::sync::watch::Sender::new(false);
    let feed = Arc::new(Feed::new(changes));
    let task = tokio::spawn(feed::run(store.clone(), caches.clone(), feed, ended.subscribe()));
    let first = change(&*store, &caches, "first").await;
    let last = change(&*store, &caches, "last").await;
    let pods = by_path("", "v1", "pods").expect("Pods are served");
    let watch = |after| {
        let matcher = Matcher::new(pods, "", "", "").expect("valid selectors");
        caches.built_in(pods).watch(matcher, Start::After(after)).map(|_| ())
    };
    let at = |revision| store.range(Range::prefix("/registry/pods/"), Some(revision), 0);

    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!(watch(first), Ok(()));
    assert!(at(first).await.is_ok());

    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(watch(first), Err(last), "the window holds nothing");
    assert_eq!(watch(last), Ok(()), "and goes on from there");
    assert!(matches!(at(first).await, Err(corten_store::Error::Compacted { .. })), "nor does the store's");
    assert!(at(last).await.is_ok());
    ended.send_replace(true);
    task.await.expect("it ends when it is told to");
}
