//! Volumes that outlive their pods: from a claim, its PersistentVolume and the driver's object to what is mounted, with
//! upstream's checks (`desiredStateOfWorldPopulator`) in upstream's words.

use std::collections::BTreeMap;

use corten_api::core::v1::{
    CSIPersistentVolumeSource, CSIVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, Volume,
};
use corten_api::storage::v1::{CSIDriver, CSIDriverSpec, VolumeAttachment};
use corten_meta::Quantity;

use crate::{
    Backend, CsiVolume, HostPathType, PersistentMount, Secrets, TokenWish, VolumeGrowth, VolumeName, VolumeOwner,
    VolumeRead,
    spec::{
        foreign,
        pod::{all_containers, spec_of},
        volumes::host_path_type,
    },
};

/// The older way to name a volume's class and its mount options.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const READ_WRITE_ONCE_POD: &str = "ReadWriteOncePod";
/// gRPC's code.
const RESOURCE_EXHAUSTED: i32 = 8;
const NOT_ATTACHED: &str = " is not attached to this node yet";

/// By what the volume is found at the API; `None`: it is not of this kind.
pub(crate) fn name(pod: &Pod, volume: &Volume) -> Option<VolumeName> {
    if let Some(it) = &volume.persistent_volume_claim {
        return Some(VolumeName::Claim(it.claim_name.clone()));
    }
    if volume.ephemeral.is_some() {
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        return Some(VolumeName::Claim(format!("{pod}-{}", volume.name)));
    }
    volume.csi.as_ref().map(|it| VolumeName::Driver {
        name: it.driver.clone(),
        secret: it.node_publish_secret_ref.as_ref().map(|it| it.name.clone()),
    })
}

/// A volume that says in the pod itself all that there is to say of it.
pub(crate) fn in_place(volume: &Volume) -> Option<PersistentMount> {
    let nfs = volume.nfs.as_ref()?;
    Some(PersistentMount {
        name: volume.name.clone(),
        backend: Backend::Nfs { server: nfs.server.clone(), path: nfs.path.clone() },
        is_block: false,
        read_only: nfs.read_only == Some(true),
        mount_options: Vec::new(),
        is_single_pod: false,
        takes_group: false,
        group: None,
        owner: VolumeOwner::default(),
    })
}

fn owner(pod: &Pod, volume: &Volume, claim: Option<&PersistentVolumeClaim>) -> VolumeOwner {
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    VolumeOwner {
        namespace: of(&pod.metadata.namespace),
        pod: of(&pod.metadata.name),
        volume: volume.name.clone(),
        claim: claim.map(|it| of(&it.metadata.name)).unwrap_or_default(),
    }
}

/// The pod's `fsGroup`.
fn group(pod: &Pod) -> Option<u32> {
    let group = pod.spec.as_ref()?.security_context.as_ref()?.fs_group?;
    u32::try_from(group).ok()
}

/// What is to be mounted, or why it cannot be. `runs`: containers of the pod are there already, and a claim that is being
/// deleted waits for them.
pub(crate) fn resolve(pod: &Pod, volume: &Volume, read: &VolumeRead, runs: bool) -> Result<PersistentMount, String> {
    match &volume.csi {
        Some(inline) => inline_mount(pod, volume, inline, read),
        None => {
            let name = match name(pod, volume) {
                Some(VolumeName::Claim(name)) => name,
                _ => return Err("the volume names no claim".into()),
            };
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let failed = |why: String| format!("error processing PVC {namespace}/{name}: {why}");
            let volume_of = bound(pod, volume, read, runs).map_err(failed)?;
            mount_of(pod, volume, volume_of, read)
        }
    }
}

