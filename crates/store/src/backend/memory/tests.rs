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
