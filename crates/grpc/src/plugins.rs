//! Plugins make themselves known by a socket in the folder `plugins_registry`: each is asked what it is, and told what became
//! of it, as the kubelet's plugin manager does (`pluginregistration`, v1).
//!
//! The folder is looked at once for plugins of all types, and each plugin is asked once: whose type it is takes it in.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use tokio::{
    task::{AbortHandle, JoinError, JoinSet},
    time::Instant,
};
use tonic::Status;

use crate::Client;

pub const GET_INFO: &str = "/pluginregistration.Registration/GetInfo";
pub const NOTIFY: &str = "/pluginregistration.Registration/NotifyRegistrationStatus";
/// The folder, below the kubelet's.
pub const PLUGINS: &str = "plugins_registry";

/// How often the folder is looked at; the kubelet's plugin manager reconciles as often.
const PERIOD: Duration = Duration::from_secs(1);
/// A plugin that takes longer is left for later.
const PATIENCE: Duration = Duration::from_secs(10);
/// What did not register is asked again after so long.
const RETRY: Duration = Duration::from_secs(10);
/// So many are asked side by side: one that hangs keeps nobody else.
const ASKED_MAX: usize = 16;
/// A folder with more sockets is somebody's mistake: no more are taken in, and those that are known stay.
const PLUGINS_MAX: usize = 256;

/// What a plugin says of itself.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginInfo {
    #[prost(string, tag = "1")]
    pub r#type: String,
    #[prost(string, tag = "2")]
    pub name: String,
    /// Empty: the socket of the registration itself.
    #[prost(string, tag = "3")]
    pub endpoint: String,
    #[prost(string, repeated, tag = "4")]
    pub supported_versions: Vec<String>,
}

impl PluginInfo {
    /// Where the plugin listens, as this process finds it. Plugins name the kubelet's folder `theirs`, which is `own` here.
    pub fn listens_at(&self, socket: &Path, theirs: &Path, own: &Path) -> PathBuf {
        if self.endpoint.is_empty() {
            return socket.to_owned();
        }
        let path = Path::new(self.endpoint.strip_prefix("unix://").unwrap_or(&self.endpoint));
        path.strip_prefix(theirs).map_or_else(|_| path.to_owned(), |it| own.join(it))
    }
}

/// What a plugin is told of its registration.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RegistrationStatus {
    #[prost(bool, tag = "1")]
    pub plugin_registered: bool,
    #[prost(string, tag = "2")]
    pub error: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Empty {}

/// Makes a plugin one that is used, once it knows that it has registered.
pub type Admission = Box<dyn FnOnce() + Send>;

/// Takes in plugins of one type.
pub trait PluginType: Send + Sync + 'static {
    /// As plugins name it: `CSIPlugin`, `DRAPlugin`.
    fn name(&self) -> &'static str;

    /// # Errors
    /// Why it is not taken in, for the plugin.
    fn introduce<'a>(&'a self, info: &'a PluginInfo, socket: &'a Path) -> BoxFuture<'a, Result<Admission, Status>>;

    /// The socket where the plugin registered is gone, or another one is there.
    fn forget(&self, plugin: &str, socket: &Path);
}

/// A socket in the folder: another one of that name has another time.
struct Known {
    made: Option<SystemTime>,
    state: State,
}

enum State {
    New,
    Asked(AbortHandle),
    Registered(Arc<dyn PluginType>, String),
    /// It did not register, or is of a type that is nobody's.
    Left(Instant),
}

type Registration = Option<(Arc<dyn PluginType>, String, Admission)>;

/// Registers plugins that come and forgets those that go, for ever.
pub async fn follow_plugins(folder: PathBuf, types: Vec<Arc<dyn PluginType>>) {
    let mut registry = Registry { types: types.into(), known: BTreeMap::new(), asked: JoinSet::new() };
    let mut was_read = true;
    loop {
        let next = Instant::now() + PERIOD;
        let known = registry.known.keys().cloned().collect();
        let found = sockets(folder.clone(), known).await;
        // What cannot be looked at is not gone: those that are known stay so.
        match &found {
            Err(error) if was_read => {
                tracing::warn!(folder = %folder.display(), %error, "the folder of plugins cannot be read");
            }
            Err(_) => {}
            Ok(found) => registry.finds(found),
        }
        was_read = found.is_ok();
        registry.ask();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => break,
                Some(ended) = registry.asked.join_next() => registry.settle(ended),
            }
            registry.ask();
        }
    }
}

