//! Which Pods a node has and what they name.
//!
//! What lies beyond a Pod (a claim's volume, a volume's secrets) is read from the caches when it is asked for.

use std::ops::Bound;

use corten_api::resources::{
    PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_CERTIFICATE_REQUESTS_V1BETA1, RESOURCE_SLICES, VOLUME_ATTACHMENTS,
};
use corten_cacher::{
    by_node::PodsByNode,
    watch_cache::{Caches, key_of},
};
use corten_meta::Resource;
use serde_json::Value;

use super::References;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferencedKind {
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

pub(super) struct Graph(PodsByNode<References>);

impl Default for Graph {
    fn default() -> Self {
        Self(PodsByNode::new(|pod| References::read(pod.value()).map(|it| (it.node.clone(), it))))
    }
}

impl Graph {
    /// Does a way lead from this object to the node?
    pub(super) fn leads(
        &mut self,
        caches: &Caches,
        kind: ReferencedKind,
        namespace: &str,
        name: &str,
        node: &str,
    ) -> bool {
        self.0.catch_up(caches);
        let object = |resource: &Resource| caches.get(resource).and_then(|it| it.get("", name)).map(|it| it.parse());
        match kind {
            ReferencedKind::Attachment => object(&VOLUME_ATTACHMENTS).is_some_and(|it| it["spec"]["nodeName"] == node),
            ReferencedKind::Slice => object(&RESOURCE_SLICES).is_some_and(|it| it["spec"]["nodeName"] == node),
            ReferencedKind::PodCertificate => caches
                .get(&POD_CERTIFICATE_REQUESTS_V1BETA1)
                .and_then(|it| it.get(namespace, name))
                .is_some_and(|it| it.parse()["spec"]["nodeName"] == node),
            ReferencedKind::Volume => object(&PERSISTENT_VOLUMES).is_some_and(|it| self.has_volume(&it, node)),
            ReferencedKind::Pod => self.0.of(node).is_some_and(|it| it.contains_key(&*key_of(namespace, name))),
            ReferencedKind::Secret => {
                self.has(kind, namespace, name, node) || self.by_volume(caches, namespace, name, node)
            }
            ReferencedKind::ConfigMap
            | ReferencedKind::Claim
            | ReferencedKind::Account
            | ReferencedKind::ResourceClaim => self.has(kind, namespace, name, node),
        }
    }

    fn pods_in<'a>(&'a self, namespace: &str, node: &str) -> impl Iterator<Item = &'a References> + use<'a> {
        let prefix = format!("{namespace}/");
        let pods = self.0.of(node).map(|it| it.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded)));
        pods.into_iter().flatten().take_while(move |it| it.0.starts_with(&prefix)).map(|it| it.1)
    }

    fn has(&self, kind: ReferencedKind, namespace: &str, name: &str, node: &str) -> bool {
        self.pods_in(namespace, node).any(|it| it.has(kind, name))
    }

    /// A volume belongs to whose Pod names its claim.
    fn has_volume(&self, volume: &Value, node: &str) -> bool {
        let claim = &volume["spec"]["claimRef"];
        let (Some(namespace), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) else { return false };
        self.has(ReferencedKind::Claim, namespace, name, node)
    }

    /// A secret that a volume of one of the node's Pods names.
    fn by_volume(&self, caches: &Caches, namespace: &str, name: &str, node: &str) -> bool {
        let object = |resource: &Resource, namespace: &str, name: &str| -> Option<Value> {
            Some(caches.get(resource)?.get(namespace, name)?.parse())
        };
        let pods = self.0.of(node).into_iter().flatten();
        let mut claims = pods.flat_map(|(key, pod)| {
            let namespace = key.split_once('/').map_or("", |it| it.0);
            pod.all(ReferencedKind::Claim).map(move |it| (namespace, it))
        });
        claims.any(|(of, claim)| {
            let volume = || {
                let claim = object(&PERSISTENT_VOLUME_CLAIMS, of, claim)?;
                object(&PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"].as_str()?)
            };
            // Anybody's claim may name a volume; whose it is, that says itself.
            let is_its =
                |it: &Value| it["spec"]["claimRef"]["namespace"] == of && it["spec"]["claimRef"]["name"] == *claim;
            volume().is_some_and(|it| is_its(&it) && names_secret(&it["spec"], namespace, name))
        })
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
