//! Which Pods a node has and what they name, kept up from the watch cache's log: no question looks at all Pods.
//!
//! What lies beyond a Pod (a claim's volume, a volume's secrets) is read from the caches when it is asked for.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use corten_api::resources::{
    PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_CERTIFICATE_REQUESTS_V1BETA1, PODS, RESOURCE_SLICES,
    VOLUME_ATTACHMENTS,
};
use corten_cacher::watch_cache::{Caches, Matcher, Start, Stored, Watcher, key_of};
use corten_meta::Resource;
use serde_json::Value;

use super::References;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Secret,
    ConfigMap,
    Claim,
    Account,
    ResourceClaim,
    Volume,
    Attachment,
    Slice,
    PodCertificate,
    Pod,
}

/// The Pods of one node, by `namespace/name`.
type PodsOfNode = BTreeMap<Arc<str>, References>;

#[derive(Default)]
pub(super) struct Graph {
    /// Where in the log this has come to; `None` before the first question.
    watcher: Option<Watcher>,
    nodes: HashMap<String, PodsOfNode>,
    places: HashMap<Arc<str>, String>,
}

impl Graph {
    /// Does a way lead from this object to the node?
    pub(super) fn leads(&mut self, caches: &Caches, what: What, namespace: &str, name: &str, node: &str) -> bool {
        self.catch_up(caches);
        let object = |resource: &Resource| caches.get(resource).and_then(|it| it.get("", name)).map(|it| it.parse());
        match what {
            What::Attachment => object(&VOLUME_ATTACHMENTS).is_some_and(|it| it["spec"]["nodeName"] == node),
            What::Slice => object(&RESOURCE_SLICES).is_some_and(|it| it["spec"]["nodeName"] == node),
            What::PodCertificate => caches
                .get(&POD_CERTIFICATE_REQUESTS_V1BETA1)
                .and_then(|it| it.get(namespace, name))
                .is_some_and(|it| it.parse()["spec"]["nodeName"] == node),
            What::Volume => object(&PERSISTENT_VOLUMES).is_some_and(|it| self.has_volume(&it, node)),
            What::Pod => self.nodes.get(node).is_some_and(|it| it.contains_key(&*key_of(namespace, name))),
            What::Secret => self.has(what, namespace, name, node) || self.by_volume(caches, namespace, name, node),
            What::ConfigMap | What::Claim | What::Account | What::ResourceClaim => {
                self.has(what, namespace, name, node)
            }
        }
    }

    fn pods_in<'a>(&'a self, namespace: &str, node: &str) -> impl Iterator<Item = &'a References> + use<'a> {
        let prefix = format!("{namespace}/");
        let pods = self.nodes.get(node).map(|it| it.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded)));
        pods.into_iter().flatten().take_while(move |it| it.0.starts_with(&prefix)).map(|it| it.1)
    }

    fn has(&self, what: What, namespace: &str, name: &str, node: &str) -> bool {
        self.pods_in(namespace, node).any(|it| it.has(what, name))
    }

    /// A volume belongs to whose Pod names its claim.
    fn has_volume(&self, volume: &Value, node: &str) -> bool {
        let claim = &volume["spec"]["claimRef"];
        let (Some(namespace), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) else { return false };
        self.has(What::Claim, namespace, name, node)
    }

    /// A secret that a volume of one of the node's Pods names.
    fn by_volume(&self, caches: &Caches, namespace: &str, name: &str, node: &str) -> bool {
        let object = |resource: &Resource, namespace: &str, name: &str| -> Option<Value> {
            Some(caches.get(resource)?.get(namespace, name)?.parse())
        };
        let pods = self.nodes.get(node).into_iter().flatten();
        let mut claims = pods.flat_map(|(key, pod)| {
            let namespace = key.split_once('/').map_or("", |it| it.0);
            pod.all(What::Claim).map(move |it| (namespace, it))
        });
        claims.any(|(of, claim)| {
            let volume = || {
                let claim = object(&PERSISTENT_VOLUME_CLAIMS, of, claim)?;
                object(&PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"].as_str()?)
            };
            volume().is_some_and(|it| names_secret(&it["spec"], namespace, name))
        })
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
                // The log has moved on without us: begin again with what is there.
                Err(_) => self.watcher = None,
            }
        }
    }

    fn put(&mut self, pod: &Arc<Stored>) {
        self.remove(&pod.key);
        let Some(references) = References::read(pod.value()).filter(|it| !it.node.is_empty()) else { return };
        self.places.insert(pod.key.clone(), references.node.clone());
        self.nodes.entry(references.node.clone()).or_default().insert(pod.key.clone(), references);
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

/// The secrets a kubelet needs for a volume. Those for attaching and provisioning are not its business.
fn names_secret(spec: &Value, namespace: &str, name: &str) -> bool {
    let csi = &spec["csi"];
    let of_csi = ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"].map(|it| &csi[it]);
    let others = ["cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"].map(|it| &spec[it]["secretRef"]);
    let file = &spec["azureFile"];
    let claim_namespace = &spec["claimRef"]["namespace"];
    let is_it = |reference: &Value| {
        let at = if reference["namespace"].is_null() { claim_namespace } else { &reference["namespace"] };
        reference["name"] == name && at == namespace
    };
    of_csi.into_iter().chain(others).any(is_it)
        || file["secretName"] == name
            && *(if file["secretNamespace"].is_null() { claim_namespace } else { &file["secretNamespace"] })
                == namespace
}
