//! Random work on this engine and on memory must come to the same, across restarts; and no watch, at any speed, may
//! miss, repeat or reorder a change.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::*;
use crate::{Change, Changes, Compare, Page, Range, Revision, memory::Memory};

const SEEDS: u64 = 8;
const STEPS: u32 = 600;

/// SplitMix64: enough for tests, and the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }

    pub(super) fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).expect("below a usize")
    }

    fn key(&mut self) -> Bytes {
        format!("/{}/{}", ["a", "b", "b0"][self.index(3)], self.below(12)).into()
    }

    fn range(&mut self) -> Range {
        match self.below(4) {
            0 => Range::prefix("/"),
            1 => Range::prefix("/b"),
            2 => Range::prefix("/b/"),
            _ => Range { start: self.key(), end: std::ops::Bound::Excluded(self.key()) },
        }
    }

    fn txn(&mut self, known: &BTreeMap<Bytes, Revision>) -> Txn {
        let compares = (0..self.below(3)).map(|_| {
            let key = self.key();
            let right = known.get(&key).copied().unwrap_or(0);
            let mod_revision = if self.below(8) == 0 { self.below(50) } else { right };
            Compare { key, mod_revision }
        });
        let compares = compares.collect();
        let operations = (0..self.below(4)).map(|_| {
            let key = self.key();
            if self.below(3) == 0 {
                return Operation::Delete { key };
            }
            Operation::Put { key, value: vec![b'x'; self.index(80)].into() }
        });
        Txn { compares, operations: operations.collect() }
    }
}

#[test]
fn agrees_with_memory() {
    for seed in 0..SEEDS {
        let dir = tempfile::tempdir().expect("a directory");
        runtime().block_on(compare(seed, dir.path()));
    }
}

async fn compare(seed: u64, dir: &Path) {
    let mut random = Random(seed);
    let mut store = open(dir);
    let model = Memory::new();
    let mut known = BTreeMap::new();
    for step in 0..STEPS {
        let at = format!("seed {seed} step {step}");
        match random.below(20) {
            0 if random.below(4) == 0 => {
                drop(store);
                store = open(dir);
            }
            0..12 => {
                let txn = random.txn(&known);
                let outcome = model.commit(txn.clone()).await.expect("memory does not fail");
                assert_eq!(store.commit(txn).await.expect("the store writes"), outcome, "{at}");
                let page = model.range(Range::prefix("/"), None, 0).await.expect("memory does not fail");
                known = page.entries.into_iter().map(|it| (it.key, it.mod_revision)).collect();
            }
            12..15 => {
                let (range, limit) = (random.range(), random.index(8));
                let expected = model.range(range.clone(), None, limit).await.expect("memory does not fail");
                assert_eq!(store.range(range, None, limit).await.expect("reads work"), expected, "{at}");
            }
            15..18 => {
                let (range, revision) = (random.range(), 1 + random.below(model.revision()));
                let expected = model.range(range.clone(), Some(revision), 0).await.expect("memory does not fail");
                // A restart may have shortened the history.
                if let Some(page) = unless_compacted(store.range(range, Some(revision), 0).await) {
                    assert_eq!(page, expected, "{at}");
                }
            }
            _ => {
                let (range, after) = (random.range(), 1 + random.below(model.revision()));
                let expected = model.watch(range.clone(), after).await.expect("memory does not fail");
                if let Some(watch) = unless_compacted(store.watch(range, after).await) {
                    assert_eq!(ready(watch).await, ready(expected).await, "{at}");
                }
            }
        }
        assert_eq!(store.revision(), model.revision(), "{at}");
    }
    let all = |page: Result<Page, Error>| page.expect("reads work").entries;
    let expected = all(model.range(Range::prefix("/"), None, 0).await);
    assert_eq!(all(store.range(Range::prefix("/"), None, 0).await), expected, "seed {seed}");
}

