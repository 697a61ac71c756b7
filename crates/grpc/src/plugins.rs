//! Plugins make themselves known by a socket in the folder `plugins_registry`: each is asked what it is, and told what became
//! of it, as the kubelet's plugin manager does (`pluginregistration`, v1).
//!
//! The folder is looked at once for plugins of all types, and each plugin is asked once: whose type it is takes it in.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tonic::Status;

use crate::Client;

pub const GET_INFO: &str = "/pluginregistration.Registration/GetInfo";
pub const NOTIFY: &str = "/pluginregistration.Registration/NotifyRegistrationStatus";
/// The folder, below the kubelet's.
pub const PLUGINS: &str = "plugins_registry";

/// How often the folder is looked at; the kubelet's plugin manager reconciles as often.
const PERIOD: Duration = Duration::from_secs(1);
/// A plugin that takes longer is left for later: others wait for their turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// What did not register is asked again after so long.
const RETRY: Duration = Duration::from_secs(10);
/// A folder with more sockets is somebody's mistake.
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
struct Registered {
    made: Option<SystemTime>,
    /// `None`: it did not register, or is of a type that is nobody's.
    plugin: Option<(Arc<dyn PluginType>, String)>,
    tried: Instant,
}

/// Registers plugins that come and forgets those that go, for ever.
pub async fn follow_plugins(folder: PathBuf, types: Vec<Arc<dyn PluginType>>) {
    let mut known: BTreeMap<PathBuf, Registered> = BTreeMap::new();
    let mut was_read = true;
    loop {
        let found = sockets(folder.clone()).await;
        // What cannot be looked at is not gone: those that are known stay so.
        if let Err(error) = &found
            && was_read
        {
            tracing::warn!(folder = %folder.display(), %error, "the folder of plugins cannot be read");
        }
        was_read = found.is_ok();
        let Ok(found) = found else {
            tokio::time::sleep(PERIOD).await;
            continue;
        };
        known.retain(|path, registered| {
            let stays = found.get(path) == Some(&registered.made);
            if let Some((of_type, plugin)) = registered.plugin.as_ref().filter(|_| !stays) {
                tracing::info!(plugin, r#type = of_type.name(), "a plugin is gone from this node");
                of_type.forget(plugin, path);
            }
            stays
        });
        for (path, made) in found {
            let waits = |it: &Registered| it.plugin.is_some() || it.tried.elapsed() < RETRY;
            if known.get(&path).is_some_and(waits) {
                continue;
            }
            let plugin = register_in_time(&path, &types).await;
            known.insert(path, Registered { made, plugin, tried: Instant::now() });
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The sockets in the folder, with the time each was made. A folder that is not there has none.
async fn sockets(folder: PathBuf) -> io::Result<Sockets> {
    tokio::task::spawn_blocking(move || match listed(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Sockets::default()),
        other => other,
    })
    .await?
}

type Sockets = BTreeMap<PathBuf, Option<SystemTime>>;

fn listed(folder: &Path) -> io::Result<Sockets> {
    let mut sockets = Sockets::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.file_type()?.is_socket() {
            // One that goes while it is looked at has no time.
            sockets.insert(entry.path(), entry.metadata().and_then(|it| it.modified()).ok());
        }
        if sockets.len() == PLUGINS_MAX {
            break;
        }
    }
    Ok(sockets)
}

async fn register_in_time(socket: &Path, types: &[Arc<dyn PluginType>]) -> Option<(Arc<dyn PluginType>, String)> {
    let registering = tokio::time::timeout(PATIENCE, register(socket, types)).await;
    let late = |_| Err(Status::deadline_exceeded(format!("it does not answer within {PATIENCE:?}")));
    registering.unwrap_or_else(late).unwrap_or_else(|status| {
        let error = format!("{:?}: {}", status.code(), status.message());
        tracing::warn!(socket = %socket.display(), error, "a plugin does not register");
        None
    })
}

/// `None`: it is of a type that is nobody's here.
async fn register(
    socket: &Path,
    types: &[Arc<dyn PluginType>],
) -> Result<Option<(Arc<dyn PluginType>, String)>, Status> {
    let registrar = Client::new(socket)?;
    let info: PluginInfo = registrar.call(GET_INFO, Empty {}, PATIENCE).await?;
    let Some(of_type) = types.iter().find(|it| it.name() == info.r#type) else { return Ok(None) };
    let introduced = of_type.introduce(&info, socket).await;
    let error = introduced.as_ref().err().map(|it| it.message().to_owned()).unwrap_or_default();
    let status = RegistrationStatus { plugin_registered: introduced.is_ok(), error };
    let told = registrar.call::<_, Empty>(NOTIFY, status, PATIENCE).await;
    let admission = introduced?;
    told?;
    tracing::info!(plugin = info.name, r#type = info.r#type, "a plugin has registered on this node");
    admission();
    Ok(Some((of_type.clone(), info.name)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = folder.path().join(PLUGINS);
        assert!(sockets(registry.clone()).await.expect("what is not there has none").is_empty());
        fs::create_dir(&registry).expect("a folder");
        let socket = registry.join("driver.sock");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let _hidden = UnixListener::bind(registry.join(".hidden.sock")).expect("a socket");
        fs::write(registry.join("notes"), "").expect("a file");
        let found = sockets(registry.clone()).await.expect("it is read");
        assert_eq!(found.keys().collect::<Vec<_>>(), [&socket]);
        let file = registry.join("notes");
        assert_eq!(sockets(file).await.map_err(|it| it.kind()).map(drop), Err(io::ErrorKind::NotADirectory));
    }
}
