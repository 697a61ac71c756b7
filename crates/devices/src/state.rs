//! What is known of the resources of device plugins, and what was given of them.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use corten_grpc::Client;
use corten_kubelet::{AllocatedDevices, DeviceNews, DeviceResource, PluginDevice, PodsDevices};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use crate::messages::PluginOptions;

/// So long a plugin that is away may come back before its resource is gone (`endpointStopGracePeriod`).
const STOP_GRACE: Duration = Duration::from_secs(300);
/// So many resources plugins of one node may have; more are somebody's mistake.
const RESOURCES_MAX: usize = 256;

/// How a plugin is asked.
#[derive(Clone)]
pub(crate) struct Plugin {
    pub(crate) client: Client,
    pub(crate) options: PluginOptions,
}

#[derive(Default)]
struct Resource {
    devices: BTreeMap<String, PluginDevice>,
    /// `None`: it is away.
    plugin: Option<Plugin>,
    /// The registration that holds; what an earlier one says does not count.
    run: u64,
    gone_at: Option<Instant>,
}

pub(crate) struct State {
    resources: Mutex<BTreeMap<String, Resource>>,
    allocated: Mutex<PodsDevices>,
    changed: watch::Sender<()>,
    runs: AtomicU64,
}

impl State {
    /// With what an earlier run gave and knew; whoever follows is told of every change.
    pub(crate) fn new(allocated: PodsDevices, names: Vec<String>) -> (Self, watch::Receiver<()>) {
        let resources = names.into_iter().take(RESOURCES_MAX).map(|it| (it, Resource::default())).collect();
        let (changed, news) = watch::channel(());
        let (resources, allocated) = (Mutex::new(resources), Mutex::new(allocated));
        (Self { resources, allocated, changed, runs: AtomicU64::new(0) }, news)
    }

    pub(crate) fn tell_again(&self) {
        self.changed.send_replace(());
    }

    /// What the Pod had is nobody's.
    pub(crate) fn took_back(&self, uid: &str) {
        self.allocated.lock().remove(uid);
    }

    pub(crate) fn news(&self) -> DeviceNews {
        let resources = self.resources.lock();
        let one = |it: &Resource| DeviceResource { devices: it.devices.clone(), is_connected: it.plugin.is_some() };
        DeviceNews {
            resources: resources.iter().map(|(name, it)| (name.clone(), one(it))).collect(),
            allocated: self.allocated.lock().clone(),
        }
    }

    pub(crate) fn plugin(&self, resource: &str) -> Option<Plugin> {
        self.resources.lock().get(resource)?.plugin.clone()
    }

    /// All that the Pod has by now.
    pub(crate) fn gave(&self, uid: &str, given: AllocatedDevices) -> Vec<AllocatedDevices> {
        let mut allocated = self.allocated.lock();
        let all = allocated.entry(uid.to_owned()).or_default();
        all.retain(|it| (&it.container, &it.resource) != (&given.container, &given.resource));
        all.push(given);
        all.clone()
    }

    /// The number of a registration, and all names where this one is new.
    pub(crate) fn begin(&self, resource: &str) -> Option<(u64, Option<Vec<String>>)> {
        let mut resources = self.resources.lock();
        let is_new = !resources.contains_key(resource);
        if is_new && resources.len() >= RESOURCES_MAX {
            return None;
        }
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let of_it = resources.entry(resource.to_owned()).or_default();
        // What it had stays until the new one says what it has.
        (of_it.run, of_it.gone_at) = (run, None);
        Some((run, is_new.then(|| resources.keys().cloned().collect())))
    }

    pub(crate) fn told(&self, resource: &str, run: u64, plugin: Plugin, devices: BTreeMap<String, PluginDevice>) {
        if let Some(of_it) = self.resources.lock().get_mut(resource).filter(|it| it.run == run) {
            (of_it.plugin, of_it.devices) = (Some(plugin), devices);
        }
        self.changed.send_replace(());
    }

    pub(crate) fn ended(&self, resource: &str, run: u64) {
        if let Some(of_it) = self.resources.lock().get_mut(resource).filter(|it| it.run == run) {
            (of_it.plugin, of_it.gone_at) = (None, Some(Instant::now()));
        }
        self.changed.send_replace(());
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.resources.lock().values().filter_map(|it| it.gone_at).min().map(|it| it + STOP_GRACE)
    }

    pub(crate) fn expire(&self) {
        let now = Instant::now();
        for of_it in self.resources.lock().values_mut() {
            if of_it.gone_at.is_some_and(|it| it + STOP_GRACE <= now) {
                of_it.gone_at = None;
                of_it.devices.clear();
            }
        }
        self.changed.send_replace(());
    }
}
