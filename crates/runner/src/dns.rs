//! Feeds the name server: watches what names are made of, publishes a zone after each change, keeps the Service `kube-dns`.
//!
//! The server answers from the last zone whatever becomes of the API meanwhile. Where another machine may be the API's, the zone is
//! kept for a start without it.

use std::{pin::pin, sync::Arc, task::Poll, time::Duration};

use corten_api::resources::{ENDPOINT_SLICES, NAMESPACES, SERVICES};
use corten_client::{
    Backoff, BoxFuture, Client, DeleteParams, Error, Identity, Informer, InformerEvent, InformerParams, PatchType,
    decode,
};
use corten_dns::{Change, EndpointSlice, Keeper, Namespace, ServerLocation, Service, Upkeep, Zone};
use corten_reconcile::{Actor, Decision, Wait};
use tokio::{
    sync::watch,
    time::{Instant, Sleep},
};

use crate::{Clock, JournalBook, NodeWatches, QueueCounts, shared_watch::EventSource};

/// So much is taken in before a zone is published.
const BATCH: usize = 1024;
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(3600);

/// How soon the first zone is kept, and how often one that has changed.
const KEEP_FIRST: Duration = Duration::from_secs(1);
const KEEP_AGAIN: Duration = Duration::from_secs(60);

/// Where zones go to.
pub trait NameHands: Send + Sync + 'static {
    fn publish(&self, zone: Zone);
    /// Is a zone to be kept for the next start?
    fn keeps(&self) -> bool;
    /// Keeps it, as [`Keeper::kept`] writes it.
    fn keep(&self, zone: String) -> BoxFuture<'_, ()>;
}

/// What the loop is given.
pub struct NameSettings {
    pub client: Client,
    /// What it watches together with other loops of the node.
    pub watches: Option<NodeWatches>,
    pub keeper: Keeper,
    pub hands: Arc<dyn NameHands>,
    /// Where it has the Service lead to, whenever it is told to; none where other nodes do that.
    pub upkeep: Option<(ServerLocation, watch::Receiver<bool>)>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

/// Runs until `shutdown` is ready.
pub async fn run_dns(settings: NameSettings, shutdown: impl Future<Output = ()> + Send) {
    let NameSettings { client, watches, keeper, hands, upkeep, clock, journal } = settings;
    let mut shutdown = pin!(shutdown);
    let mut informers = SharedInformers::new((&client, watches.as_ref()), keeper, journal.queue("dns"));
    let (place, mut leads) = upkeep.unzip();
    let mut service_writer = place.map(|it| DnsServiceWriter::new(client, it, clock, journal));
    let mut keeping = Keeping { hands: hands.clone(), due: None, last: None };
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return keeping.end(&informers.keeper).await,
            () = informers.advance() => {
                hands.publish(informers.keeper.zone());
                keeping.note(&informers);
            }
            () = keeping.is_due() => keeping.keep(&informers.keeper).await,
            () = advanced(service_writer.as_mut()) => {}
            () = changed(leads.as_mut()) => {}
        }
        if let (Some(service_writer), Some(leads)) = (&mut service_writer, &leads)
            && informers.is_complete()
            && *leads.borrow()
        {
            service_writer.look(informers.service.as_ref(), informers.slice.as_ref());
        }
        tokio::task::yield_now().await;
    }
}

async fn advanced(service_writer: Option<&mut DnsServiceWriter>) {
    match service_writer {
        Some(service_writer) => service_writer.advance().await,
        None => std::future::pending().await,
    }
}

/// Ready when it has been told something else. Who can tell no more says nothing.
async fn changed(leads: Option<&mut watch::Receiver<bool>>) {
    let is_told = match leads {
        Some(leads) => leads.changed().await.is_ok(),
        None => false,
    };
    if !is_told {
        std::future::pending::<()>().await;
    }
}

/// When the zone is kept next.
struct Keeping {
    hands: Arc<dyn NameHands>,
    /// It has changed, and is kept then.
    due: Option<Instant>,
    last: Option<Instant>,
}

impl Keeping {
    fn note(&mut self, informers: &SharedInformers) {
        if self.due.is_none() && informers.is_complete() && self.hands.keeps() {
            let first = Instant::now() + KEEP_FIRST;
            self.due = Some(self.last.map_or(first, |it| first.max(it + KEEP_AGAIN)));
        }
    }

    async fn is_due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    async fn keep(&mut self, keeper: &Keeper) {
        (self.due, self.last) = (None, Some(Instant::now()));
        self.hands.keep(keeper.kept()).await;
    }

    async fn end(&mut self, keeper: &Keeper) {
        if self.due.is_some() {
            self.keep(keeper).await;
        }
    }
}

