//! Something of the Pods of each node, kept up from the watch cache's log when it is asked for: no question looks at all Pods.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use corten_api::resources::PODS;

use crate::watch_cache::{Caches, Matcher, Start, Stored, Watcher};

/// See the module's documentation.
pub struct PodsByNode<T> {
    /// The node, and what is kept of the Pod; nothing of one that does not count.
    read: fn(&Stored) -> Option<(String, T)>,
    /// Where in the log this has come to; `None` before the first question.
    watcher: Option<Watcher>,
    /// There by `namespace/name`.
    nodes: HashMap<String, BTreeMap<Arc<str>, T>>,
    places: HashMap<Arc<str>, String>,
}

impl<T> PodsByNode<T> {
    pub fn new(read: fn(&Stored) -> Option<(String, T)>) -> Self {
        Self { read, watcher: None, nodes: HashMap::new(), places: HashMap::new() }
    }

    /// As it was when [`Self::catch_up`] was called last.
    pub fn of(&self, node: &str) -> Option<&BTreeMap<Arc<str>, T>> {
        self.nodes.get(node)
    }

    pub fn catch_up(&mut self, caches: &Caches) {
        let pods = caches.get(&PODS).expect("pods are a row of the table");
        loop {
            let Some(watcher) = &mut self.watcher else {
                let Ok(started) = pods.watch(Matcher::default(), Start::Now) else { return };
                *self = Self { watcher: Some(started.watcher), ..Self::new(self.read) };
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
        let Some((node, kept)) = (self.read)(pod).filter(|it| !it.0.is_empty()) else { return };
        self.places.insert(pod.key.clone(), node.clone());
        self.nodes.entry(node).or_default().insert(pod.key.clone(), kept);
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
