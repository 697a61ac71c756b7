//! The device plugins of this node: those that have registered, what each has, and what it gave.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, time::Duration};

use corten_kubelet::{AllocatedDevices, DeviceNews, DeviceWish};
use corten_machine::Layout;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use crate::{
    call, endpoint,
    messages::RegisterRequest,
    records::Records,
    registration::{FOLDER, Registry, SOCKET, WAITING_MAX, remove_sockets},
    state::State,
};

/// A socket that cannot be made is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Cheap to clone.
#[derive(Clone)]
pub struct DevicePlugins {
    folder: PathBuf,
    records: Records,
    state: Arc<State>,
    news: Arc<tokio::sync::Mutex<watch::Receiver<()>>>,
}

impl DevicePlugins {
    /// Reads what an earlier run gave.
    pub fn new(layout: &Layout) -> Self {
        let records = Records::new(layout);
        let (allocated, names) = records.read();
        let (state, mut news) = State::new(allocated, names);
        news.mark_changed();
        let news = Arc::new(tokio::sync::Mutex::new(news));
        Self { folder: layout.data.join(FOLDER), records, state: Arc::new(state), news }
    }

    /// Waits until there is something new to tell; the first time there is at once. Nothing is lost where this is dropped.
    pub async fn next_news(&self) -> DeviceNews {
        let mut news = self.news.lock().await;
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.state.news()
    }

    /// What there is to tell at this moment.
    pub(crate) fn news(&self) -> DeviceNews {
        self.state.news()
    }

    /// All is told again. Whoever waits for news meanwhile is not waited for.
    pub fn renew(&self) {
        self.state.tell_again();
    }

    /// Asks the plugin of a resource for devices, and writes down what it gives before that is used.
    ///
    /// # Errors
    /// In upstream's words, for the Pod's status.
    pub async fn allocate(&self, uid: &str, wish: DeviceWish) -> Result<AllocatedDevices, String> {
        let plugin = self.state.plugin(&wish.resource);
        let plugin = plugin.ok_or_else(|| format!("cannot allocate unregistered device {}", wish.resource))?;
        let given = call::allocate(&plugin.client, &plugin.options, wish).await?;
        let all = self.state.gave(uid, given.clone());
        let (records, named) = (self.records.clone(), uid.to_owned());
        let written = on_disk(move || records.write(&named, &all)).await;
        if let Err(error) = written {
            self.release(uid).await;
            return Err(format!("cannot write down the devices of the pod: {error}"));
        }
        Ok(given)
    }

    /// Tells the plugins that want it that a container is about to start.
    ///
    /// # Errors
    /// In upstream's words, for the container's status.
    pub async fn pre_start(&self, allocated: &[(String, Vec<String>)]) -> Result<(), String> {
        for (resource, ids) in allocated {
            let plugin = self.state.plugin(resource).filter(|it| it.options.pre_start_required);
            if let Some(plugin) = plugin {
                let told = call::pre_start(&plugin.client, ids).await;
                told.map_err(|it| format!("device plugin PreStartContainer rpc failed with err: {it}"))?;
            }
        }
        Ok(())
    }

    /// What a Pod was given is nobody's again.
    pub async fn release(&self, uid: &str) {
        self.state.took_back(uid);
        let (records, named) = (self.records.clone(), uid.to_owned());
        if let Err(error) = on_disk(move || records.forget(&named)).await {
            tracing::warn!(uid, %error, "cannot forget the devices of a pod that is over");
        }
    }

    /// Lets plugins register and listens to them, for ever.
    pub async fn run(&self) {
        let (registrations, mut requests) = mpsc::channel(WAITING_MAX);
        let registry = Arc::new(Registry(registrations));
        let mut tasks = JoinSet::new();
        let folder = self.folder.clone();
        tasks.spawn(async move {
            remove_sockets(&folder);
            loop {
                match corten_grpc::listen(&folder.join(SOCKET)) {
                    Ok(listener) => corten_grpc::serve(listener, registry.clone()).await,
                    Err(error) => tracing::error!(%error, "device plugins cannot register"),
                }
                tokio::time::sleep(RETRY).await;
            }
        });
        let mut listening: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            let expiry = self.state.next_expiry();
            tokio::select! {
                Some(request) = requests.recv() => self.begin(request, &mut tasks, &mut listening).await,
                Some(_) = tasks.join_next() => {}
                () = sleep_until(expiry) => self.state.expire(),
            }
        }
    }

    /// A plugin of a resource takes the place of the one before it.
    async fn begin(
        &self,
        request: RegisterRequest,
        tasks: &mut JoinSet<()>,
        listening: &mut BTreeMap<String, AbortHandle>,
    ) {
        let RegisterRequest { endpoint, resource_name: resource, .. } = request;
        let Some((run, names)) = self.state.begin(&resource) else {
            tracing::warn!(resource, "a device plugin is not listened to: there are too many");
            return;
        };
        if let Some(names) = names {
            let records = self.records.clone();
            if let Err(error) = on_disk(move || records.write_resources(&names)).await {
                tracing::warn!(resource, %error, "after the next start the node may say that it still has these devices");
            }
        }
        tracing::info!(resource, endpoint, "a device plugin has registered");
        let (state, socket, name) = (self.state.clone(), self.folder.join(&endpoint), resource.clone());
        let task = tasks.spawn(async move {
            let ended = endpoint::listen(&state, &name, &socket, run).await;
            let error = ended.err().map(|it| call::told(&it)).unwrap_or_default();
            tracing::warn!(resource = name, error, "a device plugin is gone");
            state.ended(&name, run);
        });
        if let Some(before) = listening.insert(resource, task) {
            before.abort();
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn on_disk(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
