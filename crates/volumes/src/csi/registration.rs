//! Plugins make themselves known by a socket in the folder `plugins_registry`: each is asked what it is, and told what became
//! of it, as the kubelet's plugin manager does.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use corten_machine::Layout;

use super::{
    client::{Client, GET_INFO, NOTIFY},
    driver::CsiDriver,
    messages::{Empty, PluginInfo, RegistrationStatus},
    root::drivers_root,
};
use crate::{Code, Drivers, Fault, LOCAL_DRIVER, records::name_of};

/// How often the folder is looked at; the kubelet's plugin manager reconciles as often.
const PERIOD: Duration = Duration::from_secs(1);
/// A plugin that takes longer is left for later: others wait for their turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// What did not register is asked again after so long.
const RETRY: Duration = Duration::from_secs(10);
const TYPE: &str = "CSIPlugin";
/// CSI's bound for a driver's name.
const NAME_BYTES_MAX: usize = 63;
/// A folder with more sockets is somebody's mistake.
const PLUGINS_MAX: usize = 256;

/// A socket in the folder: another one of that name has another time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    made: Option<SystemTime>,
    /// The driver it stands for; `None`: it did not register.
    driver: Option<String>,
    tried: tokio::time::Instant,
}

/// Registers plugins that come and forgets those that go, for ever.
pub async fn follow_registrations(layout: Layout, drivers: Drivers) {
    let folder = layout.data.join("plugins_registry");
    let roots = (layout.data.clone(), drivers_root(&layout));
    let mut known: BTreeMap<PathBuf, Seen> = BTreeMap::new();
    loop {
        let looked = folder.clone();
        let found = tokio::task::spawn_blocking(move || sockets(&looked)).await.unwrap_or_default();
        known.retain(|path, seen| {
            let stays = found.get(path) == Some(&seen.made);
            if let Some(driver) = seen.driver.as_ref().filter(|_| !stays) {
                tracing::info!(driver, "a storage driver is gone from this node");
                drivers.remove(driver);
            }
            stays
        });
        for (path, made) in found {
            let waits = |it: &Seen| it.driver.is_some() || it.tried.elapsed() < RETRY;
            if known.get(&path).is_some_and(waits) {
                continue;
            }
            let registering = tokio::time::timeout(PATIENCE, register(&path, &roots, &drivers)).await;
            let late = || Fault::new(Code::DeadlineExceeded, format!("it does not answer within {PATIENCE:?}"));
            let driver = match registering.unwrap_or_else(|_| Err(late())) {
                Ok(name) => name,
                Err(error) => {
                    tracing::warn!(socket = %path.display(), %error, "a storage driver does not register");
                    None
                }
            };
            known.insert(path, Seen { made, driver, tried: tokio::time::Instant::now() });
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The sockets in the folder and in its folders, with the time each was made.
fn sockets(folder: &Path) -> BTreeMap<PathBuf, Option<SystemTime>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter(|it| {
        let is_hidden = it.file_name().to_string_lossy().starts_with('.');
        !is_hidden && it.file_type().is_ok_and(|it| it.is_socket())
    });
    let made = |it: &fs::DirEntry| it.metadata().and_then(|it| it.modified()).ok();
    sockets.take(PLUGINS_MAX).map(|it| (it.path(), made(&it))).collect()
}

/// The name of the driver; `None`: it is a plugin of another kind, which is nobody's here.
async fn register(socket: &Path, roots: &(PathBuf, PathBuf), drivers: &Drivers) -> Result<Option<String>, Fault> {
    let registrar = Client::new(socket)?;
    let info: PluginInfo = registrar.call(GET_INFO, Empty {}).await?;
    if info.r#type != TYPE {
        return Ok(None);
    }
    let introduced = introduce(&info, socket, roots).await;
    let status = RegistrationStatus {
        plugin_registered: introduced.is_ok(),
        error: introduced.as_ref().err().map(ToString::to_string).unwrap_or_default(),
    };
    let told = registrar.call::<_, Empty>(NOTIFY, status).await;
    let driver = introduced?;
    told?;
    tracing::info!(driver = info.name, "a storage driver has registered on this node");
    drivers.add(Arc::new(driver));
    Ok(Some(info.name))
}

pub(super) async fn introduce(
    info: &PluginInfo,
    socket: &Path,
    roots: &(PathBuf, PathBuf),
) -> Result<CsiDriver, Fault> {
    let invalid = |why: String| Fault::new(Code::InvalidArgument, why);
    if info.name.len() > NAME_BYTES_MAX || name_of(&info.name).is_err() {
        return Err(invalid(format!("{:?} is not the name of a driver", info.name)));
    }
    if info.name == LOCAL_DRIVER {
        return Err(invalid(format!("{LOCAL_DRIVER} is the driver that is built in")));
    }
    let is_first_version = |it: &String| it.trim_start_matches('v').split('.').next() == Some("1");
    if !info.supported_versions.iter().any(is_first_version) {
        let versions = info.supported_versions.join(", ");
        return Err(invalid(format!("none of the versions {versions} is spoken here: version 1 is")));
    }
    let endpoint = if info.endpoint.is_empty() { socket.to_owned() } else { endpoint(&info.endpoint, roots) };
    let (own, theirs) = roots;
    let named = endpoint.strip_prefix(own).map_or_else(|_| endpoint.clone(), |it| theirs.join(it));
    CsiDriver::introduce(&info.name, Client::new(&endpoint)?, named, roots.clone()).await
}

/// Where the driver listens, as this process finds it: it names the kubelet's folder.
fn endpoint(named: &str, (own, theirs): &(PathBuf, PathBuf)) -> PathBuf {
    let path = Path::new(named.strip_prefix("unix://").unwrap_or(named));
    path.strip_prefix(theirs).map_or_else(|_| path.to_owned(), |it| own.join(it))
}
