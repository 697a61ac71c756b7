//! The contract, and the faults that only this engine can be asked for.

use super::*;
use crate::{Operation, conformance};

fn put(value: &'static str) -> Txn {
    Txn { compares: vec![], operations: vec![Operation::Put { key: "/a".into(), value: value.into() }] }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts")
}

#[test]
fn keeps_the_contract() {
    runtime().block_on(conformance::run(&|limits| Arc::new(Memory::with_limits(limits))));
    runtime().block_on(conformance::run_local(&|| Arc::new(Memory::new())));
}

#[test]
fn faults_do_what_they_say() {
    runtime().block_on(async {
        let store = Memory::new();
        let faults = store.faults();
        faults.refuse(1);
        assert!(matches!(store.commit(put("1")).await, Err(Error::Io(_))));
        assert_eq!(store.revision(), 1);

        faults.lose_answers(1);
        assert!(matches!(store.commit(put("2")).await, Err(Error::Io(_))));
        assert_eq!(store.revision(), 2);
        assert_eq!(store.commit(put("3")).await.expect("no fault is left"), Outcome::Committed(3));

        let mut watch = store.watch(Range::prefix("/"), 3).await.expect("the history is kept");
        store.drop_watches();
        assert!(matches!(watch.next().await, Err(Error::Compacted { .. })));
    });
}

#[test]
fn a_delayed_commit_is_seen_only_after_its_delay() {
    runtime().block_on(async {
        let store = Memory::new();
        let gate = Arc::new(tokio::sync::Notify::new());
        let waiting = gate.clone();
        store.faults().delay(Arc::new(move || {
            let gate = waiting.clone();
            Box::pin(async move { gate.notified().await })
        }));
        let open = async {
            assert_eq!(store.revision(), 1);
            gate.notify_one();
        };
        let (committed, ()) = tokio::join!(biased; store.commit(put("1")), open);
        assert_eq!(committed.expect("it goes on"), Outcome::Committed(2));
        store.faults().no_delay();
        assert_eq!(store.commit(put("2")).await.expect("nothing is in the way"), Outcome::Committed(3));
    });
}

#[test]
fn a_transaction_with_many_changes_tells_each_key_once() {
    const KEYS: usize = 50_000;
    let store = Memory::new();
    let body: crate::Body = Arc::new(|draft: &mut crate::Draft<'_>| {
        let keys: Vec<bytes::Bytes> = (0..KEYS).map(|it| format!("{it:06}").into()).collect();
        for value in ["1", "2"] {
            for key in &keys {
                draft.put(key.clone(), value.into(), 0);
                draft.delete(key);
                draft.put(key.clone(), value.into(), 0);
            }
        }
        draft.delete(&keys[0]);
        std::ops::ControlFlow::Continue(())
    });
    runtime().block_on(async {
        let mut watch = store.watch(Range::prefix(""), 1).await.expect("the history is kept");
        let transaction = crate::Transaction { bytes: 0, body };
        crate::LocalStore::transact(&store, transaction).await.expect("it is written");
        let changes = watch.next().await.expect("the watch goes on");
        assert_eq!(changes.len(), KEYS - 1, "what was not there before and is not there after has not changed");
        assert!(changes.iter().all(|it| it.entry.as_ref().is_some_and(|it| &it.value[..] == b"2")));
        assert!(changes.windows(2).all(|it| it[0].key < it[1].key));
    });
}
