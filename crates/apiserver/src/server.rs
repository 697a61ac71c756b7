//! The server itself: how it starts, answers and stops.

use std::{
    io,
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use corten_access::{Identity, Peer};
use corten_admission::services;
use corten_cacher::{
    answer,
    body::{Body, Response, whole},
    watch_cache::{Feed, feed},
};
use corten_connection::{AnswerTo, GoesOn, HeavyLanes, Unattended, UnreadRoom};
use corten_webhook::Clients;
use http::Method;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};
use tracing::Instrument;

use crate::{
    bootstrap, chain,
    context::Context,
    definitions::Definitions,
    flow_control_objects, own_requests,
    state::{Config, Feeding, State},
};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot read the store")]
    Store(#[from] corten_store::Error),
    #[error("cannot create the objects every cluster begins with: {0}")]
    Bootstrap(Box<corten_meta::Status>),
    #[error("this cluster was made with {0}: what it has cannot be changed")]
    Network(String),
    #[error("cannot prepare the certificate that other API servers are shown")]
    FrontProxy(#[from] corten_pki::Error),
}

/// One API server. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    state: State,
    background: Arc<Background>,
}

/// What runs beside requests.
struct Background {
    /// True when the caches are no longer kept up.
    ended: watch::Sender<bool>,
    /// The tasks that tell of changes of rights, keep the keys of other issuers and who decides, serve what definitions describe, divide the seats
    /// of priority levels and keep the objects that say how.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Writes whose clients have left.
    unattended: Unattended,
    /// They begin with the first listener.
    heavy: OnceLock<HeavyLanes>,
    /// Of the answers of all listeners.
    unread: Arc<UnreadRoom>,
}

impl Deref for Server {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

/// How long `stop` waits for requests, and for the task that feeds the caches.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How long the start of a cluster that is not new waits for its own objects.
const FIRST_OBJECTS_DEADLINE: Duration = Duration::from_secs(5);
/// How often a stopping server looks whether requests are under way.
const IDLE_LOOK: Duration = Duration::from_millis(5);

impl Server {
    #[cfg(test)]
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Fills the watch caches from the store and creates what every cluster begins with.
    ///
    /// # Errors
    /// Where the store cannot be read or the first objects cannot be written.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let front_proxy = config.pki.front_proxy_client()?;
        let (caches, changes) = feed::fill(&*config.store).await?;
        let caches = Arc::new(caches);
        let ranges = services::ranges_of(&*config.store).await?;
        if config.store.is_shared() {
            caches.follow_other_keys(Arc::new(ranges.clone()));
        }
        let ended = watch::Sender::new(false);
        let feed = Arc::new(Feed::new(changes));
        let task = tokio::spawn(feed::run(config.store.clone(), caches.clone(), feed.clone(), ended.subscribe()));
        let state = State::new(config, front_proxy, caches.clone(), ranges, Feeding { feed, task });
        if let Err(other) = bootstrap::refuse_other_network(&state) {
            ended.send_replace(true);
            return Err(StartError::Network(other));
        }
        let clients = Arc::new(Clients::new(caches.clone()));
        let issuing = tokio::spawn(state.config().guard.issuers.clone().keep(clients, ended.subscribe()));
        let deciding = tokio::spawn(state.access().clone().keep(ended.subscribe()));
        let rechecked = tokio::spawn(state.rights_changed().clone().run(caches, ended.subscribe()));
        let definitions = Definitions::load(&state).await?;
        let (defined, kept) = (ended.subscribe(), ended.subscribe());
        let divided = tokio::spawn(state.fairness().clone().run(ended.subscribe()));
        let tasks = Mutex::new(vec![rechecked, issuing, deciding, divided]);
        let unread = UnreadRoom::new(state.config().limits.unread_bytes);
        let (unattended, heavy) = (Unattended::default(), OnceLock::new());
        let background = Arc::new(Background { ended, tasks, unattended, heavy, unread });
        if let Some(encrypted) = state.config().encryption.clone() {
            // What opens later is seen by the caches that are here now.
            let (state_ended, tasks) = (background.ended.subscribe(), &background.tasks);
            tasks.lock().push(tokio::spawn(encrypted.keep(state_ended)));
        }
        let server = Self { state, background };
        let aggregator = server.state.aggregator().clone();
        server.begin_cluster().await?;
        server.state.serve_aggregated(aggregator.served());
        let host = Arc::new(server.state.clone());
        let aggregating = tokio::spawn(aggregator.run(host, server.background.ended.subscribe()));
        let following = tokio::spawn(definitions.run(server.state.clone(), defined));
        let keeping = tokio::spawn(flow_control_objects::run(server.state.clone(), kept));
        let (patches, until) = (own_requests::patches(&server.state), server.background.ended.subscribe());
        let marking = tokio::spawn(server.state.access().clone().mark_used_tokens(patches, until));
        server.background.tasks.lock().extend([following, keeping, aggregating, marking]);
        Ok(server)
    }

