use bytes::Bytes;
use corten_store::{Compare, Operation};
use tokio::time::Instant;

use super::*;

struct Ends {
    store: Arc<Memory>,
    levers: Levers,
    linked: LinkedStore,
}

fn linked() -> Ends {
    let (store, levers) = (Arc::new(Memory::new()), Levers::default());
    let linked = LinkedStore::new(store.clone(), levers.clone(), SeededRng::new(1), Authors::default());
    Ends { store, levers, linked }
}

fn put(key: &str, at: Revision) -> Txn {
    let key = Bytes::copy_from_slice(key.as_bytes());
    Txn {
        compares: vec![Compare { key: key.clone(), mod_revision: at }],
        operations: vec![Operation::Put { key, value: "{}".into() }],
    }
}

#[tokio::test(start_paused = true)]
async fn each_trouble_is_seen_as_what_it_is() {
    for (trouble, reads, commit_error, is_done) in [
        (Trouble::None, true, "", true),
        (Trouble::Slow, true, "", true),
        (Trouble::Stalled, true, "", true),
        (Trouble::Refused, false, "nothing listens", false),
        (Trouble::Cut, false, "it is not known", false),
        (Trouble::Deaf, false, "it is not known", false),
        (Trouble::Mute, false, "it is not known", true),
    ] {
        let Ends { store, levers, linked } = linked();
        levers.set(trouble);
        let begun = Instant::now();
        assert_eq!(linked.newest().await.is_ok(), reads, "{trouble:?}");
        assert!(begun.elapsed() <= ANSWER_WAIT, "{trouble:?}");
        let committed = linked.commit(put("/registry/a", 0)).await;
        let error = committed.err().map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains(commit_error) && error.is_empty() == commit_error.is_empty(), "{trouble:?}: {error}");
        assert_eq!(store.revision() > 1, is_done, "{trouble:?}");
        assert_eq!(linked.writable().is_ok(), reads, "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_given_up_may_be_done_once_the_link_is_mended() {
    let Ends { store, levers, linked } = linked();
    levers.set(Trouble::Cut);
    for n in 0..20 {
        assert!(linked.commit(put(&format!("/registry/{n}"), 0)).await.is_err());
    }
    assert_eq!(store.revision(), 1);
    levers.set(Trouble::None);
    sleep(Duration::from_secs(1)).await;
    let n_done = store.revision() - 1;
    assert!((5..20).contains(&n_done), "{n_done} arrived late, and not all");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_is_known_to_be_behind() {
    let Ends { store, levers, linked } = linked();
    let mut changes = linked.watch(Range::prefix("/registry/"), 1).await.expect("a watch begins");
    levers.set(Trouble::Stalled);
    store.commit(put("/registry/a", 0)).await.expect("another one writes");
    assert_eq!(linked.newest().await.expect("the store answers"), 2);
    sleep(Duration::from_secs(60)).await;
    assert!(changes.ready().is_none());
    assert_eq!(changes.progress(), Some(1));
    levers.set(Trouble::None);
    let told = changes.next().await.expect("it comes");
    assert_eq!((told[0].revision, changes.progress()), (2, Some(2)));
    // Of a key that is not watched the stream says nothing by itself.
    store.commit(put("/elsewhere", 0)).await.expect("another one writes");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(changes.progress(), Some(2));
    assert_eq!(linked.newest().await.expect("the store answers"), 3);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(changes.progress(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_broke_loses_nothing_and_tells_nothing_twice() {
    let Ends { store, levers, linked } = linked();
    let mut changes = linked.watch(Range::prefix("/registry/"), 1).await.expect("a watch begins");
    let mut told = Vec::new();
    for n in 0..50 {
        store.commit(put(&format!("/registry/{n}"), 0)).await.expect("another one writes");
        if n % 7 == 0 {
            levers.break_streams();
        }
        sleep(Duration::from_millis(n)).await;
        while let Some(batch) = changes.ready() {
            told.extend(batch.expect("it goes on").into_iter().map(|it| it.revision));
        }
    }
    while told.len() < 50 {
        told.extend(changes.next().await.expect("it goes on").into_iter().map(|it| it.revision));
    }
    assert_eq!(told, (2..=51).collect::<Vec<_>>());
    linked.close().await;
    assert!(matches!(changes.next().await, Err(Error::Closed)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_who_stands_still() {
    let Ends { levers, linked, .. } = linked();
    let freezer = levers.freezer.clone();
    let begun = Instant::now();
    let asking = tokio::spawn(async move { linked.newest().await });
    tokio::task::yield_now().await;
    freezer.freeze();
    sleep(Duration::from_secs(30)).await;
    assert!(!asking.is_finished());
    freezer.thaw();
    assert_eq!(asking.await.expect("it ends").expect("the answer has come"), 1);
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
}