struct Registry {
    types: Arc<[Arc<dyn PluginType>]>,
    known: BTreeMap<PathBuf, Known>,
    /// Ends with what became of the socket of this path and time.
    asked: JoinSet<(PathBuf, Option<SystemTime>, Registration)>,
}

impl Registry {
    fn finds(&mut self, found: &Sockets) {
        self.known.retain(|path, known| {
            let stays = found.get(path) == Some(&known.made);
            match &known.state {
                _ if stays => {}
                State::Asked(task) => task.abort(),
                State::Registered(of_type, plugin) => {
                    tracing::info!(plugin, r#type = of_type.name(), "a plugin is gone from this node");
                    of_type.forget(plugin, path);
                }
                State::New | State::Left(_) => {}
            }
            stays
        });
        for (path, made) in found {
            self.known.entry(path.clone()).or_insert(Known { made: *made, state: State::New });
        }
    }

    /// Those that were never asked come first.
    fn ask(&mut self) {
        let room = ASKED_MAX.saturating_sub(self.asked.len());
        if room == 0 {
            return;
        }
        let is_new = |it: &Known| matches!(it.state, State::New);
        let is_again = |it: &Known| matches!(it.state, State::Left(tried) if tried.elapsed() >= RETRY);
        let of = |which: &dyn Fn(&Known) -> bool| -> Vec<PathBuf> {
            self.known.iter().filter(|it| which(it.1)).map(|it| it.0.clone()).collect()
        };
        for path in of(&is_new).into_iter().chain(of(&is_again)).take(room) {
            let Some(known) = self.known.get_mut(&path) else { continue };
            let (types, made) = (self.types.clone(), known.made);
            let task = self.asked.spawn(async move {
                let registration = register_in_time(&path, &types).await;
                (path, made, registration)
            });
            known.state = State::Asked(task);
        }
    }

    fn settle(&mut self, ended: Result<(PathBuf, Option<SystemTime>, Registration), JoinError>) {
        let (path, made, registration) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                if !error.is_cancelled() {
                    tracing::error!(%error, "a plugin's registration ended");
                    self.forget_task(error.id());
                }
                return;
            }
        };
        // It may have gone, or another one may have come in its place, since it answered.
        let Some(known) = self.known.get_mut(&path).filter(|it| it.made == made) else { return };
        known.state = match registration {
            Some((of_type, plugin, admission)) => {
                tracing::info!(plugin, r#type = of_type.name(), "a plugin has registered on this node");
                admission();
                State::Registered(of_type, plugin)
            }
            None => State::Left(Instant::now()),
        };
    }

    /// A panic costs one plugin one try.
    fn forget_task(&mut self, task: tokio::task::Id) {
        let is_it = |it: &&mut Known| matches!(&it.state, State::Asked(asked) if asked.id() == task);
        if let Some(known) = self.known.values_mut().find(is_it) {
            known.state = State::Left(Instant::now());
        }
    }
}

/// The sockets in the folder, with the time each was made: those that are known, and others up to the bound. A folder that is not there
/// has none.
async fn sockets(folder: PathBuf, known: BTreeSet<PathBuf>) -> io::Result<Sockets> {
    tokio::task::spawn_blocking(move || match listed(&folder, &known) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Sockets::default()),
        other => other,
    })
    .await?
}

type Sockets = BTreeMap<PathBuf, Option<SystemTime>>;

fn listed(folder: &Path, known: &BTreeSet<PathBuf>) -> io::Result<Sockets> {
    let mut sockets = Sockets::new();
    let mut room = PLUGINS_MAX.saturating_sub(known.len());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || !entry.file_type()?.is_socket() {
            continue;
        }
        let path = entry.path();
        if !known.contains(&path) {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        // One that goes while it is looked at has no time.
        sockets.insert(path, entry.metadata().and_then(|it| it.modified()).ok());
    }
    Ok(sockets)
}

async fn register_in_time(socket: &Path, types: &[Arc<dyn PluginType>]) -> Registration {
    let registering = tokio::time::timeout(PATIENCE, register(socket, types)).await;
    let late = |_| Err(Status::deadline_exceeded(format!("it does not answer within {PATIENCE:?}")));
    registering.unwrap_or_else(late).unwrap_or_else(|status| {
        let error = format!("{:?}: {}", status.code(), status.message());
        tracing::warn!(socket = %socket.display(), error, "a plugin does not register");
        None
    })
}

