//! One watch of a resource for several loops of a node: each decodes of an object what it reads.
//!
//! No object is kept here. Who comes late, or begins anew, has everything told once more, to all, by a new list; who has not read yet
//! what was told finds the newest state of each object.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use corten_api::resources::{ENDPOINT_SLICES, SERVICES};
use corten_client::{Client, Identity, Informer, InformerEvent, InformerParams, decode};
use corten_meta::{Key, ObjectMeta, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::{
    keeping,
    kernel_table::{informer, poll_events},
};

/// Loops of one node begin together: what the first wants is not listed before the others have come.
const GATHER: Duration = Duration::from_millis(100);

/// What loops of one node watch together, where each watch is a stream from another machine. Clones are the same.
#[derive(Clone)]
pub struct NodeWatches {
    pub(crate) services: SharedWatch,
    pub(crate) slices: SharedWatch,
}

impl NodeWatches {
    pub fn new(client: &Client) -> Self {
        let of = |resource| SharedWatch::new(client.clone(), resource);
        Self { services: of(SERVICES), slices: of(ENDPOINT_SLICES) }
    }

    /// Runs until `shutdown` is ready.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        tokio::select! {
            biased;
            () = shutdown => {}
            () = self.services.run() => {}
            () = self.slices.run() => {}
        }
    }
}

/// See the module's documentation. Clones are the same.
#[derive(Clone)]
pub(crate) struct SharedWatch(Arc<Inner>);

struct Inner {
    client: Client,
    resource: Resource,
    readers: Mutex<Vec<Weak<Mutex<Inbox>>>>,
    /// A reader came.
    came: Notify,
}

/// What one reader has not read yet.
#[derive(Default)]
struct Inbox {
    /// The newest of each object: no more than there are objects.
    events: BTreeMap<Key, InformerEvent>,
    /// With this list of the watch it has been told everything; none before the watch knows of the reader.
    whole_at: Option<u64>,
    /// So many lists were told as a whole.
    n_lists: u64,
    waker: Option<Waker>,
}

/// One loop's look at a shared watch, as its own [`Informer`] would be.
pub(crate) struct Reader<T> {
    inbox: Arc<Mutex<Inbox>>,
    /// Of those lists the ones whose events have been read.
    n_lists: u64,
    /// What it does not want to see is gone for it.
    is_wanted: fn(&T) -> bool,
}

impl SharedWatch {
    pub(crate) fn new(client: Client, resource: Resource) -> Self {
        Self(Arc::new(Inner { client, resource, readers: Mutex::default(), came: Notify::new() }))
    }

    pub(crate) fn reader<T>(&self, is_wanted: fn(&T) -> bool) -> Reader<T> {
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        self.0.readers.lock().push(Arc::downgrade(&inbox));
        self.0.came.notify_one();
        Reader { inbox, n_lists: 0, is_wanted }
    }

    /// Never ends by itself.
    async fn run(&self) {
        self.0.came.notified().await;
        tokio::time::sleep(GATHER).await;
        // What packets follow is all that names are made of, too.
        let params = keeping::params(self.0.resource.clone(), keeping::PROXIED).seeded_by("node");
        let mut informer = Informer::new(self.0.client.clone(), params);
        self.welcome(1);
        loop {
            let event = tokio::select! {
                biased;
                () = self.0.came.notified() => None,
                event = informer.next() => Some(event),
            };
            match event {
                Some(event) => self.tell(event, informer.n_lists()),
                // Who has come in time was welcomed with the others.
                None if self.readers().all(|it| it.lock().whole_at.is_some()) => {}
                None => self.welcome(informer.replay()),
            }
        }
    }

    fn readers(&self) -> impl Iterator<Item = Arc<Mutex<Inbox>>> + use<> {
        let mut readers = self.0.readers.lock();
        readers.retain(|it| it.strong_count() > 0);
        readers.iter().filter_map(Weak::upgrade).collect::<Vec<_>>().into_iter()
    }

    /// Those that are new know everything with this list.
    fn welcome(&self, list: u64) {
        for reader in self.readers() {
            reader.lock().whole_at.get_or_insert(list);
        }
    }