/// What is seen of the cluster.
struct SharedInformers {
    services: EventSource<Service>,
    slices: EventSource<EndpointSlice>,
    namespaces: Informer<Namespace>,
    keeper: Keeper,
    /// The name server's own.
    service: Option<Service>,
    slice: Option<EndpointSlice>,
    is_published: bool,
    counts: Arc<QueueCounts>,
}

impl SharedInformers {
    fn new((client, watches): (&Client, Option<&NodeWatches>), keeper: Keeper, counts: Arc<QueueCounts>) -> Self {
        let all = |resource| InformerParams::all(resource).seeded_by("dns");
        let (services, slices) = watches.map(|it| (&it.services, &it.slices)).unzip();
        Self {
            services: EventSource::new(client, all(SERVICES), services, |_| true),
            slices: EventSource::new(client, all(ENDPOINT_SLICES), slices, |_| true),
            namespaces: Informer::decoding(client.clone(), all(NAMESPACES), |bytes| {
                let object: Namespace = decode(&bytes)?;
                Ok((Identity::of(&object.metadata), object))
            }),
            keeper,
            service: None,
            slice: None,
            is_published: false,
            counts,
        }
    }

    fn is_complete(&self) -> bool {
        self.services.n_lists() > 0 && self.slices.n_lists() > 0 && self.namespaces.n_lists() > 0
    }

    /// Takes in what there is; pending while there is nothing. Nothing is lost where the caller stops waiting.
    async fn advance(&mut self) {
        std::future::poll_fn(|context| {
            let mut n = 0;
            while n < BATCH {
                let before = n;
                if let Poll::Ready(event) = self.services.poll_event(context) {
                    self.take_service(event);
                    n += 1;
                }
                if let Poll::Ready(event) = self.slices.poll_event(context) {
                    self.take_slice(event);
                    n += 1;
                }
                if let Poll::Ready(event) = self.namespaces.poll_event(context) {
                    self.take_namespace(event);
                    n += 1;
                }
                if n == before {
                    break;
                }
            }
            if n == 0 {
                return Poll::Pending;
            }
            if self.is_complete() && !self.is_published {
                self.apply(Change::Complete);
                self.is_published = true;
            }
            Poll::Ready(())
        })
        .await;
    }

    fn apply(&mut self, change: Change) {
        let begun = self.counts.thinking.begin(None);
        begun.about(Some(corten_dns::key()), Some((SERVICES, corten_dns::key())));
        self.keeper.apply(change);
    }

    fn take_service(&mut self, event: InformerEvent<Service>) {
        match event {
            InformerEvent::Applied(service, identity) => {
                if identity.key == corten_dns::key() {
                    self.service = Some(service.clone());
                }
                self.apply(Change::Service(service));
            }
            InformerEvent::Deleted(meta) => {
                if meta.key() == corten_dns::key() {
                    self.service = None;
                }
                self.apply(Change::ServiceGone(meta.key()));
            }
            InformerEvent::Synced(_) => {}
        }
    }

    fn take_slice(&mut self, event: InformerEvent<EndpointSlice>) {
        match event {
            InformerEvent::Applied(slice, identity) => {
                if identity.key == corten_dns::key() {
                    self.slice = Some(slice.clone());
                }
                self.apply(Change::Slice(slice));
            }
            InformerEvent::Deleted(meta) => {
                if meta.key() == corten_dns::key() {
                    self.slice = None;
                }
                self.apply(Change::SliceGone(meta.key()));
            }
            InformerEvent::Synced(_) => {}
        }
    }

    fn take_namespace(&mut self, event: InformerEvent<Namespace>) {
        match event {
            InformerEvent::Applied(_, identity) => self.apply(Change::Namespace(identity.key.name)),
            InformerEvent::Deleted(meta) => self.apply(Change::NamespaceGone(meta.name)),
            InformerEvent::Synced(_) => {}
        }
    }
}

/// Writes the Service and the EndpointSlice of the name server, one at a time.
struct DnsServiceWriter {
    client: Client,
    place: ServerLocation,
    clock: Clock,
    journal: Arc<JournalBook>,
    writing: Option<BoxFuture<'static, Result<(), Error>>>,
    backoff: Backoff,
    /// After a failure.
    not_before: Option<std::pin::Pin<Box<Sleep>>>,
    /// What the last write did: what is seen may be older.
    done: Option<Upkeep>,
    failure: Option<Error>,
    said: Option<Wait>,
}

