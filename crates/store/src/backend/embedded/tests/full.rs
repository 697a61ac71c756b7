//! A disk that fails: nothing is answered that is not durable, nothing that was answered is lost, reads go on.

use std::path::Path;

use super::{
    super::disk::{CHECKPOINT, Disk},
    *,
};
use crate::work::Work;

fn open_with_faults(dir: &Path) -> (Embedded, Disk) {
    let disk = Disk::new(dir);
    let store = Embedded::open_on(disk.clone(), Options::default()).expect("the store opens");
    (store, disk)
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        // However much of a frame still fits.
        for room in [0, 1, 11, 12, 30, 60] {
            let (store, disk) = open_with_faults(&dir.path().join(room.to_string()));
            assert_eq!(commit(&store, put("/a", "1")).await.expect("there is room"), 2);

            disk.faults.leave_room(room);
            let refused = commit(&store, put("/a", &"2".repeat(100))).await;
            assert!(matches!(refused, Err(Error::Io(_))), "{refused:?}");
            assert_eq!(store.revision(), 2);
            let entry = store.get(b"/a").await.expect("reads go on").expect("it is there");
            assert_eq!(&entry.value[..], b"1");

            disk.faults.make_room();
            assert_eq!(commit(&store, put("/b", "3")).await.expect("there is room again"), 3);
            drop(store);
            let store = open(&dir.path().join(room.to_string()));
            assert_eq!(store.revision(), 3);
            assert_eq!(store.get(b"/a").await.expect("reads work"), Some(entry));
        }
    });
}

/// As long as a copy of what lives has room, deleting makes room for more, whatever filled the disk: fresh data, or the same
/// written again and again.
#[test]
fn a_full_disk_comes_back_by_deletions() {
    const SIZE: u64 = 7 << 20;
    let dir = tempfile::tempdir().expect("a directory");
    let large = "x".repeat(100 << 10);
    let key = |n: usize| format!("/{n:05}");
    runtime().block_on(async {
        for (ahead, rewrites) in [(0, 0), (4 << 20, 0), (0, 30), (4 << 20, 30)] {
            let dir = dir.path().join(format!("{ahead}-{rewrites}"));
            let disk = Disk::new(&dir);
            disk.faults.be_of(SIZE);
            let options = Options { log_ahead: ahead, ..Options::default() };
            let store = Embedded::open_on(disk, options).expect("the store opens");
            let mut answered = std::collections::BTreeMap::new();
            for round in 0..2 {
                let mut n = 0;
                while let Ok(revision) = commit(&store, put(&key(n), &large)).await {
                    answered.insert(key(n), revision);
                    n += 1;
                }
                // Data, a copy of it, and the log.
                assert!(n >= 10, "{n} in round {round}, {ahead} ahead, {rewrites} rewrites");
                for _ in 0..rewrites {
                    let revision = commit(&store, put(&key(0), &large)).await.expect("what does not grow has room");
                    answered.insert(key(0), revision);
                }
                let half = 0..n / 2;
                for n in half {
                    commit(&store, delete(&key(n))).await.expect("what deletes has room");
                    answered.remove(&key(n));
                }
                commit(&store, put("/after", &large)).await.expect("a large write goes through again");
                commit(&store, delete("/after")).await.expect("what deletes has room");
            }
            drop(store);
            let store = Embedded::open(&dir, options).expect("the store opens");
            let found = store.range(crate::Range::prefix("/"), None, 0).await.expect("reads work").entries;
            let found: Vec<_> =
                found.iter().map(|it| (String::from_utf8_lossy(&it.key).into_owned(), it.mod_revision)).collect();
            assert_eq!(found, answered.into_iter().collect::<Vec<_>>());
        }
    });
}

