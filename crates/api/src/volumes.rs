//! Rules about volumes and claims that binder, scheduler, node and `corten why` must agree on, each once: upstream has them in
//! k8s.io/component-helpers (`storage/volume`). Here stand the parts of the objects they read, and the rules.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use corten_meta::{LabelSelector, ObjectMeta, ObjectReference, Quantity, Selector};
use serde::{Deserialize, Deserializer};

use crate::core::v1::TypedObjectReference;
use crate::scheduling::{node_field, requirement_holds, term_matches};

/// Holds a claim from before a driver of others is asked for a clone of it until none of its clones waits for its volume (external-provisioner).
pub const CLONING_FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";

/// On a claim: it and its volume are bound to each other; what is missing after that is lost.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or a volume: the controller chose the other, not a person.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume: the provisioner that made it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a volume that grows: how large its claim sees it until that has ended.
pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// On a claim: the node that the scheduler chose for the Pod that uses it, where the volume is to be made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim whose volume begins with one of the built-in driver: the node that has that, once it was to be made for another. The
/// scheduler places its Pod there.
pub const SOURCE_NODE: &str = "local.corten.dev/source-node";
/// On a claim: the provisioner that is to make its volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The older name of [`STORAGE_PROVISIONER`], which provisioners of before 1.23 read.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On claims and volumes: the older form of `spec.storageClassName`, which goes before it.
pub const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// On a class, `"true"`: claims without a class get this one.
pub const IS_DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
pub const BETA_IS_DEFAULT_CLASS: &str = "storageclass.beta.kubernetes.io/is-default-class";
/// The driver that is built in.
pub const LOCAL_DRIVER: &str = "local.corten.dev";
/// On a volume, of Corten: this node still has what it held before it was moved.
pub const MOVED_FROM: &str = "local.corten.dev/moved-from";
/// On a claim, of Corten: its volume is to be moved to this node. Until that is done no Pod that uses it is placed.
pub const MOVE_TO: &str = "local.corten.dev/move-to";
/// The annotation of the CSINode of a machine that has joined, with what its drivers of others can do, as JSON: the control plane asks them
/// where it may ([`CONTROLLER_NODES`]).
pub const DRIVERS_OF_OTHERS: &str = "csi.corten.dev/drivers";
/// The annotation of a CSIDriver that names the joined nodes on which the control plane may ask it in place of sidecars: names between
/// commas, or `*`.
pub const CONTROLLER_NODES: &str = "csi.corten.dev/controller-nodes";
/// The annotation of a CSIDriver that is told for whom it makes volumes and snapshots, where it says `true`: what sidecars do with
/// `--extra-create-metadata`.
pub const EXTRA_CREATE_METADATA: &str = "csi.corten.dev/extra-create-metadata";
/// The provisioner of classes whose volumes are made by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Of a PersistentVolumeClaim's spec, what decides which volume it gets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub volume_name: String,
    pub storage_class_name: Option<String>,
    #[serde(deserialize_with = "distinct")]
    pub access_modes: Vec<String>,
    pub volume_mode: Option<String>,
    #[serde(deserialize_with = "compiled")]
    pub selector: Option<Selector>,
    pub resources: Requests,
    pub volume_attributes_class_name: Option<String>,
    pub data_source_ref: Option<DataSource>,
}

/// What a volume is to begin with: a claim, a VolumeSnapshot, or something that another program reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataSource {
    /// Empty: the core group.
    pub api_group: String,
    pub kind: String,
    pub name: String,
    /// Empty: the claim's own.
    pub namespace: String,
}

impl From<TypedObjectReference> for DataSource {
    fn from(reference: TypedObjectReference) -> Self {
        let TypedObjectReference { api_group, kind, name, namespace } = reference;
        Self { api_group: api_group.unwrap_or_default(), kind, name, namespace: namespace.unwrap_or_default() }
    }
}

/// A selector may name thousands of values, and is asked for each volume: it is made ready once.
///
/// # Errors
/// It has not the shape of a label selector.
pub fn compiled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Selector>, D::Error> {
    Ok(Option::<LabelSelector>::deserialize(deserializer)?.as_ref().map(LabelSelector::selector))
}

