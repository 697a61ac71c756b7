//! Volumes that outlive their pods: what the API says of one, and what the host is to mount for it.

use std::{collections::BTreeMap, fmt};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSIDriver, VolumeAttachment},
};
use corten_meta::Key;

use crate::words::{token::TokenWish, volume::HostPathType};

/// By what a pod's volume is found at the API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeName {
    /// A claim of the pod's namespace.
    Claim(String),
    /// A CSI driver that is named in the pod itself (`csi`), and the Secret it is told at publishing, of the pod's namespace.
    Driver { name: String, secret: Option<String> },
}

/// What the API has of one volume at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeRead {
    pub claim: Option<PersistentVolumeClaim>,
    /// The one the claim names.
    pub volume: Option<PersistentVolume>,
    /// That of its CSI driver, where there is one.
    pub driver: Option<CSIDriver>,
    /// The driver takes tokens among Secrets alone (`serviceAccountTokenInSecrets`).
    pub tokens_in_secrets: bool,
    /// The volume's attachment to this node, where there is one.
    pub attachment: Option<VolumeAttachment>,
    pub stage_secrets: Secrets,
    pub publish_secrets: Secrets,
    /// For the node's part in growing it.
    pub expand_secrets: Secrets,
}

/// What a Secret says, for a driver.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub BTreeMap<String, String>);

/// Without what it says.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A volume that outlives its pod, or that a CSI driver makes for it.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistentMount {
    /// The PersistentVolume's name; of a volume that is in the pod itself, its name there.
    pub name: String,
    pub backend: Backend,
    /// The device itself, without a file system (`volumeMode: Block`).
    pub is_block: bool,
    pub read_only: bool,
    pub mount_options: Vec<String>,
    /// `ReadWriteOncePod`: no second pod has it.
    pub is_single_pod: bool,
    /// The node gives its files to the pod's `fsGroup`.
    pub takes_group: bool,
    /// That group, for a driver that gives the files to it itself (`VOLUME_MOUNT_GROUP`).
    pub group: Option<u32>,
    pub owner: VolumeOwner,
}

/// Whose volume it is, for who tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeOwner {
    pub namespace: String,
    pub pod: String,
    /// The pod's own name for it.
    pub volume: String,
    /// Empty: it is in the pod itself.
    pub claim: String,
}

/// Who has the data.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most are of drivers, and what has one is in a box already")]
pub enum Backend {
    /// A path of the machine.
    HostPath {
        path: String,
        kind: HostPathType,
    },
    /// A folder of the machine, or a disk: then with a file system of this type, made where there is none.
    Local {
        path: String,
        fs_type: String,
    },
    /// A server's folder, mounted by the kernel.
    Nfs {
        server: String,
        path: String,
    },
    Csi(CsiVolume),
}

/// A claim's volume that Pods of the node have, of a driver of somebody else's with a part in growing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowableVolume {
    pub driver: String,
    pub handle: String,
    pub claim: Key,
    /// By uid.
    pub pods: BTreeMap<String, Key>,
}

/// What a CSI driver is told of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CsiVolume {
    pub driver: String,
    pub handle: String,
    pub fs_type: String,
    /// `volumeAttributes`, and what a driver with `podInfoOnMount` is told of the pod.
    pub context: BTreeMap<String, String>,
    /// What the attaching gave (`status.attachmentMetadata`).
    pub publish_context: BTreeMap<String, String>,
    /// As in the PersistentVolume, the first of them: `ReadWriteOnce` and so on.
    pub access_mode: String,
    /// It ends with its pod.
    pub is_ephemeral: bool,
    /// It was attached to this node, and is detached once no pod here has it.
    pub is_attached: bool,
    pub stage_secrets: Secrets,
    pub publish_secrets: Secrets,
    /// The tokens of the pod's account that the driver asks for (`tokenRequests`).
    pub token_wishes: Vec<TokenWish>,
    /// Those tokens, as the driver is told them at each publishing.
    pub tokens: Secrets,
    /// They are told among the Secrets (KEP-5538), not in the volume's context.
    pub tokens_in_secrets: bool,
    /// It is published again and again (`requiresRepublish`).
    pub is_republished: bool,
    /// The node has its part still to do in growing it. Some drivers do that only before a pod has the volume.
    pub growth: Option<Box<VolumeGrowth>>,
}

/// How large a volume is to be, and what its driver is told for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeGrowth {
    pub bytes: u64,
    pub secrets: Secrets,
}

/// A block device in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub container_path: String,
    pub source: DeviceSource,
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSource {
    /// A device of the machine.
    Path(String),
    /// What a CSI driver has published for the pod under this name.
    Csi { name: String },
}
