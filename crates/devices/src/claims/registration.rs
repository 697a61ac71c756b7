//! Drivers of devices, as they register: each has a name, and speaks a version of the DRA plugin API.

use std::path::Path;

use corten_grpc::{Admission, Client, PluginInfo, PluginType, Status};
use futures_util::future::BoxFuture;

use super::{ClaimDrivers, drivers::Driver, messages::VERSIONS};

const TYPE: &str = "DRAPlugin";
/// What drivers call the kubelet's folder.
const KUBELET: &str = "/var/lib/kubelet";
const NAME_BYTES_MAX: usize = 63;

impl PluginType for ClaimDrivers {
    fn name(&self) -> &'static str {
        TYPE
    }

    fn introduce<'a>(&'a self, info: &'a PluginInfo, socket: &'a Path) -> BoxFuture<'a, Result<Admission, Status>> {
        Box::pin(async move {
            let driver = driver(info, &info.listens_at(socket, Path::new(KUBELET), &self.data))?;
            let (drivers, name, socket) = (self.clone(), info.name.clone(), socket.to_owned());
            let admission: Admission = Box::new(move || drivers.add(&name, &socket, driver));
            Ok(admission)
        })
    }

    fn forget(&self, plugin: &str, socket: &Path) {
        self.remove(plugin, socket);
    }
}

fn driver(info: &PluginInfo, endpoint: &Path) -> Result<Driver, Status> {
    let is_name = corten_meta::field::dns1123_subdomain(&info.name).is_empty() && info.name.len() <= NAME_BYTES_MAX;
    if !is_name {
        return Err(Status::invalid_argument(format!("{:?} is not the name of a driver", info.name)));
    }
    let spoken = VERSIONS.iter().find(|it| info.supported_versions.iter().any(|named| named == it.name));
    let version = spoken.ok_or_else(|| {
        let versions = info.supported_versions.join(", ");
        Status::invalid_argument(format!("none of the versions {versions} is spoken here: v1.DRAPlugin is"))
    })?;
    Ok(Driver { client: Client::new(endpoint)?, version })
}
