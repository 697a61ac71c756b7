//! Drivers make themselves known by a socket in the folder `plugins_registry`, as storage drivers do: each is asked what it is,
//! and told what became of it. Those of other types are others' business.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use corten_grpc::{Client, Status};
use tokio::time::Instant;

use super::{
    ClaimDrivers,
    drivers::Driver,
    messages::{GET_INFO, NOTIFY, PluginInfo, RegistrationStatus, VERSIONS},
};
use crate::{call::told, messages::Empty};

const FOLDER: &str = "plugins_registry";
const TYPE: &str = "DRAPlugin";
/// What drivers call the kubelet's folder.
const KUBELET: &str = "/var/lib/kubelet";
/// How often the folder is looked at; the kubelet's plugin manager reconciles as often.
const PERIOD: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);
/// What did not register is asked again after so long.
const RETRY: Duration = Duration::from_secs(10);
/// A folder with more sockets is somebody's mistake.
const PLUGINS_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 63;

struct Seen {
    made: Option<SystemTime>,
    /// `None`: it did not register, or is of another type.
    driver: Option<String>,
    tried: Instant,
}

pub(super) async fn follow(drivers: &ClaimDrivers) {
    let folder = drivers.data.join(FOLDER);
    let mut known: BTreeMap<PathBuf, Seen> = BTreeMap::new();
    loop {
        let looked = folder.clone();
        let found = tokio::task::spawn_blocking(move || sockets(&looked)).await.unwrap_or_default();
        known.retain(|path, seen| {
            let stays = found.get(path) == Some(&seen.made);
            if let Some(driver) = seen.driver.as_ref().filter(|_| !stays) {
                tracing::info!(driver, "a driver of devices is gone from this node");
                drivers.remove(driver, path);
            }
            stays
        });
        for (path, made) in found {
            let waits = |it: &Seen| it.driver.is_some() || it.tried.elapsed() < RETRY;
            if known.get(&path).is_some_and(waits) {
                continue;
            }
            let driver = register(&path, drivers).await.unwrap_or_else(|error| {
                tracing::warn!(socket = %path.display(), error = told(&error), "a driver of devices does not register");
                None
            });
            known.insert(path, Seen { made, driver, tried: Instant::now() });
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The sockets in the folder, with the time each was made.
fn sockets(folder: &Path) -> BTreeMap<PathBuf, Option<SystemTime>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_hidden = |it: &fs::DirEntry| it.file_name().to_string_lossy().starts_with('.');
    let sockets = entries.filter(|it| !is_hidden(it) && it.file_type().is_ok_and(|it| it.is_socket()));
    let made = |it: &fs::DirEntry| it.metadata().and_then(|it| it.modified()).ok();
    sockets.take(PLUGINS_MAX).map(|it| (it.path(), made(&it))).collect()
}

async fn register(socket: &Path, drivers: &ClaimDrivers) -> Result<Option<String>, Status> {
    let registrar = Client::new(socket)?;
    let info: PluginInfo = registrar.call(GET_INFO, Empty {}, PATIENCE).await?;
    if info.r#type != TYPE {
        return Ok(None);
    }
    let introduced = introduce(&info, socket, &drivers.data);
    let error = introduced.as_ref().err().map(|it| it.message().to_owned()).unwrap_or_default();
    let status = RegistrationStatus { plugin_registered: introduced.is_ok(), error };
    let told = registrar.call::<_, Empty>(NOTIFY, status, PATIENCE).await;
    let driver = introduced?;
    told?;
    tracing::info!(
        driver = info.name,
        version = driver.version.name,
        "a driver of devices has registered on this node"
    );
    drivers.add(&info.name, socket, driver);
    Ok(Some(info.name))
}

fn introduce(info: &PluginInfo, socket: &Path, data: &Path) -> Result<Driver, Status> {
    let is_name = corten_meta::field::dns1123_subdomain(&info.name).is_empty() && info.name.len() <= NAME_BYTES_MAX;
    if !is_name {
        return Err(Status::invalid_argument(format!("{:?} is not the name of a driver", info.name)));
    }
    let spoken = VERSIONS.iter().find(|it| info.supported_versions.iter().any(|named| named == it.name));
    let version = spoken.ok_or_else(|| {
        let versions = info.supported_versions.join(", ");
        Status::invalid_argument(format!("none of the versions {versions} is spoken here: v1.DRAPlugin is"))
    })?;
    let endpoint = if info.endpoint.is_empty() { socket.to_owned() } else { endpoint(&info.endpoint, data) };
    Ok(Driver { client: Client::new(&endpoint)?, version })
}

/// Where the driver listens, as this process finds it.
fn endpoint(named: &str, data: &Path) -> PathBuf {
    let path = Path::new(named.strip_prefix("unix://").unwrap_or(named));
    path.strip_prefix(KUBELET).map_or_else(|_| path.to_owned(), |it| data.join(it))
}