/// There are four modes, however often somebody says each.
fn distinct<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut modes: Vec<String> = Vec::new();
    for mode in Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default() {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    Ok(modes)
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requests {
    pub requests: Storage,
}

/// An amount of storage: `{storage: 1Gi}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Storage {
    pub storage: Option<Quantity>,
}

/// Of a PersistentVolume's spec, what decides which claim gets it, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    pub capacity: Storage,
    #[serde(deserialize_with = "distinct")]
    pub access_modes: Vec<String>,
    pub claim_ref: Option<ClaimRef>,
    pub persistent_volume_reclaim_policy: String,
    pub storage_class_name: Option<String>,
    pub volume_mode: Option<String>,
    pub volume_attributes_class_name: Option<String>,
    pub node_affinity: Option<VolumeNodeAffinity>,
    pub csi: Option<CsiSource>,
}

/// The claim that a volume is for. Without a uid it is reserved for whichever claim has the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    pub driver: String,
    pub volume_handle: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    pub required: Option<NodeSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    pub match_expressions: Vec<NodeSelectorRequirement>,
    pub match_fields: Vec<NodeSelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSelectorRequirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

/// Of a StorageClass, all that is not the driver's alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClassFields {
    pub provisioner: String,
    pub volume_binding_mode: String,
    pub allowed_topologies: Vec<TopologyTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    pub match_label_expressions: Vec<TopologyRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TopologyRequirement {
    pub key: String,
    pub values: Vec<String>,
}

impl ClassFields {
    /// Are its claims bound only when a Pod that uses them has a node?
    pub fn waits_for_consumer(&self) -> bool {
        self.volume_binding_mode == "WaitForFirstConsumer"
    }

    /// May a volume of the class be made for a node with these labels? (`MatchTopologySelectorTerms`)
    pub fn allows(&self, labels: &BTreeMap<String, String>) -> bool {
        let holds = |it: &TopologyRequirement| labels.get(&it.key).is_some_and(|value| it.values.contains(value));
        let allows = |it: &TopologyTerm| it.match_label_expressions.iter().all(holds);
        self.allowed_topologies.is_empty() || self.allowed_topologies.iter().any(allows)
    }
}

/// Is a class the one for claims that name none?
pub fn is_default_class(meta: &ObjectMeta) -> bool {
    [IS_DEFAULT_CLASS, BETA_IS_DEFAULT_CLASS].iter().any(|it| meta.annotations.get(*it).is_some_and(|it| it == "true"))
}

/// The class of a claim or a volume; empty where it has none (`GetPersistentVolumeClaimClass`).
pub fn class_of<'a>(meta: &'a ObjectMeta, class: Option<&'a str>) -> &'a str {
    meta.annotations.get(BETA_CLASS).map(String::as_str).or(class).unwrap_or_default()
}

/// Does a claim say which class it is of, be it none? (`PersistentVolumeClaimHasClass`)
pub fn has_class(meta: &ObjectMeta, class: Option<&str>) -> bool {
    meta.annotations.contains_key(BETA_CLASS) || class.is_some()
}

/// Is the volume for this claim? (`IsVolumeBoundToClaim`)
pub fn is_for(volume: &VolumeSpec, claim: &ObjectMeta) -> bool {
    volume.claim_ref.as_ref().is_some_and(|it| {
        it.namespace == claim.namespace && it.name == claim.name && (it.uid.is_empty() || it.uid == claim.uid)
    })
}

