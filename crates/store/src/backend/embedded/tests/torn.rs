//! What a power cut leaves behind: the last write is there in whole, or not at all; older damage is told, not hidden.

use std::fs;

use super::{super::OpenError, *};

/// A log of three writes, and where each of them ends.
fn three_writes(dir: &Path) -> (std::path::PathBuf, Vec<u8>, Vec<usize>) {
    let log = dir.join(format!("{:020}.log", 1));
    let length = || usize::try_from(fs::metadata(&log).expect("there is a log").len()).expect("a length");
    let store = open(dir);
    let mut ends = vec![length()];
    runtime().block_on(async {
        for value in ["one", "two", "three"] {
            commit(&store, put("/key", value)).await.expect("the store writes");
            ends.push(length());
        }
    });
    drop(store);
    let bytes = fs::read(&log).expect("there is a log");
    (log, bytes, ends)
}

/// The store's revision after recovery, which must be of a store that works and that says the same when opened again.
fn recover(dir: &Path, values: &[&str]) -> u64 {
    let store = open(dir);
    let revision = store.revision();
    runtime().block_on(async {
        let value = store.get(b"/key").await.expect("reads work").map(|it| it.value);
        let expected = usize::try_from(revision - 1).ok().and_then(|n| n.checked_sub(1)).map(|idx| values[idx]);
        assert_eq!(value.as_deref(), expected.map(str::as_bytes));
        assert_eq!(commit(&store, put("/other", "x")).await.expect("the store writes"), revision + 1);
    });
    drop(store);
    assert_eq!(open(dir).revision(), revision + 1);
    revision
}

#[test]
fn cut_at_every_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let (log, bytes, ends) = three_writes(dir.path());
    for cut in ends[0]..=bytes.len() {
        fs::write(&log, &bytes[..cut]).expect("the log is writable");
        let whole = ends.iter().filter(|it| **it <= cut).count();
        assert_eq!(recover(dir.path(), &["one", "two", "three"]), whole as u64, "cut at {cut}");
    }
}

#[test]
fn one_flipped_bit_in_every_byte() {
    let dir = tempfile::tempdir().expect("a directory");
    let (log, bytes, ends) = three_writes(dir.path());
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 1 << (at % 8);
        fs::write(&log, &broken).expect("the log is writable");
        if at >= ends[2] {
            // Cannot be told from a write that a crash interrupted.
            assert_eq!(recover(dir.path(), &["one", "two", "three"]), 3, "flipped at {at}");
        } else {
            let opened = Embedded::open(dir.path(), busy());
            assert!(matches!(opened, Err(OpenError::Damaged { .. })), "flipped at {at}");
            assert_eq!(fs::read(&log).expect("the log is readable"), broken, "a refused log is left as it is");
        }
    }
}

#[test]
fn garbage_and_zeros_behind_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let (log, bytes, _) = three_writes(dir.path());
    for tail in [&[0; 4096][..], &[0xff; 100], b"CTRN", &bytes[..28]] {
        fs::write(&log, [&bytes, tail].concat()).expect("the log is writable");
        assert_eq!(recover(dir.path(), &["one", "two", "three"]), 4);
    }
}

#[test]
fn a_value_that_looks_like_a_log_is_only_a_value() {
    let dir = tempfile::tempdir().expect("a directory");
    let (log, bytes, _) = three_writes(dir.path());
    let other = dir.path().join("other");
    let store = open(&other);
    let operation = Operation::Put { key: "/log".into(), value: bytes.into() };
    runtime()
        .block_on(async { store.commit(Txn { compares: vec![], operations: vec![operation] }).await })
        .expect("ok");
    drop(store);
    let log = other.join(log.file_name().expect("it has a name"));
    let whole = fs::read(&log).expect("there is a log");
    fs::write(&log, &whole[..whole.len() - 1]).expect("the log is writable");
    assert_eq!(open(&other).revision(), 1);
}

#[test]
fn missing_and_damaged_files_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let names = |kind: &str| {
        let files = fs::read_dir(dir.path()).expect("a directory");
        let mut paths: Vec<_> = files.map(|it| it.expect("a file").path()).collect();
        paths.retain(|it| it.extension().is_some_and(|it| it == kind));
        paths.sort();
        paths
    };
    runtime().block_on(async {
        let store = open(dir.path());
        let mut n = 0;
        while names("checkpoint").is_empty() {
            commit(&store, put(&format!("/{}", n % 20), &"x".repeat(50))).await.expect("the store writes");
            n += 1;
        }
    });
    drop(open(dir.path()));

    let damaged = || matches!(Embedded::open(dir.path(), busy()), Err(OpenError::Damaged { .. }));
    let checkpoint = names("checkpoint").pop().expect("there is a checkpoint");
    let bytes = fs::read(&checkpoint).expect("it is readable");
    for at in (0..bytes.len()).step_by(13) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x10;
        fs::write(&checkpoint, &broken).expect("it is writable");
        assert!(damaged(), "flipped at {at}");
        fs::write(&checkpoint, &bytes[..at]).expect("it is writable");
        assert!(damaged(), "cut at {at}");
    }
    fs::write(&checkpoint, &bytes).expect("it is writable");
    drop(open(dir.path()));
    let logs = names("log");
    fs::remove_file(&logs[0]).expect("it can be deleted");
    assert!(damaged());
    // Without anything at all it is no new store either.
    names("log").iter().chain(&names("checkpoint")).for_each(|it| fs::remove_file(it).expect("it can be deleted"));
    assert!(damaged());
}

#[test]
fn a_start_that_came_to_nothing_is_no_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("lock"), "").expect("the directory is writable");
    runtime().block_on(async {
        commit(&open(dir.path()), put("/a", "one")).await.expect("the store writes");
    });
    let log = fs::read_dir(dir.path()).expect("a directory").map(|it| it.expect("a file").path());
    let log = log.filter(|it| it.extension().is_some_and(|it| it == "log")).last().expect("there is a log");
    fs::remove_file(log).expect("it can be deleted");
    assert!(matches!(Embedded::open(dir.path(), busy()), Err(OpenError::Damaged { .. })));
}
