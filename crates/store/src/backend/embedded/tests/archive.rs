//! Copies of a store that is open, and stores made of copies.

use std::{fs, os::unix::fs::PermissionsExt, sync::atomic::AtomicBool, sync::atomic::Ordering};

use super::{
    super::{Archive, ArchiveError, OpenError},
    *,
};
use crate::{Entry, Range};

async fn all(store: &Embedded, revision: Option<u64>) -> Vec<Entry> {
    store.range(Range::prefix("/"), revision, 0).await.expect("reads work").entries
}

fn entries(archive: &Archive) -> Vec<Entry> {
    archive.0.entries().cloned().collect()
}

#[test]
fn a_copy_is_whole_while_others_write() {
    let dir = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let (store, has_ended) = (Arc::new(open(dir.path())), Arc::new(AtomicBool::new(false)));
        commit(&*store, put("/first", "1")).await.expect("the store writes");
        let writing = {
            let (store, has_ended) = (store.clone(), has_ended.clone());
            tokio::spawn(async move {
                let mut n = 0;
                while !has_ended.load(Ordering::Relaxed) {
                    n += 1;
                    commit(&*store, put(&format!("/{}", n % 40), &"x".repeat(n % 300))).await.expect("it writes");
                    if n % 7 == 0 {
                        commit(&*store, delete(&format!("/{}", n % 11))).await.expect("it writes");
                    }
                }
            })
        };
        for _ in 0..40 {
            let answered = store.revision();
            let dir = dir.path().to_owned();
            let copying = tokio::task::spawn_blocking(move || Archive::of_store(&dir, None));
            let copy = copying.await.expect("no panic").expect("it can be read");
            assert!(copy.revision() >= answered, "{} is older than what was answered: {answered}", copy.revision());
            // What is durable may be seen here a moment later.
            while store.revision() < copy.revision() {
                tokio::task::yield_now().await;
            }
            assert_eq!(entries(&copy), all(&store, Some(copy.revision())).await);
        }
        has_ended.store(true, Ordering::Relaxed);
        writing.await.expect("no panic");
        assert!(dir.path().read_dir().expect("a directory").count() > 1);
    });
}

#[test]
fn a_copy_becomes_a_store_that_is_ahead_of_what_was_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, file, to) = (dir.path().join("from"), dir.path().join("copy"), dir.path().join("to"));
    runtime().block_on(async {
        let store = open(&from);
        for n in 0..30 {
            commit(&store, put(&format!("/{}", n % 9), &n.to_string())).await.expect("the store writes");
        }
        Archive::of_store(&from, Some(21)).expect("it is in the log").save(&file).expect("a new file");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
        let copy = Archive::of_file(&file).expect("it was just written");
        let expected = all(&store, Some(21)).await;
        assert_eq!((copy.revision(), copy.n_keys(), entries(&copy)), (21, 9, expected.clone()));
        assert_eq!(copy.hash(), Archive::of_store(&from, Some(21)).expect("it is in the log").hash());
        assert_ne!(copy.hash(), Archive::of_store(&from, None).expect("it is in the log").hash());
        assert!(matches!(copy.save(&file), Err(ArchiveError::Exists { .. })));

        assert_eq!(copy.restore(&to, 1_000).expect("an empty folder"), 1_021);
        let restored = open(&to);
        assert_eq!((restored.revision(), all(&restored, None).await), (1_021, expected));
        let watched = restored.watch(Range::prefix("/"), 25).await.err();
        assert!(matches!(watched, Some(Error::Compacted { asked: 25, oldest: 1_021 })), "{watched:?}");
        assert_eq!(commit(&restored, put("/new", "")).await.expect("it writes"), 1_022);
        drop(restored);
        assert_eq!(open(&to).revision(), 1_022);
    });
}

#[test]
fn what_cannot_be_copied_or_restored_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, file, empty) = (dir.path().join("from"), dir.path().join("copy"), dir.path().join("empty"));
    fs::create_dir(&empty).expect("a folder");
    assert!(matches!(Archive::of_store(&empty, None), Err(ArchiveError::NoStore { .. })));
    runtime().block_on(async {
        let store = open(&from);
        // A log of more than 4 KiB is followed by a checkpoint.
        for n in 0..40 {
            commit(&store, put(&format!("/{n}"), &"x".repeat(500))).await.expect("the store writes");
        }
        store.close().await;
    });
    for asked in [2, 99] {
        let Err(ArchiveError::NoRevision { oldest, newest: 41, .. }) = Archive::of_store(&from, Some(asked)) else {
            panic!("{asked} is not there");
        };
        assert!(oldest > 2, "there was no checkpoint");
    }
    let copy = || Archive::of_store(&from, None).expect("it can be read");
    assert!(matches!(copy().restore(&from, 0), Err(ArchiveError::Exists { .. })));
    drop(open(&from));

    copy().save(&file).expect("a new file");
    let mut bytes = fs::read(&file).expect("it was written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).expect("it can be written");
    assert!(matches!(Archive::of_file(&file), Err(ArchiveError::Unreadable(_))));
    fs::write(&file, &bytes[..middle]).expect("it can be written");
    assert!(matches!(Archive::of_file(&file), Err(ArchiveError::Unreadable(_))));
}

/// As `kill -9` leaves it, at every step: nobody takes what is there for a store, and it is restored anew.
#[test]
fn what_an_interrupted_restore_has_left_is_no_store() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let store = open(&from);
    runtime().block_on(async {
        commit(&store, put("/a", "1")).await.expect("the store writes");
        store.close().await;
    });
    drop(store);
    let copy = || Archive::of_store(&from, None).expect("it can be read");
    let revision = copy().restore(&to, 100).expect("an empty folder");
    let name = |kind: &str| to.join(format!("{revision:020}.{kind}"));
    for left in [
        &[][..],
        &["checkpoint.unfinished"],
        &["checkpoint"],
        &["checkpoint", "log.unfinished"],
        &["checkpoint", "log"],
    ] {
        for file in fs::read_dir(&to).expect("a folder") {
            fs::remove_file(file.expect("a file").path()).expect("it goes");
        }
        fs::write(to.join("lock"), "restoring\n").expect("it can be written");
        left.iter().for_each(|it| fs::write(name(it), "half of it").expect("it can be written"));
        let opened = Embedded::open(&to, busy()).err().expect("nobody opens it").to_string();
        assert!(opened.contains("was interrupted") && opened.contains("corten snapshot restore"), "{opened}");
        assert!(matches!(Archive::of_store(&to, None), Err(ArchiveError::Unreadable(OpenError::HalfRestored { .. }))));
        assert_eq!(copy().restore(&to, 100).expect("it is restored anew"), revision);
        let restored = open(&to);
        assert_eq!(restored.revision(), revision, "{left:?}");
        drop(restored);
        assert!(matches!(copy().restore(&to, 100), Err(ArchiveError::Exists { .. })));
    }
}
