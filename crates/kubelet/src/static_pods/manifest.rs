//! Static pods: from a manifest in a folder of this node to a pod of this node, with upstream's names and marks.
//!
//! Its uid follows from what the manifest says and where it lies: the same file is the same pod, after a restart too.

use std::collections::BTreeMap;

use corten_api::core::v1::{Pod, Toleration};

use crate::{
    Config,
    spec::{pod::spec_of, sources},
};

pub(crate) const HASH: &str = "kubernetes.io/config.hash";
const SOURCE: &str = "kubernetes.io/config.source";
pub(crate) const SEEN: &str = "kubernetes.io/config.seen";

/// What the folder holds.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    /// Before the folder was read once nobody's absence means anything.
    pub(crate) are_known: bool,
    /// The uid of each static pod.
    pub(crate) of: BTreeMap<corten_meta::Key, String>,
    pub(crate) problems: BTreeMap<String, String>,
}

impl Manifests {
    pub(crate) fn new(are_known: bool) -> Self {
        Self { are_known, ..Self::default() }
    }
}

/// The pod that a manifest makes on this node.
pub(crate) fn static_pod(mut pod: Pod, path: &str, config: &Config) -> Result<Pod, String> {
    if let Some(what) = reference(&pod) {
        return Err(format!("static pods may not reference {what}"));
    }
    if spec_of(&pod).ephemeral_containers.as_ref().is_some_and(|it| !it.is_empty()) {
        return Err("static pods may not have ephemeral containers".into());
    }
    pod.status = None;
    let meta = &mut pod.metadata;
    let name = meta.name.clone().unwrap_or_default();
    if name.is_empty() {
        return Err("metadata.name: Required value".into());
    }
    if meta.uid.as_ref().is_none_or(String::is_empty) {
        meta.uid = None;
        let text = serde_json::to_string(&pod).expect("a pod has only string keys");
        pod.metadata.uid = Some(hash(&format!("{text}\0host:{}\0file:{path}", config.node_name)));
    }
    let meta = &mut pod.metadata;
    let uid = meta.uid.clone().unwrap_or_default();
    meta.name = Some(format!("{name}-{}", config.node_name.to_lowercase()));
    meta.namespace.get_or_insert_with(|| "default".into());
    meta.generation.get_or_insert(1);
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(HASH.into(), uid);
    annotations.insert(SOURCE.into(), "file".into());
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(config.node_name.clone());
    // As in the kubelet's `applyDefaults`: what the node itself wants here no taint drives away.
    let all = Toleration { operator: Some("Exists".into()), effect: Some("NoExecute".into()), ..Toleration::default() };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&all) {
        tolerations.push(all);
    }
    Ok(pod)
}

/// What of the API's a pod names: none of it is there for one that must run without the API.
fn reference(pod: &Pod) -> Option<&'static str> {
    let spec = spec_of(pod);
    let named = sources::named_by(pod);
    let volumes = || spec.volumes.iter().flatten();
    let parts = || volumes().flat_map(|it| it.projected.iter().flat_map(|it| it.sources.iter().flatten()));
    let is = |kind| named.iter().any(|it| it.kind == kind);
    let found = [
        (spec.service_account_name.as_ref().is_some_and(|it| !it.is_empty()), "serviceaccounts"),
        (is(crate::SourceKind::Secret), "secrets"),
        (is(crate::SourceKind::ConfigMap), "configmaps"),
        (parts().any(|it| it.service_account_token.is_some()), "serviceaccounts"),
        (parts().any(|it| it.cluster_trust_bundle.is_some()), "clustertrustbundles"),
        (parts().any(|it| it.pod_certificate.is_some()), "podcertificates"),
        (volumes().any(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some()), "persistentvolumeclaims"),
        (spec.resource_claims.as_ref().is_some_and(|it| !it.is_empty()), "resourceclaims"),
    ];
    found.into_iter().find(|it| it.0).map(|it| it.1)
}

/// FNV-1a of 128 bits: the same on every machine and in every version. Files of the node's owner need no stronger one.
fn hash(text: &str) -> String {
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    format!("{:032x}", text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step))
}
