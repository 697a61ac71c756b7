//! What the loops of many nodes see together, where one process acts for them all: one set of informers, and one log of what has come.
//! Each loop has a place in the log. A change wakes those whom it concerns ([`Known`]); the others read on from their place when they
//! are next awake, before they decide anything.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use corten_client::Client;
use corten_provisioner::{Event, Known};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::storage_source::Informers;

/// With more than that in the log all are woken, to read it: what all have read goes.
const LOG_MAX: usize = 1024;

/// See the module's documentation. Clones are the same informers, which see nothing before a loop begins that reads them.
#[derive(Clone)]
pub struct SharedStorage(Arc<Inner>);

struct Inner {
    client: Client,
    state: Mutex<State>,
    /// Of the task that runs it.
    waker: AtomicWaker,
}

struct State {
    informers: Option<Informers>,
    known: Known,
    log: VecDeque<Event>,
    /// So many have left the log.
    n_left: usize,
    readers: BTreeMap<usize, Reader>,
    n_readers: usize,
}

struct Reader {
    node: String,
    /// So many it has read.
    n_read: usize,
    waker: Option<Waker>,
    /// Where the node's drivers of others are asked, too: it is woken by everything, and has yet to read this of Pods and nodes. They are
    /// many, and no other loop's business.
    of_drivers: Option<Vec<Event>>,
}

impl Reader {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// One loop's place.
pub(super) struct StorageReader {
    shared: Arc<Inner>,
    id: usize,
    /// What was known when it began.
    told: Vec<Event>,
}

impl SharedStorage {
    /// Sees through `client`, for nodes that have this driver.
    pub fn new(client: Client, driver: &'static str) -> Self {
        let state = State {
            informers: None,
            known: Known::new(driver),
            log: VecDeque::new(),
            n_left: 0,
            readers: BTreeMap::new(),
            n_readers: 0,
        };
        Self(Arc::new(Inner { client, state: Mutex::new(state), waker: AtomicWaker::new() }))
    }

    /// Tells the loops what comes; never ends by itself.
    pub async fn run(self) {
        std::future::poll_fn(|context| {
            self.poll(context);
            Poll::<()>::Pending
        })
        .await;
    }

    fn poll(&self, context: &mut Context<'_>) {
        self.0.waker.register(context.waker());
        let mut state = self.0.state.lock();
        while let Some(informers) = &mut state.informers {
            let events = informers.poll(context);
            if events.is_empty() {
                return;
            }
            events.into_iter().for_each(|it| state.tell(it));
        }
    }

    pub(super) fn reader(&self, node: &str) -> StorageReader {
        let mut state = self.0.state.lock();
        if state.informers.is_none() {
            state.informers = Some(Informers::new(&self.0.client, "joined nodes"));
            self.0.waker.wake();
        }
        let (id, n_read) = (state.n_readers, state.n_left + state.log.len());
        state.n_readers += 1;
        state.readers.insert(id, Reader { node: node.to_owned(), n_read, waker: None, of_drivers: None });
        StorageReader { shared: self.0.clone(), id, told: state.known.told() }
    }
}

impl State {
    fn tell(&mut self, event: Event) {
        let whom = self.known.take(&event);
        if event.is_of_pods_or_nodes() {
            for reader in self.readers.values_mut() {
                let Some(unread) = &mut reader.of_drivers else { continue };
                unread.push(event.clone());
                reader.wake();
            }
            return;
        }
        self.log.push_back(event);
        let is_long = self.log.len() > LOG_MAX;
        let is_concerned = |it: &&mut Reader| is_long || it.of_drivers.is_some() || whom.is(&it.node);
        self.readers.values_mut().filter(is_concerned).for_each(Reader::wake);
        if is_long {
            self.trim();
        }
    }

    /// What all have read goes.
    fn trim(&mut self) {
        let end = self.n_left + self.log.len();
        let read = self.readers.values().map(|it| it.n_read).min().unwrap_or(end);
        self.log.drain(..read - self.n_left);
        self.n_left = read;
    }
}

impl StorageReader {
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.told);
        let mut state = self.shared.state.lock();
        let State { log, n_left, readers, .. } = &mut *state;
        let Some(reader) = readers.get_mut(&self.id) else { return events };
        events.extend(reader.of_drivers.iter_mut().flat_map(std::mem::take));
        events.extend(log.range(reader.n_read - *n_left..).cloned());
        reader.n_read = *n_left + log.len();
        if events.is_empty() && !reader.waker.as_ref().is_some_and(|it| it.will_wake(context.waker())) {
            reader.waker = Some(context.waker().clone());
        }
        events
    }

    /// See [`super::storage_source::StorageSource::show_drivers`]. All that is known already is read next.
    pub(super) fn show_drivers(&self, viewer: &Client, are_placed: bool) {
        let mut state = self.shared.state.lock();
        if let Some(informers) = &mut state.informers {
            informers.show_drivers(viewer, "joined nodes", are_placed);
            self.shared.waker.wake();
        }
        let State { known, readers, .. } = &mut *state;
        if let Some(reader) = readers.get_mut(&self.id)
            && reader.of_drivers.is_none()
        {
            reader.of_drivers = Some(known.told_of_drivers());
        }
    }
}

impl Drop for StorageReader {
    fn drop(&mut self) {
        self.shared.state.lock().readers.remove(&self.id);
    }
}