/// `None`: it is of a type that is nobody's here.
async fn register(socket: &Path, types: &[Arc<dyn PluginType>]) -> Result<Registration, Status> {
    let registrar = Client::new(socket)?;
    let info: PluginInfo = registrar.call(GET_INFO, Empty {}, PATIENCE).await?;
    let Some(of_type) = types.iter().find(|it| it.name() == info.r#type) else { return Ok(None) };
    let introduced = of_type.introduce(&info, socket).await;
    let error = introduced.as_ref().err().map(|it| it.message().to_owned()).unwrap_or_default();
    let status = RegistrationStatus { plugin_registered: introduced.is_ok(), error };
    let told = registrar.call::<_, Empty>(NOTIFY, status, PATIENCE).await;
    let admission = introduced?;
    told?;
    Ok(Some((of_type.clone(), info.name, admission)))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, pin::Pin};

    use bytes::Bytes;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{Answer, Service, listen, one, serve};

    #[tokio::test]
    async fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = folder.path().join(PLUGINS);
        assert!(sockets(registry.clone(), BTreeSet::new()).await.expect("what is not there has none").is_empty());
        fs::create_dir(&registry).expect("a folder");
        let socket = registry.join("driver.sock");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let _hidden = UnixListener::bind(registry.join(".hidden.sock")).expect("a socket");
        fs::write(registry.join("notes"), "").expect("a file");
        let found = sockets(registry.clone(), BTreeSet::new()).await.expect("it is read");
        assert_eq!(found.keys().collect::<Vec<_>>(), [&socket]);
        let file = registry.join("notes");
        assert_eq!(
            sockets(file, BTreeSet::new()).await.map_err(|it| it.kind()).map(drop),
            Err(io::ErrorKind::NotADirectory)
        );
    }

    #[test]
    fn a_plugin_that_is_known_stays_so_however_many_others_there_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = folder.path();
        let _sockets: Vec<_> = (0..PLUGINS_MAX + 44)
            .map(|it| UnixListener::bind(registry.join(format!("{it}.sock"))).expect("a socket"))
            .collect();
        let all: Vec<_> = fs::read_dir(registry).expect("read").map(|it| it.expect("an entry").path()).collect();
        let last: BTreeSet<_> = all.into_iter().rev().take(50).collect();
        let found = listed(registry, &last).expect("read");
        assert!(last.iter().all(|it| found.contains_key(it)));
        assert_eq!(found.len(), PLUGINS_MAX);
    }

    struct Plugin(&'static str);

    impl Service for Plugin {
        fn answer<'a>(
            &'a self,
            method: &'a str,
            _: Bytes,
        ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
            Box::pin(async move {
                match method {
                    GET_INFO => {
                        Ok(one(&PluginInfo { r#type: "T".into(), name: self.0.into(), ..PluginInfo::default() }))
                    }
                    _ => Ok(one(&Empty {})),
                }
            })
        }
    }

    struct Told(mpsc::UnboundedSender<String>);

    impl PluginType for Told {
        fn name(&self) -> &'static str {
            "T"
        }

        fn introduce<'a>(&'a self, info: &'a PluginInfo, _: &'a Path) -> BoxFuture<'a, Result<Admission, Status>> {
            let (told, name) = (self.0.clone(), info.name.clone());
            Box::pin(async move { Ok(Box::new(move || drop(told.send(format!("{name} comes")))) as Admission) })
        }

        fn forget(&self, plugin: &str, _: &Path) {
            let _ = self.0.send(format!("{plugin} goes"));
        }
    }

    #[tokio::test]
    async fn one_that_hangs_keeps_nobody_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, (told, mut hears)) = (folder.path().to_owned(), mpsc::unbounded_channel());
        // Whoever connects to these waits.
        let _hang: Vec<_> = (0..ASKED_MAX - 1)
            .map(|it| UnixListener::bind(path.join(format!("a{it}.sock"))).expect("a socket"))
            .collect();
        let mut tasks = JoinSet::new();
        for name in ["b", "c"] {
            let listener = listen(&path.join(format!("{name}.sock"))).expect("bound");
            tasks.spawn(serve(listener, Arc::new(Plugin(name))));
        }
        tasks.spawn(follow_plugins(path.clone(), vec![Arc::new(Told(told))]));
        let begun = Instant::now();
        let mut came = [hears.recv().await.expect("told"), hears.recv().await.expect("told")];
        came.sort();
        assert_eq!(came, ["b comes", "c comes"]);
        fs::remove_file(path.join("b.sock")).expect("removed");
        assert_eq!(hears.recv().await.expect("told"), "b goes");
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
}
