//! Claims, volumes and their classes, as far as the controllers of storage read them.

use std::collections::BTreeMap;

use corten_api::{
    resources, snapshots,
    volumes::{BIND_COMPLETED, ClaimSpec, ClassFields, VolumeSpec, class_of, has_class},
};
use corten_meta::{Key, Named, ObjectMeta, Quantity, Resource};
use corten_reconcile::Projection;
use serde::{Deserialize, Deserializer, Serialize};

use crate::projections::{Condition, projection};

/// The condition of a claim that no pod has (KEP-5541).
pub(super) const UNUSED: &str = "Unused";

#[derive(Deserialize)]
#[serde(from = "ClaimObject")]
pub(crate) struct Claim {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ClaimSpec,
    pub(crate) status: ClaimStatus,
    word: Option<Box<str>>,
}

#[derive(Deserialize)]
struct ClaimObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ClaimSpec,
    #[serde(default)]
    status: ClaimStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaimStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) phase: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) access_modes: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) capacity: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current_volume_attributes_class_name: Option<String>,
    #[serde(skip_serializing)]
    pub(crate) modify_volume_status: Option<ModifyVolumeStatus>,
    /// What its condition `Unused` says. Of all conditions no other is read here.
    #[serde(rename = "conditions", deserialize_with = "unused", skip_serializing)]
    pub(crate) unused: Option<bool>,
}

fn unused<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let conditions = Option::<Vec<Condition>>::deserialize(deserializer)?.unwrap_or_default();
    let unused = conditions.iter().find(|it| it.r#type == UNUSED);
    Ok(unused.and_then(|it| match &*it.status {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }))
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ModifyVolumeStatus {
    pub(crate) target_volume_attributes_class_name: String,
}

impl From<ClaimObject> for Claim {
    fn from(ClaimObject { metadata, spec, status }: ClaimObject) -> Self {
        let is_completed = metadata.annotations.contains_key(BIND_COMPLETED);
        let word = match &*spec.volume_name {
            "" if is_completed => None,
            "" => Some(of_class(class_of(&metadata, spec.storage_class_name.as_deref())).into()),
            volume => Some(volume.into()),
        };
        Self { metadata, spec, status, word }
    }
}

impl Named for Claim {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The volume it names; of one that names none yet, its class: see [`of_class`].
    fn found_by(&self) -> Option<&str> {
        self.word.as_deref()
    }
}

impl Projection for Claim {
    const RESOURCE: Resource = resources::PERSISTENT_VOLUME_CLAIMS;
}

impl Claim {
    /// Empty where it has none.
    pub(crate) fn class(&self) -> &str {
        class_of(&self.metadata, self.spec.storage_class_name.as_deref())
    }

    pub(crate) fn has_class(&self) -> bool {
        has_class(&self.metadata, self.spec.storage_class_name.as_deref())
    }

    /// Is its volume to begin with what this snapshot holds?
    pub(crate) fn is_of_snapshot(&self, name: &str) -> bool {
        let source = self.spec.data_source_ref.as_ref();
        source.is_some_and(|it| it.kind == "VolumeSnapshot" && it.name == name && it.api_group == snapshots::GROUP)
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.metadata.annotations.contains_key(BIND_COMPLETED)
    }

    /// Does it wait for any volume, whichever that is?
    pub(crate) fn takes_any(&self) -> bool {
        self.spec.volume_name.is_empty() && !self.is_completed() && !self.metadata.is_deleting()
    }
}

#[derive(Deserialize)]
#[serde(from = "VolumeObject")]
pub(crate) struct Volume {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: VolumeSpec,
    pub(crate) status: VolumeStatus,
    word: Box<str>,
}

#[derive(Deserialize)]
struct VolumeObject {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: VolumeSpec,
    #[serde(default)]
    status: VolumeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeStatus {
    pub(crate) phase: String,
    pub(crate) message: String,
}

impl From<VolumeObject> for Volume {
    fn from(VolumeObject { metadata, spec, status }: VolumeObject) -> Self {
        let word = match &spec.claim_ref {
            Some(claim) => of_claim(&claim.namespace, &claim.name),
            None => of_class(class_of(&metadata, spec.storage_class_name.as_deref())),
        };
        Self { metadata, spec, status, word: word.into() }
    }
}

impl Named for Volume {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The claim it is for, see [`of_claim`]; of one that is nobody's, its class.
    fn found_by(&self) -> Option<&str> {
        Some(&self.word)
    }
}

impl Projection for Volume {
    const RESOURCE: Resource = resources::PERSISTENT_VOLUMES;
}

impl Volume {
    /// The key of the claim it is for.
    pub(crate) fn claim(&self) -> Option<Key> {
        self.spec.claim_ref.as_ref().map(|it| Key::new(&*it.namespace, &*it.name))
    }
}

/// By this are claims found that take any volume of a class, and volumes that are nobody's.
pub(crate) fn of_class(class: &str) -> String {
    format!("class:{class}")
}

/// By this are volumes found that are for a claim, bound to it or reserved.
pub(crate) fn of_claim(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

#[derive(Deserialize)]
pub(crate) struct StorageClass {
    pub(crate) metadata: ObjectMeta,
    #[serde(flatten)]
    pub(crate) fields: ClassFields,
}
projection!(StorageClass, resources::STORAGE_CLASSES);

#[derive(Deserialize)]
pub(crate) struct AttributesClass {
    pub(crate) metadata: ObjectMeta,
}
projection!(AttributesClass, resources::VOLUME_ATTRIBUTES_CLASSES);

#[derive(Deserialize)]
pub(crate) struct CsiDriver {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: CsiDriverSpec,
}
projection!(CsiDriver, resources::CSI_DRIVERS);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CsiDriverSpec {
    pub(crate) attach_required: Option<bool>,
}

#[derive(Deserialize)]
pub(crate) struct Attachment {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: AttachmentSpec,
    #[serde(default)]
    pub(crate) status: AttachmentStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttachmentSpec {
    pub(crate) attacher: String,
    pub(crate) node_name: String,
    #[serde(default)]
    pub(crate) source: AttachmentSource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachmentSource {
    pub(crate) persistent_volume_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachmentStatus {
    pub(crate) attached: bool,
    pub(crate) attach_error: Option<AttachError>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AttachError {
    pub(crate) message: String,
}

impl Named for Attachment {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// The node that the volume is attached to.
    fn found_by(&self) -> Option<&str> {
        Some(&self.spec.node_name)
    }
}

impl Projection for Attachment {
    const RESOURCE: Resource = resources::VOLUME_ATTACHMENTS;
}