fn unless_compacted<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(it) => Some(it),
        Err(Error::Compacted { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// What a watch has without waiting.
async fn ready(mut watch: Box<dyn Changes>) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Ok(batch) = tokio::time::timeout(std::time::Duration::ZERO, watch.next()).await {
        changes.extend(batch.expect("the watch goes on"));
    }
    changes
}

#[test]
fn watches_miss_repeat_and_reorder_nothing() {
    for seed in 0..SEEDS {
        let dir = tempfile::tempdir().expect("a directory");
        let history = Limits { changes: 300, bytes: 1 << 20 };
        let store = Embedded::open(dir.path(), Options { history, ..busy() }).expect("the store opens");
        runtime().block_on(watch_while_writing(seed, Arc::new(store)));
    }
}

async fn watch_while_writing(seed: u64, store: Arc<Embedded>) {
    let writers: Vec<_> = (0..4).map(|it| tokio::spawn(write(store.clone(), it, Random(seed * 100 + it)))).collect();
    let watchers: Vec<_> = (0..6).map(|it| tokio::spawn(follow(store.clone(), Random(seed * 1_000 + it)))).collect();
    let mut written = BTreeMap::new();
    for writer in writers {
        written.extend(writer.await.expect("a writer ends"));
    }
    store.close().await;
    let history = replay(&written);
    for watcher in watchers {
        for stream in watcher.await.expect("a watcher ends") {
            let span = history.iter().filter(|it| (stream.after + 1..=stream.until).contains(&it.0));
            let expected: Vec<_> = span.filter(|it| stream.range.contains(&it.1)).cloned().collect();
            let show = |it: Change| (it.revision, it.key, it.entry.map(|it| it.value));
            let mut changes: Vec<_> = stream.changes.into_iter().map(show).collect();
            assert!(changes.is_sorted_by_key(|it| it.0), "seed {seed}: reordered");
            changes.sort();
            assert_eq!(changes, expected, "seed {seed}: a watch after {} of {:?}", stream.after, stream.range);
        }
    }
}

/// Answers what it wrote. Each transaction changes something, so each has a revision of its own.
async fn write(store: Arc<Embedded>, writer: u64, mut random: Random) -> Vec<(Revision, Vec<Operation>)> {
    let mut written = Vec::new();
    for n in 0..200 {
        let mut operations = random.txn(&BTreeMap::new()).operations;
        operations.push(Operation::Put { key: format!("/b/w{writer}").into(), value: format!("{n}").into() });
        let revision = commit(&*store, Txn { compares: vec![], operations: operations.clone() }).await;
        written.push((revision.expect("the store writes"), operations));
    }
    written
}

/// What happened, worked out without the store: each change as revision, key, and value unless it was a deletion.
fn replay(written: &BTreeMap<Revision, Vec<Operation>>) -> Vec<(Revision, Bytes, Option<Bytes>)> {
    let mut live = BTreeMap::new();
    let mut history = Vec::new();
    for (revision, operations) in written {
        let mut after = live.clone();
        let mut touched = BTreeSet::new();
        for operation in operations.iter().cloned() {
            match operation {
                Operation::Put { key, value } => {
                    touched.insert(key.clone());
                    after.insert(key, value);
                }
                Operation::Delete { key } => {
                    after.remove(&key);
                    touched.insert(key);
                }
            }
        }
        touched.retain(|it| live.contains_key(it) || after.contains_key(it));
        history.extend(touched.into_iter().map(|key| (*revision, key.clone(), after.get(&key).cloned())));
        live = after;
    }
    history
}

/// One watch from its begin to its end; it has seen all of its range in `after..=until`.
struct Stream {
    range: Range,
    after: Revision,
    until: Revision,
    changes: Vec<Change>,
}

/// Watches at an uneven speed, again whenever it falls behind, until the store closes.
async fn follow(store: Arc<Embedded>, mut random: Random) -> Vec<Stream> {
    let mut streams = Vec::new();
    loop {
        let (range, after) = (random.range(), store.revision());
        let mut watch = match store.watch(range.clone(), after).await {
            Ok(watch) => watch,
            Err(Error::Compacted { .. }) => continue,
            Err(_) => return streams,
        };
        let mut stream = Stream { range, after, until: after, changes: Vec::new() };
        let end = loop {
            for _ in 0..random.below(20) {
                tokio::task::yield_now().await;
            }
            match watch.next().await {
                Ok(batch) => {
                    stream.until = batch.last().map_or(stream.until, |it| it.revision);
                    stream.changes.extend(batch);
                }
                Err(error) => break error,
            }
        };
        if matches!(end, Error::Closed) {
            stream.until = store.revision();
        }
        streams.push(stream);
        if matches!(end, Error::Closed) {
            return streams;
        }
    }
}