    fn tell(&self, event: InformerEvent, n_lists: u64) {
        for inbox in self.readers() {
            let mut inbox = inbox.lock();
            match &event {
                InformerEvent::Applied(_, identity) => drop(inbox.events.insert(identity.key.clone(), event.clone())),
                InformerEvent::Deleted(meta) => drop(inbox.events.insert(meta.key(), event.clone())),
                InformerEvent::Synced(_) if inbox.whole_at.is_some_and(|it| n_lists >= it) => inbox.n_lists = n_lists,
                InformerEvent::Synced(_) => continue,
            }
            if let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
    }
}

impl<T: DeserializeOwned> Reader<T> {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<InformerEvent<T>> {
        loop {
            let mut inbox = self.inbox.lock();
            let Some((_, event)) = inbox.events.pop_first() else {
                if self.n_lists < inbox.n_lists {
                    self.n_lists = inbox.n_lists;
                    return Poll::Ready(InformerEvent::Synced(String::new()));
                }
                inbox.waker = Some(context.waker().clone());
                return Poll::Pending;
            };
            drop(inbox);
            let (bytes, identity) = match event {
                InformerEvent::Applied(bytes, identity) => (bytes, identity),
                InformerEvent::Deleted(meta) => return Poll::Ready(InformerEvent::Deleted(meta)),
                InformerEvent::Synced(_) => continue,
            };
            match decode::<T>(&bytes) {
                Ok(object) if (self.is_wanted)(&object) => {
                    return Poll::Ready(InformerEvent::Applied(object, identity));
                }
                Ok(_) => return Poll::Ready(InformerEvent::Deleted(ended(identity))),
                Err(error) => tracing::warn!(key = %identity.key, %error, "an object is left out of the cache"),
            }
        }
    }
}

fn ended(identity: Identity) -> ObjectMeta {
    let Identity { key, uid, version } = identity;
    ObjectMeta { name: key.name, namespace: key.namespace, uid, resource_version: version, ..ObjectMeta::default() }
}

/// Where a loop sees a resource: by a watch of its own, or by one that others see by, too.
pub(crate) enum EventSource<T> {
    Own(Box<Informer<T>>),
    Shared(Reader<T>),
}

impl<T: DeserializeOwned + 'static> EventSource<T> {
    /// By the shared watch where there is one. The parameters of its own select no less than `is_wanted`.
    pub(crate) fn new(
        client: &Client,
        params: InformerParams,
        shared: Option<&SharedWatch>,
        is_wanted: fn(&T) -> bool,
    ) -> Self {
        if let Some(shared) = shared {
            return Self::Shared(shared.reader(is_wanted));
        }
        Self::Own(Box::new(informer(client, params)))
    }

    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<InformerEvent<T>> {
        match self {
            Self::Own(informer) => informer.poll_event(context),
            Self::Shared(reader) => reader.poll_event(context),
        }
    }

    /// Takes in what there is, up to a batch.
    pub(crate) fn poll_events<E>(
        &mut self,
        context: &mut Context<'_>,
        events: &mut Vec<E>,
        applied: impl Fn(T) -> E,
        gone: impl Fn(Key) -> Option<E>,
    ) {
        poll_events(|context| self.poll_event(context), context, events, applied, gone);
    }

    pub(crate) fn n_lists(&self) -> u64 {
        match self {
            Self::Own(informer) => informer.n_lists(),
            Self::Shared(reader) => reader.n_lists,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::fake::FakeApi;

    #[derive(Deserialize)]
    struct Named {
        metadata: ObjectMeta,
    }

    /// Reads what there is: `a` where it is there, `-a` where it is gone, `.` where all of a list is known.
    async fn read(source: &mut EventSource<Named>) -> String {
        let mut words = Vec::new();
        // What is told is read after a moment; then there is nothing more.
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::future::poll_fn(|context| {
            while let Poll::Ready(event) = source.poll_event(context) {
                words.push(match event {
                    InformerEvent::Applied(object, _) => object.metadata.name,
                    InformerEvent::Deleted(meta) => format!("-{}", meta.name),
                    InformerEvent::Synced(_) => ".".into(),
                });
            }
            Poll::Ready(())
        })
        .await;
        words.join(" ")
    }

    fn put(api: &FakeApi, name: &str, labels: &serde_json::Value) {
        let metadata = json!({ "name": name, "namespace": "default", "labels": labels });
        api.put(&format!("/api/v1/namespaces/default/services/{name}"), json!({ "metadata": metadata }));
    }

    #[tokio::test(start_paused = true)]
    async fn all_see_by_one_watch_and_who_comes_late_sees_everything() {
        let api = FakeApi::new();
        put(&api, "a", &json!({}));
        put(&api, "b", &json!({ "hidden": "yes" }));
        let watches = NodeWatches::new(&api.client());
        let source = |is_wanted| {
            let params = InformerParams::all(SERVICES);
            EventSource::<Named>::new(&api.client(), params, Some(&watches.services), is_wanted)
        };
        let (mut all, mut some) = (source(|_| true), source(|it| it.metadata.labels.is_empty()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(watches.clone().run(async { drop(stopped.await) }));
        assert_eq!((&*read(&mut all).await, &*read(&mut some).await), ("a b .", "a -b ."));
        // Who is slow finds the newest state of each.
        put(&api, "c", &json!({}));
        put(&api, "a", &json!({ "hidden": "yes" }));
        api.remove("/api/v1/namespaces/default/services/c");
        put(&api, "b", &json!({}));
        assert_eq!((&*read(&mut all).await, &*read(&mut some).await), ("a b -c", "-a b -c"));
        assert_eq!((all.n_lists(), some.n_lists()), (1, 1));
        // One begins anew: it does not know everything before it was told.
        drop(some);
        let mut late = source(|_| true);
        assert_eq!(late.n_lists(), 0);
        assert_eq!(read(&mut late).await, "a b .");
        assert!(late.n_lists() > 0);
        assert_eq!(read(&mut all).await, "a b .");
        put(&api, "d", &json!({}));
        assert_eq!((&*read(&mut all).await, &*read(&mut late).await), ("d", "d"));
        drop(stop);
        running.await.expect("it ends");
    }
}