impl DnsServiceWriter {
    fn new(client: Client, place: ServerLocation, clock: Clock, journal: Arc<JournalBook>) -> Self {
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, 53);
        Self {
            client,
            place,
            clock,
            journal,
            writing: None,
            backoff,
            not_before: None,
            done: None,
            failure: None,
            said: None,
        }
    }

    /// Waits until there is something new: a write that ended, or the time to try again.
    async fn advance(&mut self) {
        if let Some(writing) = &mut self.writing {
            let result = writing.await;
            self.writing = None;
            match result {
                Ok(()) => {
                    self.failure = None;
                    self.backoff.reset();
                    // What was written comes by the watch; if it does not, it is looked at again.
                    self.not_before = Some(Box::pin(tokio::time::sleep(BACKOFF_FIRST)));
                }
                Err(error) => {
                    tracing::warn!(%error, "the service kube-dns cannot be kept");
                    self.failure = Some(error);
                    self.done = None;
                    self.not_before = Some(Box::pin(tokio::time::sleep(self.backoff.delay())));
                }
            }
        } else if let Some(until) = &mut self.not_before {
            until.await;
            self.not_before = None;
            self.done = None;
        } else {
            tokio::time::sleep_until(Instant::now() + IDLE).await;
        }
    }

    /// Begins the first thing that is to be done, and says what is waited for.
    fn look(&mut self, service: Option<&Service>, slice: Option<&EndpointSlice>) {
        let (upkeep, wait) = corten_dns::upkeep(service, slice, &self.place);
        let first = upkeep.into_iter().next();
        if first.is_none() {
            self.failure = None;
        }
        self.say(first.as_ref(), wait);
        let is_again = first.is_some() && first == self.done;
        let must_wait = self.failure.is_some() && self.not_before.is_some();
        if self.writing.is_some() || is_again || must_wait {
            return;
        }
        if let Some(upkeep) = first {
            self.done = Some(upkeep.clone());
            self.writing = Some(write(self.client.clone(), upkeep));
        }
    }

    fn say(&mut self, upkeep: Option<&Upkeep>, wait: Option<Wait>) {
        let wait = self.failure.as_ref().map(|it| self.failed(it)).or(wait);
        let effects: Vec<String> = upkeep.map(|it| done(it).to_owned()).into_iter().collect();
        if wait.is_some() && wait != self.said {
            let message = wait.as_ref().map(|it| it.message.as_str()).unwrap_or_default();
            tracing::warn!(message, "names of the cluster cannot be asked for");
        }
        if !effects.is_empty() || wait != self.said {
            let decision = Decision {
                by: "dns".into(),
                at: Some((self.clock)()),
                effects,
                waits: wait.clone().into_iter().collect(),
                error: self.failure.as_ref().map(ToString::to_string),
                retries: self.backoff.failures(),
                ..Decision::default()
            };
            self.journal.record(&SERVICES, &corten_dns::key(), decision);
        }
        self.said = wait;
    }

    fn failed(&self, error: &Error) -> Wait {
        let text = error.to_string();
        if text.contains("already allocated") {
            let message = format!(
                "the address {} is another service's, and pods ask it for names: give that service another address",
                self.place.cluster_ip
            );
            return Wait::new("ClusterDNSAddressTaken", message, Actor::Operator);
        }
        Wait::new("ClusterDNSNotKept", format!("cannot write kube-dns: {text}"), Actor::Cluster)
    }
}

fn done(upkeep: &Upkeep) -> &'static str {
    match upkeep {
        Upkeep::CreateService(_) => "create Service kube-dns",
        Upkeep::PatchService(_) => "patch Service kube-dns",
        Upkeep::CreateSlice(_) => "create EndpointSlice kube-dns",
        Upkeep::PatchSlice(_) => "patch EndpointSlice kube-dns",
        Upkeep::DeleteSlice => "delete EndpointSlice kube-dns",
    }
}

fn write(client: Client, upkeep: Upkeep) -> BoxFuture<'static, Result<(), Error>> {
    Box::pin(async move {
        let key = corten_dns::key();
        let written = match upkeep {
            Upkeep::CreateService(object) => client.create(&SERVICES, &key.namespace, &object).await,
            Upkeep::PatchService(patch) => client.patch(&SERVICES, &key, "", &PatchType::Merge, &patch).await,
            Upkeep::CreateSlice(object) => client.create(&ENDPOINT_SLICES, &key.namespace, &object).await,
            Upkeep::PatchSlice(patch) => client.patch(&ENDPOINT_SLICES, &key, "", &PatchType::Merge, &patch).await,
            Upkeep::DeleteSlice => client.delete(&ENDPOINT_SLICES, &key, &DeleteParams::default()).await,
        };
        match written {
            Ok(_) => Ok(()),
            // It is so already, or somebody else was faster: the watch tells.
            Err(Error::Status(status))
                if status.is_not_found() || status.is_conflict() || status.is_already_exists() =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    })
}

#[cfg(test)]
mod tests;