/// Whoever deletes tells the object so first, which makes it a little larger: that has room, too, where others have left none.
#[test]
fn on_a_disk_that_others_filled_objects_are_marked_and_deleted() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = Disk::new(dir.path());
    let options = Options { log_ahead: 64 << 10, ..Options::default() };
    let store = Embedded::open_on(disk.clone(), options).expect("the store opens");
    let value = "x".repeat(100 << 10);
    runtime().block_on(async {
        for n in 0..10 {
            commit(&store, put(&format!("/{n}"), &value)).await.expect("there is room");
        }
        disk.faults.be_filled(dir.path());
        assert!(commit(&store, put("/more", &value)).await.is_err(), "it is full");
        for n in 0..10 {
            let marked = format!("{value}{}", "deletionTimestamp".repeat(20));
            commit(&store, put(&format!("/{n}"), &marked)).await.expect("it is marked");
            commit(&store, delete(&format!("/{n}"))).await.expect("it is deleted");
        }
        commit(&store, put("/more", &value)).await.expect("there is room again");
    });
    drop(store);
    let store = open(dir.path());
    let left = runtime().block_on(store.range(crate::Range::prefix("/"), None, 0)).expect("reads work");
    assert_eq!(left.entries.len(), 1);
}

/// Who writes beside the queue has requests to serve: a checkpoint that makes room is the writer's own to wait for.
#[test]
fn room_is_made_by_the_writers_own_thread() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = Disk::new(dir.path());
    disk.faults.be_of(2 << 20);
    let options = Options { log_ahead: 0, ..Options::default() };
    let store = Embedded::open_on(disk, options).expect("the store opens");
    let txn = put("/a", &"x".repeat(100 << 10));
    let checkpoints = || {
        let files = std::fs::read_dir(dir.path()).expect("there").flatten();
        files.filter(|it| it.path().extension().is_some_and(|it| it == CHECKPOINT)).count()
    };
    let refused = (0..100).find(|_| {
        let before = (store.revision(), checkpoints());
        let outcome = store.writer.lock().commit_at_once(&Work::Txn(txn.clone()));
        if outcome.is_none() {
            assert_eq!((store.revision(), checkpoints()), before, "nothing was written");
        }
        outcome.map(|it| it.expect("written")).is_none()
    });
    assert!(refused.is_some_and(|it| it > 3), "{refused:?}");
    let before = store.revision();
    let revision = runtime().block_on(commit(&store, txn.clone())).expect("the queue makes room");
    assert_eq!((revision, checkpoints()), (before + 1, 1));
    assert!(store.writer.lock().commit_at_once(&Work::Txn(txn.clone())).is_some(), "there is room again");
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_the_store_is_reopened() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        for truncate_fails in [false, true] {
            let dir = dir.path().join(truncate_fails.to_string());
            let (store, disk) = open_with_faults(&dir);
            commit(&store, put("/a", "1")).await.expect("the disk works");
            assert!(!store.must_be_reopened());

            disk.faults.fail_sync(true);
            disk.faults.fail_truncate(truncate_fails);
            assert!(commit(&store, put("/a", "2")).await.is_err());
            disk.faults.fail_sync(false);
            disk.faults.fail_truncate(false);
            let error = commit(&store, put("/a", "3")).await.expect_err("writes are refused").to_string();
            assert!(error.contains("until the store is reopened") && store.must_be_reopened(), "{error}");
            assert_eq!(store.revision(), 2);
            assert_eq!(store.range(crate::Range::prefix("/"), None, 0).await.expect("reads go on").entries.len(), 1);

            drop(store);
            let store = open(&dir);
            assert!(!store.must_be_reopened());
            commit(&store, put("/a", "4")).await.expect("writes go on");
        }
    });
}

#[test]
fn a_checkpoint_that_does_not_fit_costs_nothing_but_space() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let disk = Disk::new(dir.path());
        let store = Embedded::open_on(disk.clone(), busy()).expect("the store opens");
        let mut last = 0;
        for n in 0..400_i64 {
            // Sooner or later the room ends in a checkpoint or in the header of a new log.
            disk.faults.leave_room(if n % 7 == 0 { n } else { 100 });
            match commit(&store, put(&format!("/{}", n % 50), &n.to_string().repeat(10))).await {
                Ok(revision) => last = revision,
                Err(error) => assert!(matches!(error, Error::Io(_)), "{error}"),
            }
        }
        let before = store.range(crate::Range::prefix("/"), None, 0).await.expect("reads go on");
        drop(store);
        let store = open(dir.path());
        assert_eq!(store.revision(), last);
        assert_eq!(store.range(crate::Range::prefix("/"), None, 0).await.expect("reads work").entries, before.entries);
    });
}
