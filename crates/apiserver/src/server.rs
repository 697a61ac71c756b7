//! The server itself: what it is made of, how it starts, and how it stops.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_kinds::Kind;
use corten_meta::{Key, Resource, Time};
use corten_reconcile::Decision;
use corten_store::Store;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    access::Authorizer,
    bootstrap, chain,
    filters::audit,
    metrics::Metrics,
    pki,
    request::{Body, Context, Identity, Peer, Response, whole},
    watch_cache::{Caches, ResourceCache, feed},
};

/// Tells the time; real, or the simulator's.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;
/// Makes UUIDs; random, or the simulator's from a seed.
pub type Uids = Arc<dyn Fn() -> String + Send + Sync>;

/// What the loops last decided about an object: answers `corten.dev/v1` Journals.
pub trait JournalSource: Send + Sync {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision>;
}

pub struct Config {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub uids: Uids,
    pub journals: Arc<dyn JournalSource>,
    pub pki: Arc<pki::Authority>,
    pub audit: Option<Arc<dyn audit::Sink>>,
    pub kubelet_dial: Option<crate::connect::KubeletClient>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot read the store")]
    Store(#[from] corten_store::Error),
    #[error("cannot create the objects every cluster begins with: {0}")]
    Bootstrap(#[source] Box<corten_meta::Status>),
}

/// One API server. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<State>);

struct State {
    config: Config,
    caches: Arc<Caches>,
    authorizer: Authorizer,
    metrics: Metrics,
    started: Time,
    /// True from the moment the server begins to stop.
    stopping: watch::Sender<bool>,
    /// True when the caches are no longer kept up.
    ended: watch::Sender<bool>,
    feed: Mutex<Option<JoinHandle<()>>>,
}

/// How long `stop` waits for requests, and for the task that feeds the caches.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How often a stopping server looks whether requests are under way.
const IDLE_LOOK: Duration = Duration::from_millis(5);

impl Server {
    /// Fills the watch caches from the store and creates what every cluster begins with.
    ///
    /// # Errors
    /// Where the store cannot be read or the first objects cannot be written.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let (caches, changes) = feed::fill(&*config.store).await?;
        let caches = Arc::new(caches);
        let ended = watch::Sender::new(false);
        let feed = tokio::spawn(feed::run(config.store.clone(), caches.clone(), changes, ended.subscribe()));
        let server = Self(Arc::new(State {
            authorizer: Authorizer::new(),
            metrics: Metrics::default(),
            started: (config.clock)(),
            config,
            caches,
            stopping: watch::Sender::new(false),
            ended,
            feed: Mutex::new(Some(feed)),
        }));
        bootstrap::run(&server).await.map_err(|it| StartError::Bootstrap(Box::new(it)))?;
        Ok(server)
    }

    /// A request from inside the process: the same chain, with the caller known.
    pub async fn call(&self, who: Identity, request: http::Request<Bytes>) -> Response {
        self.answer(request.map(whole), None, Some(who)).await
    }

    pub(crate) async fn answer(
        &self,
        request: http::Request<Body>,
        peer: Option<Peer>,
        identity: Option<Identity>,
    ) -> Response {
        let mut ctx = Context::new(self.clone(), request, peer, identity);
        chain::run(&mut ctx).await
    }

    /// Ends watches, lets requests from inside the process finish, and ends the caches. Connections end where they are
    /// served: let [`Server::serve`] return first.
    pub async fn stop(&self) {
        self.begin_stop();
        if tokio::time::timeout(STOP_DEADLINE, self.idle()).await.is_err() {
            tracing::warn!("requests did not finish in time");
        }
        if let Some(kubelets) = &self.0.config.kubelet_dial {
            kubelets.stop().await;
        }
        self.0.ended.send_replace(true);
        let feed = self.0.feed.lock().take();
        if let Some(feed) = feed
            && tokio::time::timeout(STOP_DEADLINE, feed).await.is_err()
        {
            tracing::warn!("the watch caches did not stop in time");
        }
    }

    /// A write that is under way needs the caches until it is answered.
    async fn idle(&self) {
        let mut looks = tokio::time::interval(IDLE_LOOK);
        while self.0.metrics.in_flight() > 0 {
            looks.tick().await;
        }
    }

    pub fn now(&self) -> Time {
        (self.0.config.clock)()
    }

    pub fn new_uid(&self) -> String {
        (self.0.config.uids)()
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The newest state of every resource.
    pub fn caches(&self) -> &Arc<Caches> {
        &self.0.caches
    }

    /// The newest state of one kind.
    pub fn cache(&self, kind: &Kind) -> &ResourceCache {
        self.0.caches.of(kind)
    }

    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.0.authorizer
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn started(&self) -> Time {
        self.0.started
    }

    /// From now on `readyz` fails and watches end; what was asked before is still answered.
    pub(crate) fn begin_stop(&self) {
        self.0.stopping.send_replace(true);
        self.0.caches.wake_watchers();
    }

    /// Are the caches kept up?
    pub(crate) fn is_fed(&self) -> bool {
        self.0.feed.lock().as_ref().is_some_and(|it| !it.is_finished())
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }
}
