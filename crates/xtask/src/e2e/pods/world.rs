//! What the cluster shows of the Pods under test: every version of each, every event, in the order they came. Watches fill
//! it; whoever waits is woken by each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_client::{Client, Informer, InformerEvent, InformerParams};
use corten_meta::{Key, Resource};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle};

pub(super) const PODS: Resource = Resource::namespaced("", "v1", "Pod", "pods");
const EVENTS: Resource = Resource::namespaced("", "v1", "Event", "events");
const ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");

pub(super) struct World {
    seen: Arc<Mutex<ObservedObjects>>,
    changed: watch::Receiver<u64>,
    watches: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct ObservedObjects {
    /// Every version; `None`: it was gone then.
    pods: BTreeMap<Key, Vec<Option<Arc<Value>>>>,
    /// By the Pod they are about. What changed stands where it first came.
    events: BTreeMap<Key, Vec<(String, Value)>>,
    accounts: BTreeSet<Key>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

impl World {
    pub(super) fn watch(client: &Client) -> Self {
        let seen = Arc::new(Mutex::new(ObservedObjects::default()));
        let (tell, changed) = watch::channel(0);
        let tell = Arc::new(tell);
        let watches = [PODS, EVENTS, ACCOUNTS].into_iter().map(|resource| {
            let mut informer = Informer::new(client.clone(), InformerParams::all(resource.clone()));
            let (seen, tell) = (seen.clone(), tell.clone());
            tokio::spawn(async move {
                loop {
                    let event = informer.next().await;
                    seen.lock().take_in(&resource, event);
                    tell.send_modify(|it| *it += 1);
                }
            })
        });
        let watches = watches.collect();
        Self { seen, changed, watches }
    }

    /// Is woken by whatever changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        let mut changes = self.changed.clone();
        changes.mark_unchanged();
        changes
    }

    /// The versions of a Pod from `from` on.
    pub(super) fn versions(&self, key: &Key, from: usize) -> Vec<Option<Arc<Value>>> {
        self.seen.lock().pods.get(key).and_then(|it| it.get(from..)).unwrap_or_default().to_vec()
    }

    /// The newest version, even of a Pod that is gone.
    pub(super) fn newest(&self, key: &Key) -> Option<Arc<Value>> {
        self.seen.lock().pods.get(key)?.iter().rev().flatten().next().cloned()
    }

    pub(super) fn events(&self, key: &Key) -> Vec<Value> {
        let seen = self.seen.lock();
        seen.events.get(key).into_iter().flatten().map(|(_, event)| event.clone()).collect()
    }

    pub(super) fn has_account(&self, namespace: &str) -> bool {
        self.seen.lock().accounts.contains(&Key::new(namespace, "default"))
    }

    /// The Pods of a namespace that are still there.
    pub(super) fn present(&self, namespace: &str) -> Vec<Key> {
        let seen = self.seen.lock();
        let is_there = |(key, versions): &(&Key, &Vec<Option<Arc<Value>>>)| {
            key.namespace == namespace && versions.last().is_some_and(Option::is_some)
        };
        seen.pods.iter().filter(is_there).map(|(key, _)| key.clone()).collect()
    }

    /// What a case was about is not needed any more.
    pub(super) fn forget(&self, namespace: &str) {
        let mut seen = self.seen.lock();
        seen.events.retain(|key, _| key.namespace != namespace);
        for (key, versions) in &mut seen.pods {
            if key.namespace == namespace {
                versions.drain(..versions.len().saturating_sub(1));
            }
        }
    }
}

impl ObservedObjects {
    fn take_in(&mut self, resource: &Resource, event: InformerEvent) {
        match event {
            InformerEvent::Applied(bytes, identity) => {
                let Ok(object) = serde_json::from_slice::<Value>(&bytes) else { return };
                match &*resource.plural {
                    "pods" => self.pods.entry(identity.key).or_default().push(Some(Arc::new(object))),
                    "events" => self.take_event(identity.key.name, object),
                    _ => _ = self.accounts.insert(identity.key),
                }
            }
            InformerEvent::Deleted(meta) if resource.plural == "pods" => {
                self.pods.entry(meta.key()).or_default().push(None);
            }
            InformerEvent::Deleted(_) | InformerEvent::Synced(_) => {}
        }
    }

    fn take_event(&mut self, name: String, event: Value) {
        let about = &event["involvedObject"];
        let text = |field: &str| about[field].as_str().unwrap_or_default();
        let list = self.events.entry(Key::new(text("namespace"), text("name"))).or_default();
        match list.iter_mut().find(|it| it.0 == name) {
            Some(old) => old.1 = event,
            None => list.push((name, event)),
        }
    }
}
