//! The server itself: what it is made of, how it starts, and how it stops.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_kinds::Kind;
use corten_meta::{Key, Resource, Time};
use corten_reconcile::Decision;
use corten_store::Store;
use http::Method;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    access::Authorizer,
    admission::resource_quota::Turns,
    answer, bootstrap, chain,
    filters::audit,
    limits::{Limits, Room},
    metrics::Metrics,
    recheck::RightsChanged,
    request::{Body, Context, Identity, Peer, Response, whole},
    services::Ranges,
    tokens,
    usage::Usages,
    watch_cache::{Caches, Feed, ResourceCache, feed},
};

/// Tells the time; real, or the simulator's.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;
/// Makes UUIDs; random, or the simulator's from a seed.
pub type Uids = Arc<dyn Fn() -> String + Send + Sync>;

/// What the loops last decided about an object: answers `corten.dev/v1` Journals.
pub trait JournalSource: Send + Sync {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision>;

    /// The objects of which a loop says that they wait, in order: those whose decisions are `wanted`. It is asked in haste,
    /// while no loop can note anything.
    fn waiting(&self, _wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        Vec::new()
    }

    /// How busy each loop is, for `/metrics`.
    fn queues(&self) -> Vec<LoopQueue> {
        Vec::new()
    }
}

/// The queue of one loop, in numbers.
#[derive(Clone, Debug)]
pub struct LoopQueue {
    /// The loop's name.
    pub name: String,
    pub depth: u64,
    pub adds: u64,
    pub retries: u64,
    /// How long it has thought about what it thinks about longest, and about all it has not come to a plan for.
    pub longest: std::time::Duration,
    pub unfinished: std::time::Duration,
}

pub struct Config {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub uids: Uids,
    pub journals: Arc<dyn JournalSource>,
    pub pki: Arc<corten_pki::Authority>,
    pub audit: Option<Arc<dyn audit::Sink>>,
    pub kubelet_dial: Option<crate::connect::KubeletClient>,
    pub guard: Guard,
    pub limits: Limits,
    /// Where Pods and other machines reach this server: the endpoint of the Service `kubernetes`. `None` where none can.
    pub advertise: Option<SocketAddr>,
    pub machine: Machine,
    /// Have Pods IPv6 addresses, too? Then Services can have them.
    pub has_ipv6: bool,
}

/// Where the server runs.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub host_name: String,
    /// The node in the server's process, where there is one: what the machine is reached at is its, too.
    pub node: Option<String>,
}

/// What an administrator says of who may come and what is written down of it. By default: no tokens from a file, and a
/// record of every change.
#[derive(Default)]
pub struct Guard {
    pub static_tokens: tokens::StaticTokens,
    pub audit_policy: audit::Policy,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot read the store")]
    Store(#[from] corten_store::Error),
    #[error("cannot create the objects every cluster begins with: {0}")]
    Bootstrap(Box<corten_meta::Status>),
}

/// One API server. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<State>);

struct State {
    config: Config,
    caches: Arc<Caches>,
    authorizer: Authorizer,
    room: Room,
    verified_tokens: tokens::Verified,
    metrics: Metrics,
    turns: Turns,
    ranges: Ranges,
    usages: Usages,
    tunnels: crate::connect::Tunnels,
    started: Time,
    /// True from the moment the server begins to stop.
    stopping: watch::Sender<bool>,
    /// True when the caches are no longer kept up.
    ended: watch::Sender<bool>,
    feed: Arc<Feed>,
    /// The task that keeps the caches up.
    fed: Mutex<Option<JoinHandle<()>>>,
    rights_changed: Arc<RightsChanged>,
    /// The task that tells of such changes.
    rechecked: Mutex<Option<JoinHandle<()>>>,
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
        let ranges = Ranges::read(&*config.store).await?;
        let ended = watch::Sender::new(false);
        let feed = Arc::new(Feed::new(changes));
        let fed = tokio::spawn(feed::run(config.store.clone(), caches.clone(), feed.clone(), ended.subscribe()));
        let rights_changed = Arc::new(RightsChanged::new(&caches));
        let rechecked = tokio::spawn(rights_changed.clone().run(caches.clone(), ended.subscribe()));
        let server = Self(Arc::new(State {
            rights_changed,
            rechecked: Mutex::new(Some(rechecked)),
            room: Room::new(config.limits),
            authorizer: Authorizer::new(),
            verified_tokens: tokens::Verified::default(),
            metrics: Metrics::default(),
            turns: Turns::default(),
            ranges,
            usages: Usages::default(),
            tunnels: crate::connect::Tunnels::default(),
            started: (config.clock)(),
            config,
            caches,
            stopping: watch::Sender::new(false),
            ended,
            feed,
            fed: Mutex::new(Some(fed)),
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
        let is_head = request.method() == Method::HEAD;
        let mut ctx = Context::new(self.clone(), request, peer, identity);
        let response = chain::run(&mut ctx).await;
        if is_head { answer::without_body(response) } else { response }
    }

    /// Ends watches, lets requests from inside the process finish, and ends the caches. Connections end where they are
    /// served: let [`Server::serve`] return first.
    pub async fn stop(&self) {
        self.begin_stop();
        if tokio::time::timeout(STOP_DEADLINE, self.idle()).await.is_err() {
            tracing::warn!("requests did not finish in time");
        }
        self.0.tunnels.stop().await;
        self.0.ended.send_replace(true);
        let (fed, rechecked) = (self.0.fed.lock().take(), self.0.rechecked.lock().take());
        for task in [fed, rechecked].into_iter().flatten() {
            if tokio::time::timeout(STOP_DEADLINE, task).await.is_err() {
                tracing::warn!("the watch caches did not stop in time");
            }
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

    /// Takes into the caches what the store has for them, so that nobody need be woken for it.
    pub(crate) fn help_caches(&self) {
        self.0.feed.help(&self.0.caches);
    }

    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.0.authorizer
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn verified_tokens(&self) -> &tokens::Verified {
        &self.0.verified_tokens
    }

    /// What Services have for themselves.
    pub(crate) fn ranges(&self) -> &Ranges {
        &self.0.ranges
    }

    /// What nodes and pods use.
    pub(crate) fn usages(&self) -> &Usages {
        &self.0.usages
    }

    /// Connections that have left HTTP.
    pub(crate) fn tunnels(&self) -> &crate::connect::Tunnels {
        &self.0.tunnels
    }

    /// Tells what goes on that rights may have ended.
    pub(crate) fn rights_changed(&self) -> &Arc<RightsChanged> {
        &self.0.rights_changed
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.room
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
        self.0.fed.lock().as_ref().is_some_and(|it| !it.is_finished())
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }
}