/// The PersistentVolume that the claim is bound to, both ways.
fn bound<'r>(pod: &Pod, volume: &Volume, read: &'r VolumeRead, runs: bool) -> Result<&'r PersistentVolume, String> {
    let claim = read.claim.as_ref().ok_or("PVC is not found")?;
    if volume.ephemeral.is_some() && !is_owned_by(claim, pod) {
        let of = |it: &Option<String>| it.clone().unwrap_or_default();
        let (own, its) = (&pod.metadata, &claim.metadata);
        return Err(format!(
            "PVC {}/{} was not created for pod {}/{} (pod is not owner)",
            of(&its.namespace),
            of(&its.name),
            of(&own.namespace),
            of(&own.name)
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() && !runs {
        return Err("PVC is being deleted".into());
    }
    let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
    let name = claim.spec.as_ref().and_then(|it| it.volume_name.as_deref()).filter(|it| !it.is_empty());
    let (Some("Bound"), Some(name)) = (phase, name) else { return Err("PVC is not bound".into()) };
    let found = read.volume.as_ref().ok_or_else(|| format!("failed to fetch PV {name} from API server: not found"))?;
    let owner = found.spec.as_ref().and_then(|it| it.claim_ref.as_ref());
    let Some(owner) = owner else {
        return Err(format!(
            "found PV object {name:?} with nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    let (its_uid, uid) = (owner.uid.as_deref().unwrap_or_default(), claim.metadata.uid.as_deref().unwrap_or_default());
    if its_uid != uid {
        return Err(format!(
            "found PV object {name:?} with pv.Spec.ClaimRef.UID {its_uid:?} that does not point to claim.UID {uid:?}"
        ));
    }
    Ok(found)
}

fn is_owned_by(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    owners.filter(|it| it.controller == Some(true)).any(|it| Some(&it.uid) == pod.metadata.uid.as_ref())
}

fn mount_of(
    pod: &Pod,
    volume: &Volume,
    found: &PersistentVolume,
    read: &VolumeRead,
) -> Result<PersistentMount, String> {
    let name = found.metadata.name.clone().unwrap_or_default();
    let spec = found.spec.as_ref().ok_or_else(|| format!("PV {name} says nothing"))?;
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    let is_block = spec.volume_mode.as_deref() == Some("Block");
    check_mode(pod, volume, is_block)?;
    // `csi.readOnly` of the volume is told to who attaches it. `nfs.readOnly` counts as its documentation says, though a kubelet looks at
    // the pod's word alone.
    let is_read_only_export = spec.nfs.as_ref().is_some_and(|it| it.read_only == Some(true));
    let is_asked = volume.persistent_volume_claim.as_ref().is_some_and(|it| it.read_only == Some(true));
    let read_only = is_asked || is_read_only_export;
    let (backend, takes_group) = if let Some(it) = &spec.csi {
        if let Some(problem) = not_attached(&name, read) {
            return Err(problem);
        }
        let driver = read.driver.as_ref();
        refuse_labels(pod, &it.driver, driver)?;
        let takes = takes_group(driver, it.fs_type.as_deref(), modes);
        (Backend::Csi(csi(pod, it, modes, read)), takes)
    } else if let Some(it) = &spec.host_path {
        let kind = host_path_type(it.type_.as_deref().unwrap_or_default()).unwrap_or(HostPathType::Unset);
        (Backend::HostPath { path: it.path.clone(), kind }, false)
    } else if let Some(it) = &spec.local {
        let backend = Backend::Local { path: it.path.clone(), fs_type: it.fs_type.clone().unwrap_or_default() };
        (backend, true)
    } else if let Some(it) = &spec.nfs {
        let backend = Backend::Nfs { server: it.server.clone(), path: it.path.clone() };
        (backend, false)
    } else {
        return Err(format!(
            "volume {:?} is of a kind this node does not support: {}",
            volume.name,
            foreign::kind_of(spec)
        ));
    };
    if is_block && matches!(backend, Backend::HostPath { .. } | Backend::Nfs { .. }) {
        return Err(format!("MapVolume.SetUpDevice failed for volume {name:?} : no block volume of such a source"));
    }
    Ok(PersistentMount {
        backend,
        is_block,
        read_only,
        mount_options: mount_options(found),
        is_single_pod: matches!(modes, [only] if only == READ_WRITE_ONCE_POD),
        takes_group,
        group: group(pod),
        owner: owner(pod, volume, read.claim.as_ref()),
        name,
    })
}

fn mount_options(volume: &PersistentVolume) -> Vec<String> {
    let annotated = volume.metadata.annotations.as_ref().and_then(|it| it.get(MOUNT_OPTIONS));
    let listed = volume.spec.as_ref().and_then(|it| it.mount_options.clone()).unwrap_or_default();
    match annotated {
        Some(it) => it.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        None => listed,
    }
}

/// A volume is used as what it is: a file system is mounted, a device is passed on.
fn check_mode(pod: &Pod, volume: &Volume, is_block: bool) -> Result<(), String> {
    let name = &volume.name;
    let mounted = |it: &corten_api::core::v1::Container| it.volume_mounts.iter().flatten().any(|it| it.name == *name);
    let passed = |it: &corten_api::core::v1::Container| it.volume_devices.iter().flatten().any(|it| it.name == *name);
    if is_block && all_containers(pod).any(mounted) {
        return Err(format!("volume {name} has volumeMode Block, but is specified in volumeMounts"));
    }
    if !is_block && all_containers(pod).any(passed) {
        return Err(format!("volume {name} has volumeMode Filesystem, but is specified in volumeDevices"));
    }
    Ok(())
}

fn spec_of_driver(driver: Option<&CSIDriver>) -> CSIDriverSpec {
    driver.map(|it| it.spec.clone()).unwrap_or_default()
}

/// Where the driver must attach a volume first: why it is not there yet. A driver without a CSIDriver object must
/// (`csiPlugin.CanAttach`).
fn not_attached(volume: &str, read: &VolumeRead) -> Option<String> {
    if spec_of_driver(read.driver.as_ref()).attach_required == Some(false) {
        return None;
    }
    let status = read.attachment.as_ref().and_then(|it| it.status.as_ref());
    if status.is_some_and(|it| it.attached) {
        return None;
    }
    let refused = status.and_then(|it| it.attach_error.as_ref()?.message.as_deref());
    Some(match refused {
        Some(why) => format!("AttachVolume.Attach failed for volume {volume:?} : {why}"),
        None => format!("volume {volume:?}{NOT_ATTACHED}"),
    })
}

/// The driver that attached the volume not, as this node takes no more of its volumes; where it says anew how many these are
/// (`VerifyExhaustedResource`).
pub(crate) fn exhausted(read: &VolumeRead) -> Option<&str> {
    let csi = read.volume.as_ref()?.spec.as_ref()?.csi.as_ref()?;
    let period = spec_of_driver(read.driver.as_ref()).node_allocatable_update_period_seconds;
    let refused = read.attachment.as_ref()?.status.as_ref()?.attach_error.as_ref()?;
    (period.is_some_and(|it| it > 0) && refused.error_code == Some(RESOURCE_EXHAUSTED)).then_some(&csi.driver)
}

/// Does a volume wait for nothing but that its driver attaches it?
pub(crate) fn is_unattached(problem: &str) -> bool {
    problem.ends_with(NOT_ATTACHED)
}

/// A driver that mounts with the labels a Pod asks for would mount without them here.
fn refuse_labels(pod: &Pod, name: &str, driver: Option<&CSIDriver>) -> Result<(), String> {
    let of_pod = spec_of(pod).security_context.as_ref().and_then(|it| it.se_linux_options.as_ref());
    let of_container = |it: &corten_api::core::v1::Container| {
        it.security_context.as_ref().is_some_and(|it| it.se_linux_options.is_some())
    };
    let asks = of_pod.is_some() || all_containers(pod).any(of_container);
    let why = || {
        format!(
            "driver {name} mounts volumes with SELinux labels (spec.seLinuxMount of csidriver/{name}), and the pod asks for \
             some (seLinuxOptions): this node sets none"
        )
    };
    match asks && spec_of_driver(driver).se_linux_mount == Some(true) {
        true => Err(why()),
        false => Ok(()),
    }
}

/// The tokens that a driver asks for of each pod it serves, of its account.
fn token_wishes(driver: Option<&CSIDriver>) -> Vec<TokenWish> {
    let requests = spec_of_driver(driver).token_requests.unwrap_or_default();
    let wish = |it: corten_api::storage::v1::TokenRequest| TokenWish {
        audience: it.audience,
        seconds: it.expiration_seconds.unwrap_or(super::tokens::SECONDS),
    };
    requests.into_iter().map(wish).collect()
}

/// As `supportsFSGroup`: what `fsGroupPolicy` says.
fn takes_group(driver: Option<&CSIDriver>, fs_type: Option<&str>, modes: &[String]) -> bool {
    match spec_of_driver(driver).fs_group_policy.as_deref() {
        Some("File") => true,
        Some("None") => false,
        _ => {
            let once = ["ReadWriteOnce", READ_WRITE_ONCE_POD];
            fs_type.is_some_and(|it| !it.is_empty()) && modes.iter().any(|it| once.contains(&it.as_str()))
        }
    }
}

fn csi(pod: &Pod, source: &CSIPersistentVolumeSource, modes: &[String], read: &VolumeRead) -> CsiVolume {
    let attributes = source.volume_attributes.clone().unwrap_or_default();
    let attached = |it: &VolumeAttachment| it.status.as_ref()?.attachment_metadata.clone();
    CsiVolume {
        driver: source.driver.clone(),
        handle: source.volume_handle.clone(),
        fs_type: source.fs_type.clone().unwrap_or_default(),
        context: attributes.into_iter().chain(pod_info(pod, read.driver.as_ref(), false)).collect(),
        publish_context: read.attachment.as_ref().and_then(attached).unwrap_or_default(),
        access_mode: modes.first().cloned().unwrap_or_default(),
        is_ephemeral: false,
        is_attached: spec_of_driver(read.driver.as_ref()).attach_required != Some(false),
        stage_secrets: read.stage_secrets.clone(),
        publish_secrets: read.publish_secrets.clone(),
        token_wishes: token_wishes(read.driver.as_ref()),
        tokens: Secrets::default(),
        tokens_in_secrets: read.tokens_in_secrets,
        is_republished: spec_of_driver(read.driver.as_ref()).requires_republish == Some(true),
        growth: grows_to(read).map(|bytes| Box::new(VolumeGrowth { bytes, secrets: read.expand_secrets.clone() })),
    }
}

/// As `expandVolumeDuringMount`: how large the volume is, where its claim says that the node's part is to be done.
fn grows_to(read: &VolumeRead) -> Option<u64> {
    let status = read.claim.as_ref()?.status.as_ref()?;
    let size = |it: Option<&BTreeMap<String, corten_api::apimachinery::pkg::api::resource::Quantity>>| {
        it?.get("storage")?.0.parse::<Quantity>().ok()
    };
    let said = status.allocated_resource_statuses.as_ref().and_then(|it| it.get("storage")).map(String::as_str);
    let mut conditions = status.conditions.iter().flatten();
    let is_pending = match said {
        Some(said) => matches!(said, "NodeResizePending" | "NodeResizeInProgress"),
        None => conditions.any(|it| it.type_ == "FileSystemResizePending" && it.status == "True"),
    };
    let wanted = size(read.volume.as_ref()?.spec.as_ref()?.capacity.as_ref())?;
    let is_larger = wanted > size(status.capacity.as_ref()).unwrap_or_default();
    (is_pending && is_larger).then(|| u64::try_from(wanted.value()).unwrap_or(0))
}

/// What a driver with `podInfoOnMount` is told of the pod.
fn pod_info(pod: &Pod, driver: Option<&CSIDriver>, is_ephemeral: bool) -> BTreeMap<String, String> {
    if spec_of_driver(driver).pod_info_on_mount != Some(true) {
        return BTreeMap::new();
    }
    let of = |it: &Option<String>| it.clone().unwrap_or_default();
    let account = spec_of(pod).service_account_name.clone().unwrap_or_default();
    let info = [
        ("csi.storage.k8s.io/pod.name", of(&pod.metadata.name)),
        ("csi.storage.k8s.io/pod.namespace", of(&pod.metadata.namespace)),
        ("csi.storage.k8s.io/pod.uid", of(&pod.metadata.uid)),
        ("csi.storage.k8s.io/serviceAccount.name", account),
        ("csi.storage.k8s.io/ephemeral", is_ephemeral.to_string()),
    ];
    info.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A volume that a driver makes for this pod alone.
fn inline_mount(
    pod: &Pod,
    volume: &Volume,
    source: &CSIVolumeSource,
    read: &VolumeRead,
) -> Result<PersistentMount, String> {
    let (name, driver) = (&source.driver, read.driver.as_ref());
    let Some(found) = driver else {
        return Err(format!("MountVolume.SetUp failed for volume {:?} : CSIDriver {name:?} not found", volume.name));
    };
    let modes = found.spec.volume_lifecycle_modes.as_deref().unwrap_or_default();
    if !modes.iter().any(|it| it == "Ephemeral") {
        return Err(format!(
            "MountVolume.SetUp failed for volume {:?} : volume mode \"Ephemeral\" not supported by driver {name} (only \
             supports {modes:?})",
            volume.name
        ));
    }
    refuse_labels(pod, name, driver)?;
    let attributes = source.volume_attributes.clone().unwrap_or_default();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let csi = CsiVolume {
        driver: name.clone(),
        // Upstream's is a hash of the same parts: one for each volume of each pod.
        handle: format!("csi-{uid}-{}", volume.name),
        fs_type: source.fs_type.clone().unwrap_or_default(),
        context: attributes.into_iter().chain(pod_info(pod, driver, true)).collect(),
        publish_context: BTreeMap::new(),
        access_mode: "ReadWriteOnce".into(),
        is_ephemeral: true,
        is_attached: false,
        stage_secrets: Secrets::default(),
        publish_secrets: read.publish_secrets.clone(),
        token_wishes: token_wishes(driver),
        tokens: Secrets::default(),
        tokens_in_secrets: read.tokens_in_secrets,
        is_republished: spec_of_driver(driver).requires_republish == Some(true),
        growth: None,
    };
    Ok(PersistentMount {
        name: volume.name.clone(),
        is_block: false,
        read_only: source.read_only == Some(true),
        mount_options: Vec::new(),
        is_single_pod: false,
        takes_group: takes_group(driver, Some(&csi.fs_type), &["ReadWriteOnce".into()]),
        group: group(pod),
        owner: owner(pod, volume, None),
        backend: Backend::Csi(csi),
    })
}
