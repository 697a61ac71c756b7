//! A device plugin for tests and scripts: its devices and their health are what a file says, and it fails as another one says.
//!
//! In its folder: `devices`, a line for each, `ID` or `ID unhealthy` or `ID healthy NUMA-NODE`; `fault`, one of [`FAULTS`];
//! `log`, where it writes what it is asked.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_grpc::{Answer, Client, Service, Status, one, read};
use futures_util::{StreamExt, stream};
use prost::Message;

use crate::{
    messages::{
        ALLOCATE, Allocated, CdiDevice, ContainerAllocated, ContainersIds, Device, DeviceSpec, Devices, Empty, HEALTHY,
        Ids, LIST_AND_WATCH, NumaNode, OPTIONS, PRE_START, PREFER, PluginOptions, PreferredRequests, REGISTER,
        RegisterRequest, TopologyInfo, VERSION,
    },
    registration::SOCKET,
};

/// What goes wrong: it refuses to give; it refuses a start; it prefers what it was not asked about; it never answers.
pub const FAULTS: [&str; 4] = ["allocate", "start", "prefer", "hang"];

/// How often its files are looked at.
const PERIOD: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Clone)]
pub struct SamplePlugin {
    resource: String,
    folder: PathBuf,
    /// The kubelet's folder of device plugins.
    plugins: PathBuf,
}

impl SamplePlugin {
    pub fn new(resource: &str, folder: &Path, plugins: &Path) -> Self {
        Self { resource: resource.to_owned(), folder: folder.to_owned(), plugins: plugins.to_owned() }
    }

    fn endpoint(&self) -> String {
        format!("{}.sock", self.resource.replace('/', "-"))
    }

    /// Serves, and registers again whenever the kubelet has another socket, until it is dropped.
    ///
    /// # Errors
    /// Its own socket cannot be made.
    pub async fn serve(self) -> io::Result<()> {
        let mut registered_at = None;
        let mut serving = tokio::task::JoinSet::new();
        loop {
            let seen = fs::metadata(self.plugins.join(SOCKET)).ok().map(|it| (it.ino(), it.ctime_nsec()));
            if seen.is_some() && seen != registered_at {
                serving.shutdown().await;
                let listener = corten_grpc::listen(&self.plugins.join(self.endpoint()))?;
                serving.spawn(corten_grpc::serve(listener, Arc::new(self.clone())));
                if self.register().await.is_ok() {
                    registered_at = seen;
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn register(&self) -> Result<(), Status> {
        let request = RegisterRequest {
            version: VERSION.into(),
            endpoint: self.endpoint(),
            resource_name: self.resource.clone(),
            options: Some(options()),
        };
        let kubelet = Client::new(&self.plugins.join(SOCKET))?;
        kubelet.call::<_, Empty>(REGISTER, request, PATIENCE).await.map(drop)
    }

    fn says(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    fn devices(&self) -> Devices {
        let text = self.says("devices");
        let device = |line: &str| {
            let mut words = line.split_whitespace();
            let id = words.next()?.to_owned();
            let health = if words.next() == Some("unhealthy") { "Unhealthy" } else { HEALTHY }.to_owned();
            let node = words.next().and_then(|it| it.parse().ok());
            let topology = node.map(|id| TopologyInfo { nodes: vec![NumaNode { id }] });
            Some(Device { id, health, topology })
        };
        Devices { devices: text.lines().filter_map(device).collect() }
    }

    fn log(&self, line: &str) {
        let file = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        // What cannot be written is not there to be compared.
        let _ = file.and_then(|mut it| writeln!(it, "{line}"));
    }

    fn allocate(&self, question: Bytes) -> Result<Answer, Status> {
        let ContainersIds { containers } = read(question)?;
        let one_of = |it: &Ids| {
            self.log(&format!("allocate {}", it.ids.join(" ")));
            ContainerAllocated {
                envs: [("FAKE_DEVICES".to_owned(), it.ids.join(","))].into(),
                devices: it.ids.iter().map(|it| fake(it)).collect(),
                annotations: [("example.com/devices".to_owned(), it.ids.join("."))].into(),
                ..ContainerAllocated::default()
            }
        };
        let mut allocated: Vec<_> = containers.iter().map(one_of).collect();
        // Of a node whose runtime knows it, the interface of containers and devices too.
        let cdi = self.says("cdi");
        for it in &mut allocated {
            it.cdi_devices = cdi.lines().map(|it| CdiDevice { name: it.trim().to_owned() }).collect();
        }
        Ok(one(&Allocated { containers: allocated }))
    }

    fn prefer(&self, question: Bytes) -> Result<Answer, Status> {
        let PreferredRequests { containers } = read(question)?;
        // The last ones, to be told from what is given where nobody prefers anything.
        let last = |it: &crate::messages::PreferredRequest| {
            let others = it.available.iter().rev().filter(|id| !it.must_include.contains(id));
            let size = usize::try_from(it.size).unwrap_or(0);
            Ids { ids: it.must_include.iter().chain(others).take(size).cloned().collect() }
        };
        let mut chosen: Vec<Ids> = containers.iter().map(last).collect();
        if self.says("fault").trim() == "prefer" {
            chosen.iter_mut().for_each(|it| it.ids = vec!["nobody-has-it".into()]);
        }
        Ok(one(&ContainersIds { containers: chosen }))
    }

    /// What it has, at once and whenever that changes.
    fn watch(&self) -> Answer {
        let it = self.clone();
        let changes = stream::unfold((it, None), |(it, before)| async move {
            loop {
                let devices = it.devices();
                if before.as_ref() != Some(&devices) {
                    return Some((Bytes::from(devices.encode_to_vec()), (it, Some(devices))));
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        changes.boxed()
    }
}

fn options() -> PluginOptions {
    PluginOptions { pre_start_required: true, get_preferred_allocation_available: true }
}

/// A device of the machine that does no harm, under another name.
fn fake(id: &str) -> DeviceSpec {
    DeviceSpec { container_path: format!("/dev/fake-{id}"), host_path: "/dev/null".into(), permissions: "rw".into() }
}

impl Service for SamplePlugin {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            let fault = self.says("fault");
            match (method, fault.trim()) {
                (LIST_AND_WATCH, _) => Ok(self.watch()),
                (OPTIONS, _) => Ok(one(&options())),
                (_, "hang") => std::future::pending().await,
                (ALLOCATE, "allocate") => Err(Status::internal("told to refuse")),
                (ALLOCATE, _) => self.allocate(question),
                (PREFER, _) => self.prefer(question),
                (PRE_START, "start") => Err(Status::internal("told to refuse")),
                (PRE_START, _) => {
                    let Ids { ids } = read(question)?;
                    self.log(&format!("start {}", ids.join(" ")));
                    Ok(one(&Empty {}))
                }
                _ => Err(Status::unimplemented(method)),
            }
        })
    }
}
