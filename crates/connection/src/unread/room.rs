//! What the unread answers of all connections take together. Beyond the bound whoever has most of it loses a connection: nobody else
//! waits for room.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use super::Answers;

pub struct UnreadRoom {
    bytes_max: i64,
    /// Below zero for a moment, where an answer goes before all who count it have come to it.
    bytes: AtomicI64,
    next: AtomicU64,
    connections: Mutex<BTreeMap<u64, Weak<Answers>>>,
    /// How many hold each frame, by where it is in memory: an event is one for all who watch it.
    frames: Mutex<HashMap<usize, usize>>,
}

impl UnreadRoom {
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: i64::try_from(bytes_max).unwrap_or(i64::MAX),
            bytes: AtomicI64::new(0),
            next: AtomicU64::new(0),
            connections: Mutex::default(),
            frames: Mutex::default(),
        })
    }

    pub(super) fn enter(&self, connection: Weak<Answers>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.connections.lock().insert(id, connection);
        id
    }

    pub(super) fn leave(&self, id: u64) {
        self.connections.lock().remove(&id);
    }

    pub(super) fn add(&self, bytes: u64) {
        let more = signed(bytes);
        if self.bytes.fetch_add(more, Ordering::Relaxed) + more > self.bytes_max {
            self.make_room();
        }
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(signed(bytes), Ordering::Relaxed);
    }

    /// A frame takes room once, however many hold it. True where there is more than there is room for now.
    pub(super) fn count_frame(&self, at: usize, bytes: u64) -> bool {
        let mut frames = self.frames.lock();
        let n_holders = frames.entry(at).or_default();
        *n_holders += 1;
        let more = if *n_holders == 1 { signed(bytes) } else { 0 };
        self.bytes.fetch_add(more, Ordering::Relaxed) + more > self.bytes_max
    }

    pub(super) fn remove_frame(&self, at: usize, bytes: u64) {
        let mut frames = self.frames.lock();
        let Some(n_holders) = frames.get_mut(&at) else { return };
        *n_holders -= 1;
        if *n_holders == 0 {
            frames.remove(&at);
            self.remove(bytes);
        }
    }

    pub(super) fn make_room(&self) {
        // One that is dropped enters here again to leave: not under the lock.
        let connections: Vec<_> = self.connections.lock().values().filter_map(Weak::upgrade).collect();
        while self.bytes.load(Ordering::Relaxed) > self.bytes_max {
            let n_holders = self.frames.lock().clone();
            let Some(largest) = largest_of_heaviest(&connections, &n_holders) else { return };
            largest.end();
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// What the connections of one asker hold.
struct Holding<'a> {
    bytes: u64,
    largest: &'a Arc<Answers>,
    bytes_of_largest: u64,
}

/// Of whoever has most in all, the connection that has most.
fn largest_of_heaviest<'c>(
    connections: &'c [Arc<Answers>],
    n_holders: &HashMap<usize, usize>,
) -> Option<&'c Arc<Answers>> {
    let mut askers: HashMap<Option<Arc<str>>, Holding<'_>> = HashMap::new();
    for connection in connections {
        let (asker, bytes) = connection.held(n_holders);
        let none = Holding { bytes: 0, largest: connection, bytes_of_largest: 0 };
        let holding = askers.entry(asker).or_insert(none);
        holding.bytes += bytes;
        if bytes > holding.bytes_of_largest {
            (holding.largest, holding.bytes_of_largest) = (connection, bytes);
        }
    }
    let heaviest = askers.into_values().filter(|it| it.bytes > 0).max_by_key(|it| it.bytes)?;
    Some(heaviest.largest)
}
