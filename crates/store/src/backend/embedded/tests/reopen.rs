//! Closing and opening: one process at a time, nothing lost, watches go on.

use std::{fs, ops::ControlFlow, os::unix::fs::PermissionsExt};

use super::{super::OpenError, *};
use crate::{LocalStore, Range, Transaction};

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let second = Embedded::open(dir.path(), busy());
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    drop(store);
    open(dir.path());
}

#[test]
fn only_the_owner_can_read_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("store");
    drop(open(&dir));
    let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in fs::read_dir(&dir).expect("a directory") {
        assert_eq!(mode(&file.expect("a file").path()), 0o600);
    }
}

#[test]
fn a_closed_store_refuses_and_reopens_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let store = open(dir.path());
        let mut last = 0;
        for n in 0..1_000 {
            last = commit(&store, put(&format!("/{}", n % 30), &"x".repeat(n % 200))).await.expect("the store writes");
        }
        let before = store.range(Range::prefix("/"), None, 0).await.expect("reads work");
        store.close().await;
        assert!(matches!(store.commit(put("/a", "1")).await, Err(Error::Closed)));
        assert!(matches!(store.get(b"/1").await, Err(Error::Closed)));

        // Closing has given up the lock.
        let store = open(dir.path());
        assert_eq!(store.revision(), last);
        assert_eq!(store.range(Range::prefix("/"), None, 0).await.expect("reads work"), before);
        assert_eq!(commit(&store, put("/a", "1")).await.expect("the store writes"), last + 1);
    });
}

#[test]
fn checkpoints_keep_the_files_small() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let store = open(dir.path());
        for n in 0..3_000 {
            commit(&store, put("/a", &n.to_string().repeat(50))).await.expect("the store writes");
        }
        store.close().await;
    });
    drop(open(dir.path()));
    let files = fs::read_dir(dir.path()).expect("a directory").map(|it| it.expect("an entry"));
    let size = |file: &fs::DirEntry| file.metadata().expect("it is there").len();
    let (reserve, content): (Vec<_>, Vec<_>) = files.partition(|it| it.file_name() == "reserve");
    let total = content.iter().map(size).sum::<u64>();
    assert!(total < 200 << 10, "{total} bytes for one small key");
    let held = reserve.iter().map(size).sum::<u64>();
    assert!(held <= 4 << 20, "{held} bytes held back for one small key");
}

#[test]
fn a_watch_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let store = Embedded::open(dir.path(), Options::default()).expect("the store opens");
        let seen = commit(&store, put("/a", "1")).await.expect("the store writes");
        commit(&store, put("/a", "2")).await.expect("the store writes");
        drop(store);

        let store = Embedded::open(dir.path(), Options::default()).expect("the store opens");
        let mut watch = store.watch(Range::prefix("/"), seen).await.expect("the history is kept");
        let changes = watch.next().await.expect("there is a change");
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].previous.as_ref().map(|it| it.mod_revision), Some(seen));
        assert_eq!(changes[0].entry.as_ref().map(|it| &it.value[..]), Some(&b"2"[..]));
    });
}

#[test]
fn versions_and_leases_last_in_logs_and_checkpoints() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let mut store = open(dir.path());
        for n in 0..400_u64 {
            let transaction = Transaction {
                bytes: 100,
                body: Arc::new(move |draft| {
                    draft.put(format!("/{}", n % 7).into(), "x".repeat(100).into(), n.cast_signed() % 3);
                    ControlFlow::Continue(())
                }),
            };
            store.transact(transaction).await.expect("the store writes");
            if n % 11 == 0 {
                commit(&store, delete("/3")).await.expect("the store writes");
            }
            if n % 97 == 0 {
                let before = store.range(Range::prefix("/"), None, 0).await.expect("reads work");
                store.close().await;
                store = open(dir.path());
                assert_eq!(store.range(Range::prefix("/"), None, 0).await.expect("reads work"), before);
            }
        }
        let entries = store.range(Range::prefix("/"), None, 0).await.expect("reads work").entries;
        assert!(entries.iter().any(|it| it.version > 40 && it.lease == 2), "{entries:?}");
    });
    assert!(
        fs::read_dir(dir.path())
            .expect("a directory")
            .flatten()
            .any(|it| it.path().extension().is_some_and(|it| it == "checkpoint"))
    );
}

#[test]
fn files_of_the_first_version_are_read_and_gone_on_with_in_the_newest() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let store = open(dir.path());
        for value in ["1", "2", "3"] {
            commit(&store, put("/a", value)).await.expect("the store writes");
        }
        store.close().await;
        let log = dir.path().join("00000000000000000001.log");
        let mut bytes = fs::read(&log).expect("there is a log");
        assert_eq!(bytes[8..12], 2_u32.to_le_bytes());
        bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..24]).to_le_bytes();
        bytes[24..28].copy_from_slice(&crc);
        fs::write(&log, bytes).expect("it can be written");
        for _ in 0..2 {
            let store = open(dir.path());
            let entry = store.get(b"/a").await.expect("reads work").expect("it is there");
            assert_eq!((&entry.value[..], entry.mod_revision, entry.version), (&b"3"[..], 4, 3));
            store.close().await;
            // An older program is to refuse what it cannot read, and not to call it damaged.
            assert_eq!(fs::read(&log).expect("there is a log")[8..12], 2_u32.to_le_bytes());
        }
    });
}