/// What `spec.claimRef` of a volume for this claim says (`claimRef` of `GetBindVolumeToClaim`).
pub fn reference_to(claim: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        kind: "PersistentVolumeClaim".into(),
        api_version: "v1".into(),
        namespace: claim.namespace.clone(),
        name: claim.name.clone(),
        uid: claim.uid.clone(),
        resource_version: claim.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Does a volume hold less than a claim asks for?
pub fn is_too_small(claim: &ClaimSpec, volume: &VolumeSpec) -> bool {
    volume.capacity.storage.unwrap_or_default() < claim.resources.requests.storage.unwrap_or_default()
}

/// Do a claim and a volume differ in being a file system or a block device?
pub fn modes_differ(claim: &ClaimSpec, volume: &VolumeSpec) -> bool {
    let mode = |it: &Option<String>| it.as_deref().unwrap_or("Filesystem").to_owned();
    mode(&claim.volume_mode) != mode(&volume.volume_mode)
}

pub fn attributes_classes_differ(claim: &ClaimSpec, volume: &VolumeSpec) -> bool {
    claim.volume_attributes_class_name.as_deref().unwrap_or_default()
        != volume.volume_attributes_class_name.as_deref().unwrap_or_default()
}

pub fn has_access_modes(claim: &ClaimSpec, volume: &VolumeSpec) -> bool {
    claim.access_modes.iter().all(|it| volume.access_modes.contains(it))
}

/// Why a claim cannot have the volume that it names, in upstream's words (`checkVolumeSatisfyClaim`).
pub fn mismatch(
    (claim_meta, claim): (&ObjectMeta, &ClaimSpec),
    (volume_meta, volume): (&ObjectMeta, &VolumeSpec),
) -> Option<String> {
    let class = |meta, class: &Option<String>| class_of(meta, class.as_deref()).to_owned();
    if volume_meta.is_deleting() {
        return Some(format!("the volume is marked for deletion {:?}", volume_meta.name));
    }
    let said = if is_too_small(claim, volume) {
        "requested PV is too small"
    } else if class(claim_meta, &claim.storage_class_name) != class(volume_meta, &volume.storage_class_name) {
        "storageClassName does not match"
    } else if attributes_classes_differ(claim, volume) {
        "volumeAttributesClassName does not match"
    } else if modes_differ(claim, volume) {
        "incompatible volumeMode"
    } else if !has_access_modes(claim, volume) {
        "incompatible accessMode"
    } else {
        return None;
    };
    Some(said.into())
}

/// Can the claim have this volume, which is of its class and nobody's? The caller looks at phases and nodes
/// (`FindMatchingVolume`).
pub fn fits(claim: &ClaimSpec, volume_meta: &ObjectMeta, volume: &VolumeSpec) -> bool {
    !volume_meta.is_deleting()
        && !is_too_small(claim, volume)
        && !modes_differ(claim, volume)
        && !attributes_classes_differ(claim, volume)
        && has_access_modes(claim, volume)
        && claim.selector.as_ref().is_none_or(|it| it.matches(&volume_meta.labels))
}

/// Is the volume reachable from a node with these labels? (`CheckNodeAffinity`, which knows no fields of the node.)
pub fn is_reachable(volume: &VolumeSpec, labels: &BTreeMap<String, String>) -> bool {
    let required = volume.node_affinity.as_ref().and_then(|it| it.required.as_ref());
    required.is_none_or(|it| it.matches(labels, ""))
}

impl NodeSelector {
    pub fn matches(&self, labels: &BTreeMap<String, String>, node: &str) -> bool {
        self.node_selector_terms.iter().any(|it| {
            let label = |key: &str| labels.get(key).map(String::as_str);
            let labels = it.match_expressions.iter().map(|it| it.holds(label(&it.key)));
            let fields = it.match_fields.iter().map(|it| it.holds(node_field(&it.key, node)));
            term_matches(labels.chain(fields))
        })
    }
}

impl NodeSelectorRequirement {
    fn holds(&self, value: Option<&str>) -> bool {
        requirement_holds(&self.operator, self.values.iter().map(|it| &**it), value)
    }
}

/// The name of the VolumeAttachment that stands for a volume on a node, by which the node looks for it (`getAttachmentName`).
pub fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    let hash = digest(&SHA256, format!("{handle}{driver}{node}").as_bytes());
    hash.as_ref().iter().fold("csi-".to_owned(), |name, it| format!("{name}{it:02x}"))
}

/// May a volume with these modes be attached to several nodes at once? (`IsMultiAttachAllowed`)
pub fn is_multi_attach_allowed(access_modes: &[String]) -> bool {
    access_modes.iter().any(|it| matches!(&**it, "ReadOnlyMany" | "ReadWriteMany"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_is_named_as_upstream_names_it() {
        // printf vol-0a1b2c3dex.csi.example.comworker-7 | sha256sum
        let name = attachment_name("vol-0a1b2c3d", "ex.csi.example.com", "worker-7");
        assert_eq!(name, "csi-fb3c157ee2200060bb00538b5ff03a3d305c8ed840c86ed4ab5ce3c14767b4a3");
    }
}
