//! Which ports of each node its Pods have, kept up from the watch cache's log: no choice looks at all Pods.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use corten_api::resources::PODS;
use corten_cacher::watch_cache::{Caches, Matcher, Start, Stored, Watcher};
use corten_kinds::host_ports;

/// By `namespace/name`. Pods without such ports are not here.
type PodsOfNode = BTreeMap<Arc<str>, BTreeSet<u16>>;

#[derive(Default)]
pub(super) struct TakenPorts {
    /// Where in the log this has come to; `None` before the first question.
    watcher: Option<Watcher>,
    nodes: HashMap<String, PodsOfNode>,
    places: HashMap<Arc<str>, String>,
}

impl TakenPorts {
    /// As the caches have it.
    pub(super) fn of(&mut self, caches: &Caches, node: &str) -> BTreeSet<u16> {
        self.catch_up(caches);
        self.nodes.get(node).into_iter().flat_map(BTreeMap::values).flatten().copied().collect()
    }

    fn catch_up(&mut self, caches: &Caches) {
        let pods = caches.get(&PODS).expect("pods are a row of the table");
        loop {
            let Some(watcher) = &mut self.watcher else {
                let Ok(started) = pods.watch(Matcher::default(), Start::Now) else { return };
                *self = Self { watcher: Some(started.watcher), ..Self::default() };
                started.snapshot.iter().for_each(|it| self.put(it));
                continue;
            };
            match watcher.ready() {
                Ok(events) if events.is_empty() => return,
                Ok(events) => {
                    for (event, _) in events {
                        match (&event.object, &event.previous) {
                            (Some(pod), _) => self.put(pod),
                            (None, Some(pod)) => self.remove(&pod.key),
                            (None, None) => {}
                        }
                    }
                }
                // The log has moved on without this: it begins again with what is there.
                Err(_) => self.watcher = None,
            }
        }
    }

    fn put(&mut self, pod: &Arc<Stored>) {
        self.remove(&pod.key);
        // Most Pods have no such port, and are not read.
        if memchr::memmem::find(pod.value(), HOST_PORT).is_none() {
            return;
        }
        let object = pod.parse();
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
        let ports = host_ports::taken_by(&object);
        if node.is_empty() || ports.is_empty() {
            return;
        }
        self.places.insert(pod.key.clone(), node.to_owned());
        self.nodes.entry(node.to_owned()).or_default().insert(pod.key.clone(), ports);
    }

    fn remove(&mut self, key: &Arc<str>) {
        let Some(node) = self.places.remove(key) else { return };
        if let Some(pods) = self.nodes.get_mut(&node) {
            pods.remove(key);
            if pods.is_empty() {
                self.nodes.remove(&node);
            }
        }
    }
}

const HOST_PORT: &[u8] = br#""hostPort""#;
