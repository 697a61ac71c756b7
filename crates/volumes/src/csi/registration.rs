//! Storage drivers, as they register: each is asked what it can before it is used.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use corten_grpc::{Admission, PluginInfo, PluginType, Status};
use corten_machine::Layout;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{client::Client, driver::CsiDriver, root::drivers_root};
use crate::{Code, Drivers, Fault, LOCAL_DRIVER, Mounter, StorageOperations, records::name_of};

const TYPE: &str = "CSIPlugin";
/// CSI's bound for a driver's name.
const NAME_BYTES_MAX: usize = 63;

/// Takes in drivers that come, and forgets those that go.
pub struct CsiPlugins {
    /// The node's folder, and how drivers name it.
    roots: (PathBuf, PathBuf),
    drivers: Drivers,
    /// Where their calls are counted.
    operations: StorageOperations,
    /// Where each has registered last: while a driver is replaced there may be two of it.
    sockets: Arc<Mutex<BTreeMap<String, PathBuf>>>,
}

impl CsiPlugins {
    pub fn new(layout: &Layout, mounter: &Mounter) -> Self {
        Self {
            roots: (layout.data.clone(), drivers_root(layout)),
            drivers: mounter.drivers().clone(),
            operations: mounter.operations().clone(),
            sockets: Arc::default(),
        }
    }

    pub(super) async fn driver(&self, info: &PluginInfo, socket: &Path) -> Result<CsiDriver, Fault> {
        check(info)?;
        let (own, theirs) = &self.roots;
        let endpoint = info.listens_at(socket, theirs, own);
        let named = endpoint.strip_prefix(own).map_or_else(|_| endpoint.clone(), |it| theirs.join(it));
        let client = Client::new(&endpoint, &info.name, self.operations.clone())?;
        CsiDriver::introduce(&info.name, client, named, self.roots.clone()).await
    }
}

/// Is there a driver of this name and these versions to be spoken to?
fn check(info: &PluginInfo) -> Result<(), Fault> {
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
    Ok(())
}

impl PluginType for CsiPlugins {
    fn name(&self) -> &'static str {
        TYPE
    }

    fn introduce<'a>(&'a self, info: &'a PluginInfo, socket: &'a Path) -> BoxFuture<'a, Result<Admission, Status>> {
        Box::pin(async move {
            let driver = self.driver(info, socket).await;
            let driver = Arc::new(driver.map_err(|it| Status::unknown(it.to_string()))?);
            let (drivers, sockets) = (self.drivers.clone(), self.sockets.clone());
            let (name, socket) = (info.name.clone(), socket.to_owned());
            let admission: Admission = Box::new(move || {
                sockets.lock().insert(name, socket);
                drivers.add(driver);
            });
            Ok(admission)
        })
    }

    fn forget(&self, plugin: &str, socket: &Path) {
        let mut sockets = self.sockets.lock();
        if sockets.get(plugin).is_some_and(|it| it == socket) {
            sockets.remove(plugin);
            self.drivers.remove(plugin);
        }
    }
}
