//! What only this engine has: files, and everything that can happen to them.

mod archive;
mod crash;
pub(super) mod faults;
mod full;
mod lost;
mod model;
mod reopen;
mod torn;

use std::{path::Path, sync::Arc};

use tokio::runtime::{Builder, Runtime};

use super::{Embedded, Options};
use crate::{Error, Limits, LocalStore, Operation, Outcome, Store, Txn, conformance};

/// Checkpoints come often, so that tests meet them.
fn busy() -> Options {
    Options { log_bytes_min: 4 << 10, log_ahead: 0, ..Options::default() }
}

fn open(dir: &Path) -> Embedded {
    Embedded::open(dir, busy()).expect("the store opens")
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime starts")
}

fn put(key: &str, value: &str) -> Txn {
    let operation = Operation::Put { key: key.to_owned().into(), value: value.to_owned().into() };
    Txn { compares: vec![], operations: vec![operation] }
}

fn delete(key: &str) -> Txn {
    Txn { compares: vec![], operations: vec![Operation::Delete { key: key.to_owned().into() }] }
}

async fn commit(store: &dyn Store, txn: Txn) -> Result<u64, Error> {
    match store.commit(txn).await? {
        Outcome::Committed(revision) => Ok(revision),
        Outcome::Conflict(entry) => panic!("an unconditional commit met a conflict: {entry:?}"),
    }
}

#[test]
fn keeps_the_contract() {
    let dir = tempfile::tempdir().expect("a directory");
    let n = std::sync::atomic::AtomicUsize::new(0);
    let make = |history: Limits| {
        let dir = dir.path().join(n.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        let store = Embedded::open(&dir, Options { history, ..busy() }).expect("the store opens");
        Arc::new(store) as Arc<dyn Store>
    };
    runtime().block_on(conformance::run(&make));
    let make = || {
        let dir = dir.path().join(n.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string());
        Arc::new(open(&dir)) as Arc<dyn LocalStore>
    };
    runtime().block_on(conformance::run_local(&make));
}