    /// Makes the objects every cluster begins with. Where the cluster is not new, a webhook or a policy may refuse them, or never answer.
    /// It can be taken away only at a server that runs: so the server starts, and they are tried again meanwhile.
    async fn begin_cluster(&self) -> Result<(), StartError> {
        let making = async {
            bootstrap::run(&self.state).await?;
            flow_control_objects::keep(&self.state, &mut flow_control_objects::CheckedFlowSchemas::default()).await?;
            self.state.aggregator().clone().register(&self.state).await
        };
        if bootstrap::is_new(&self.state) {
            return making.await.map_err(|it| StartError::Bootstrap(Box::new(it)));
        }
        match tokio::time::timeout(FIRST_OBJECTS_DEADLINE, making).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(status)) => {
                tracing::error!(%status, "objects of the cluster cannot be written, and are tried again")
            }
            Err(_) => tracing::error!("writing objects of the cluster takes long, and goes on beside requests"),
        }
        let trying = tokio::spawn(bootstrap::keep_trying(self.state.clone(), self.background.ended.subscribe()));
        self.background.tasks.lock().push(trying);
        Ok(())
    }

    /// Tells clients whom to trust, after [`corten_pki::Authority::reload`] has changed that.
    ///
    /// # Errors
    /// The objects that say so cannot be written.
    pub async fn publish_authority(&self) -> Result<(), corten_meta::Status> {
        bootstrap::publish_authority(&self.state).await
    }

    pub(crate) fn unattended(&self) -> &Unattended {
        &self.background.unattended
    }

    pub(crate) fn unread(&self) -> &Arc<UnreadRoom> {
        &self.background.unread
    }

    /// The threads for requests that are much work. They begin, unless they are there.
    pub(crate) fn heavy(&self) -> io::Result<&HeavyLanes> {
        let heavy = &self.background.heavy;
        match heavy.get() {
            Some(there) => Ok(there),
            None => HeavyLanes::start().map(|it| heavy.get_or_init(|| it)),
        }
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
        let mut ctx = Context::new(self.state.clone(), request, peer, identity);
        let span = tracing::debug_span!("request", id = %ctx.id, method = %ctx.method, path = ctx.uri.path());
        let mut response = chain::run(&mut ctx).instrument(span).await;
        if ctx.goes_on() {
            response.extensions_mut().insert(GoesOn);
        }
        if AnswerTo::matters(&response) {
            response.extensions_mut().insert(AnswerTo(ctx.party().into()));
        }
        if is_head { answer::without_body(response) } else { response }
    }

    /// Ends watches, lets requests from inside the process finish, and ends the caches. Connections end where they are
    /// served: let [`Server::serve`] return first.
    pub async fn stop(&self) {
        self.begin_stop();
        if tokio::time::timeout(STOP_DEADLINE, self.idle()).await.is_err() {
            tracing::warn!("requests did not finish in time");
        }
        self.unattended().end().await;
        self.tunnels().stop().await;
        self.background.ended.send_replace(true);
        let tasks = std::mem::take(&mut *self.background.tasks.lock());
        for task in tasks.into_iter().chain(self.take_fed()) {
            if tokio::time::timeout(STOP_DEADLINE, task).await.is_err() {
                tracing::warn!("the watch caches did not stop in time");
            }
        }
    }

    /// A write that is under way needs the caches until it is answered.
    async fn idle(&self) {
        let mut looks = tokio::time::interval(IDLE_LOOK);
        while self.metrics().requests.in_flight() > 0 {
            looks.tick().await;
        }
    }
}
