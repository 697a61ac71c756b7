//! The fields of storage's objects that the scheduler reads.

use corten_api::{
    resources,
    volumes::{BIND_COMPLETED, ClaimSpec, ClassFields, SELECTED_NODE, SOURCE_NODE, VolumeSpec, class_of, compiled},
};
use corten_meta::{Key, Named, ObjectMeta, Quantity, Resource, Selector};
use corten_reconcile::Projection;
use serde::Deserialize;

use crate::devices::{DeviceClaim, DeviceClass, DeviceObject, DeviceSlice, DeviceTaintRule};

/// An object of storage that is new or changed.
#[derive(Clone, Debug)]
pub enum StorageObject {
    Claim(Claim),
    Volume(Volume),
    Class(StorageClass),
    Driver(CsiDriver),
    Node(CsiNode),
    Capacity(StorageCapacity),
    Attachment(Attachment),
    /// Not of storage, and told the same way.
    Device(DeviceObject),
}

#[derive(Clone, Debug, Deserialize)]
pub struct Claim {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ClaimSpec,
    #[serde(default)]
    pub(crate) status: Phase,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Volume {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: VolumeSpec,
    #[serde(default)]
    pub(crate) status: Phase,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Phase {
    pub(crate) phase: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct StorageClass {
    pub metadata: ObjectMeta,
    #[serde(flatten)]
    pub(crate) fields: ClassFields,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CsiDriver {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: DriverSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DriverSpec {
    /// It tells how much room there is, in CSIStorageCapacities.
    pub(crate) storage_capacity: Option<bool>,
    /// Its volumes are not to come to a node that does not have it.
    pub(crate) prevent_pod_scheduling_if_missing: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CsiNode {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: NodeDrivers,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeDrivers {
    pub(crate) drivers: Vec<NodeDriver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeDriver {
    pub(crate) name: String,
    pub(crate) allocatable: Option<VolumeCount>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeCount {
    pub(crate) count: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageCapacity {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) storage_class_name: String,
    #[serde(default, deserialize_with = "compiled")]
    pub(crate) node_topology: Option<Selector>,
    #[serde(default)]
    pub(crate) capacity: Option<Quantity>,
    #[serde(default)]
    pub(crate) maximum_volume_size: Option<Quantity>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, Deserialize)]
pub struct Attachment {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: AttachmentSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachmentSpec {
    pub(crate) node_name: String,
    pub(crate) source: AttachmentSource,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachmentSource {
    pub(crate) persistent_volume_name: Option<String>,
}

macro_rules! projection {
    ($($type:ident: $resource:expr,)*) => {
        $(
            impl Named for $type {
                fn meta(&self) -> &ObjectMeta {
                    &self.metadata
                }
            }
            impl Projection for $type {
                const RESOURCE: Resource = $resource;
            }
            impl From<$type> for StorageObject {
                fn from(object: $type) -> Self {
                    projection!(@variant $type)(object)
                }
            }
        )*
    };
    (@variant Claim) => { StorageObject::Claim };
    (@variant Volume) => { StorageObject::Volume };
    (@variant StorageClass) => { StorageObject::Class };
    (@variant CsiDriver) => { StorageObject::Driver };
    (@variant CsiNode) => { StorageObject::Node };
    (@variant StorageCapacity) => { StorageObject::Capacity };
    (@variant Attachment) => { StorageObject::Attachment };
}
projection! {
    Claim: resources::PERSISTENT_VOLUME_CLAIMS,
    Volume: resources::PERSISTENT_VOLUMES,
    StorageClass: resources::STORAGE_CLASSES,
    CsiDriver: resources::CSI_DRIVERS,
    CsiNode: resources::CSI_NODES,
    StorageCapacity: resources::CSI_STORAGE_CAPACITIES,
    Attachment: resources::VOLUME_ATTACHMENTS,
}

macro_rules! device {
    ($($type:ident,)*) => {
        $(
            impl From<$type> for StorageObject {
                fn from(object: $type) -> Self {
                    Self::Device(object.into())
                }
            }
        )*
    };
}
device! { DeviceSlice, DeviceClass, DeviceClaim, DeviceTaintRule, }

impl Claim {
    pub(crate) fn class(&self) -> &str {
        class_of(&self.metadata, self.spec.storage_class_name.as_deref())
    }

    pub(crate) fn is_bound(&self) -> bool {
        !self.spec.volume_name.is_empty() && self.metadata.annotations.contains_key(BIND_COMPLETED)
    }

    /// The node that its volume is to be made for.
    pub(crate) fn selected_node(&self) -> Option<&str> {
        self.metadata.annotations.get(SELECTED_NODE).map(String::as_str)
    }

    /// The node that has what its volume is to begin with.
    pub(crate) fn source_node(&self) -> Option<&str> {
        self.metadata.annotations.get(SOURCE_NODE).map(String::as_str)
    }
}

impl Volume {
    pub(crate) fn class(&self) -> &str {
        class_of(&self.metadata, self.spec.storage_class_name.as_deref())
    }

    pub(crate) fn claim(&self) -> Option<Key> {
        self.spec.claim_ref.as_ref().map(|it| Key::new(&*it.namespace, &*it.name))
    }
}
