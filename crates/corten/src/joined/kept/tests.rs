use std::os::unix::fs::PermissionsExt;

use super::*;

const PODS: &str = "kubelet: pods";

fn applied(name: &str, text: &str, essence: u64) -> KeptChange {
    KeptChange::Applied { key: Key::new("default", name), object: Bytes::from(text.to_owned()), essence }
}

fn whole(version: &str) -> KeptChange {
    KeptChange::Whole { version: version.into(), pause: Duration::from_secs(1), leaves_out: false }
}

fn items(store: &KeptStore, of: &str) -> Option<Vec<String>> {
    let list = store.before(of)?;
    Some(list.items.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect())
}

/// The names of the files, but for the key's.
fn files(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data.join(FOLDER)).expect("the folder").flatten();
    entries.map(|it| it.file_name().to_string_lossy().into_owned()).filter(|it| it != KEY).collect()
}

async fn ended(store: &Arc<KeptStore>) {
    store.clone().run(std::future::ready(())).await;
}

#[tokio::test]
async fn the_next_run_finds_what_was_whole() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    assert!(!store.has_before(PODS), "nothing is of an earlier run");
    store.change(PODS, applied("a", r#"{"n":1}"#, 1));
    store.change(PODS, applied("b", r#"{"n":"secret"}"#, 2));
    store.change("half", applied("c", "{}", 3));
    store.change(PODS, whole("7"));
    ended(&store).await;
    let [file] = &files(data.path())[..] else { panic!("what is not whole is not written") };
    let path = data.path().join(FOLDER).join(file);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let sealed = fs::read(&path).expect("read");
    assert!(!sealed.windows(6).any(|it| it == b"secret"), "it is sealed");

    let next = KeptStore::load(data.path()).expect("a store");
    assert_eq!(items(&next, PODS), Some(vec![r#"{"n":1}"#.to_owned(), r#"{"n":"secret"}"#.to_owned()]));
    assert_eq!(next.before(PODS).map(|it| it.version).as_deref(), Some("7"));
    // Until it is known anew, what was kept stays on the disk.
    next.change(PODS, applied("a", r#"{"n":1}"#, 1));
    ended(&next).await;
    assert_eq!(items(&KeptStore::load(data.path()).expect("a store"), PODS).map(|it| it.len()), Some(2));
    next.change(PODS, whole("8"));
    ended(&next).await;
    assert_eq!(items(&KeptStore::load(data.path()).expect("a store"), PODS).map(|it| it.len()), Some(1));
}

#[tokio::test]
async fn a_file_of_another_machine_or_half_a_file_is_none() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    for of in [PODS, "other"] {
        store.change(of, applied("a", "{}", 1));
        store.change(of, whole("7"));
    }
    ended(&store).await;
    let dir = data.path().join(FOLDER);
    let (one, two) = (dir.join(file_name(PODS)), dir.join(file_name("other")));
    // One in the place of the other opens as little.
    fs::copy(&two, &one).expect("copied");
    let sealed = fs::read(&two).expect("read");
    fs::write(&two, &sealed[..sealed.len() / 2]).expect("written");
    let next = KeptStore::load(data.path()).expect("a store");
    assert!(!next.has_before(PODS) && !next.has_before("other"));
    assert!(files(data.path()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_count_is_written_with_what_does() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    let due = || store.state.lock().due().filter(|it| *it < Instant::now() + PRUNED_AFTER / 2);
    store.change(PODS, applied("a", r#"{"n":1}"#, 1));
    store.change(PODS, whole("7"));
    assert!(due().is_some());
    store.write(None).await;
    store.change(PODS, applied("a", r#"{"n":2}"#, 1));
    assert_eq!(due(), None, "its essence is the same");
    store.change(PODS, applied("b", "{}", 1));
    let at = due().expect("there is another one");
    assert!(at >= Instant::now() + Duration::from_millis(900), "not sooner than a second after the last one");
    store.write(None).await;
    let next = KeptStore::load(data.path()).expect("a store");
    assert_eq!(items(&next, PODS), Some(vec![r#"{"n":2}"#.to_owned(), "{}".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_their_owner_and_go_with_it() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    store.keep_answer("u1", "/claims/a", Some(Bytes::from_static(b"{}")));
    store.keep_answer("u1", "/claims/b", None);
    store.keep_answer("u2", "/claims/a", Some(Bytes::from_static(b"{}")));
    ended(&store).await;
    let next = KeptStore::load(data.path()).expect("a store");
    assert_eq!(next.answer("u1", "/claims/a"), Some(Some(Bytes::from_static(b"{}"))));
    assert_eq!(next.answer("u1", "/claims/b"), Some(None));
    assert_eq!(next.answer("u1", "/claims/c"), None);
    next.forget_owner("u1");
    next.write(None).await;
    assert_eq!(files(data.path()).len(), 1);
    // What nobody has asked for long after a server has answered goes, too.
    let third = KeptStore::load(data.path()).expect("a store");
    third.change(PODS, whole("9"));
    third.write(None).await;
    assert_eq!(files(data.path()).len(), 2);
    tokio::time::advance(PRUNED_AFTER + Duration::from_secs(1)).await;
    third.write(None).await;
    third.write(None).await;
    assert_eq!(files(data.path()), [file_name(PODS)]);
}

#[tokio::test]
async fn what_is_asked_once_the_owner_is_gone_leaves_no_file() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    store.begin_owner("u1");
    store.keep_answer("u1", "/a", Some(Bytes::from_static(b"{}")));
    store.write(None).await;
    assert_eq!(files(data.path()).len(), 1);
    store.forget_owner("u1");
    assert_eq!(store.answer("u1", "/a"), None);
    store.write(None).await;
    assert!(files(data.path()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_does_not_ask_for_stays_while_the_pod_does() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    store.keep_answer("u1", "/a", Some(Bytes::from_static(b"{}")));
    store.keep_answer("u2", "/a", Some(Bytes::from_static(b"{}")));
    ended(&store).await;
    let next = KeptStore::load(data.path()).expect("a store");
    next.begin_owner("u1");
    next.change(PODS, whole("9"));
    tokio::time::advance(PRUNED_AFTER + Duration::from_secs(1)).await;
    next.write(None).await;
    assert_eq!(next.answer("u1", "/a"), Some(Some(Bytes::from_static(b"{}"))));
    assert_eq!(next.answer("u2", "/a"), None);
}

#[tokio::test]
async fn of_lists_that_are_too_large_as_a_whole_none_is_kept() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    store.change(PODS, applied("a", "{}", 1));
    store.change(PODS, whole("7"));
    ended(&store).await;
    store.change(PODS, applied("b", &format!("\"{}\"", "x".repeat(kept_file::BYTES_MAX)), 2));
    store.write(None).await;
    store.write(None).await;
    assert!(files(data.path()).is_empty(), "half of the policies would be a lie");
}

/// A Pod of so many bytes.
fn large(name: &str, uid: &str, bytes: usize) -> KeptChange {
    applied(name, &format!(r#"{{"metadata":{{"uid":"{uid}"}},"x":"{}"}}"#, "x".repeat(bytes)), bytes as u64)
}

#[tokio::test]
async fn of_pods_that_are_too_large_the_others_are_kept() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    let in_parts = KeptChange::Whole { version: "7".into(), pause: Duration::from_secs(1), leaves_out: true };
    store.change(PODS, applied("small", "{}", 1));
    for n in 0..12 {
        store.change(PODS, large(&format!("large-{n:02}"), &format!("u{n}"), (3 << 20) + n));
    }
    store.change(PODS, in_parts);
    ended(&store).await;
    let before = || KeptStore::load(data.path()).expect("a store").before(PODS).expect("it is kept");
    let left_out: Vec<String> = before().left_out.into_iter().map(|it| format!("{} {}", it.key.name, it.uid)).collect();
    assert_eq!(left_out, ["large-10 u10", "large-11 u11"]);
    assert_eq!(before().items.len(), 11);
    // One of the same name is another one.
    store.change(PODS, large("large-11", "u99", (3 << 20) + 11));
    store.write(None).await;
    assert_eq!(before().left_out.len(), 2);
    store.change(PODS, large("large-11", "u99", (3 << 20) + 12));
    store.write(None).await;
    assert!(before().left_out.iter().any(|it| it.uid == "u99"));
    for n in 0..3 {
        store.change(PODS, KeptChange::Gone(Key::new("default", &*format!("large-{n:02}"))));
    }
    store.write(None).await;
    assert!(before().left_out.is_empty(), "there is room again");
}

#[tokio::test]
async fn nobody_takes_the_room_of_others() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    let secret = |namespace: &str, n: usize| format!("kubelet: secrets {namespace}  metadata.name=s{n}");
    let keep = |of: &str, bytes: usize| {
        store.change(of, large("s", "u", bytes));
        store.change(of, whole("7"));
    };
    keep(&secret("small", 0), 1000);
    for n in 0..5 {
        keep(&secret("greedy", n), 30 << 20);
    }
    keep(PODS, 1000);
    ended(&store).await;
    let names =
        || KeptStore::load(data.path()).expect("a store").state.lock().before.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names().len(), 6, "four of the greedy ones, and all of the others: {:?}", names());
    assert!(names().contains(&secret("small", 0)) && names().contains(&PODS.to_owned()));
    // As soon as there is room, the fifth is kept.
    let kept = (0..5).find(|n| names().contains(&secret("greedy", *n))).expect("one is kept");
    store.change(&secret("greedy", kept), KeptChange::Forgotten);
    store.write(None).await;
    store.write(None).await;
    assert_eq!(names().len(), 6, "{:?}", names());
}

#[tokio::test]
async fn a_list_that_is_begun_anew_holds_nothing_of_before() {
    let data = tempfile::tempdir().expect("a folder");
    let store = KeptStore::load(data.path()).expect("a store");
    store.change(PODS, applied("gone", "{}", 1));
    store.change(PODS, whole("7"));
    ended(&store).await;
    assert!(!store.has_before(PODS));
    store.change(PODS, applied("b", r#"{"n":1}"#, 1));
    let before = || items(&KeptStore::load(data.path()).expect("a store"), PODS);
    ended(&store).await;
    assert_eq!(before(), Some(vec!["{}".to_owned()]), "until it is whole the one before stays");
    store.change(PODS, whole("8"));
    ended(&store).await;
    assert_eq!(before(), Some(vec![r#"{"n":1}"#.to_owned()]));
}
