//! Volumes that are made known to nodes before they are staged: upstream's external-attacher. Its `trivialHandler` is for drivers
//! that have nothing to do there; others hear of each attachment until it is done, and of each that is to go.

use corten_api::{
    core::v1::{CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec},
    storage::v1::VolumeAttachment,
};
use corten_meta::Time;

use crate::{
    secrets::key_of,
    words::{AttachedVolume, Attaching, DriverFacts, Job},
};

/// On an attachment: the driver's name for the node, for when the node is gone.
pub const NODE_ID: &str = "csi.alpha.kubernetes.io/node-id";

/// On an attachment: its driver was asked to attach the volume, and has to be asked to detach it.
pub const ASKED: &str = "csi.corten.dev/attach-asked";

pub(crate) fn finalizer(driver: &str) -> String {
    format!("external-attacher/{}", driver.replace('/', "-"))
}

/// The PersistentVolume it is about.
pub(crate) fn volume_of(attachment: &VolumeAttachment) -> Option<&str> {
    attachment.spec.source.persistent_volume_name.as_deref()
}

/// What there is to do about the attachment. `rival`: one to another node goes before it, and the volume may be on one alone. `is_doubted`:
/// the driver says otherwise than it, and is asked once more.
pub(crate) fn job(
    attachment: &VolumeAttachment,
    volume: Option<&PersistentVolume>,
    driver: &DriverFacts,
    (rival, is_doubted): (Option<&VolumeAttachment>, bool),
    now: Time,
) -> Option<Job> {
    if !driver.attaches && !driver.attaches_nothing {
        return None;
    }
    let meta = &attachment.metadata;
    let own = finalizer(&driver.name);
    let held = meta.finalizers.clone().unwrap_or_default();
    let (is_leaving, is_held) = (meta.deletion_timestamp.is_some(), held.contains(&own));
    let is_done = if is_leaving { !is_held } else { is_attached(attachment) };
    if is_done && !is_doubted {
        return None;
    }
    let others = held.into_iter().filter(|it| *it != own);
    let is_deleting = volume.is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let found = match rival.filter(|_| !is_leaving) {
        _ if is_leaving && !driver.attaches && was_asked(attachment) => Err(format!(
            "driver {} was asked to attach the volume, and no longer says that it attaches any: it cannot be asked to detach it",
            driver.name
        )),
        _ if is_deleting && !is_leaving => {
            Err(format!("PersistentVolume {:?} is marked for deletion", volume_of(attachment).unwrap_or_default()))
        }
        Some(rival) => Err(format!(
            "the volume is exclusively attached to node {:?} and can't be attached to another",
            rival.spec.node_name
        )),
        None => told(attachment, volume, &own),
    };
    let attaching = Box::new(Attaching {
        attachment: meta.name.clone()?,
        version: meta.resource_version.clone().unwrap_or_default(),
        finalizers: others.chain((!is_leaving).then(|| own.clone())).collect(),
        driver: driver.name.clone(),
        node: attachment.spec.node_name.clone(),
        node_id: meta.annotations.as_ref().and_then(|it| it.get(NODE_ID)).cloned(),
        is_asked: driver.attaches || (is_leaving && was_asked(attachment)),
        volume: found,
        secret: volume.and_then(|it| key_of(it.spec.as_ref()?.csi.as_ref()?.controller_publish_secret_ref.as_ref())),
        now,
    });
    Some(if is_leaving { Job::Detach(attaching) } else { Job::Attach(attaching) })
}

fn was_asked(attachment: &VolumeAttachment) -> bool {
    attachment.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(ASKED))
}

pub(crate) fn is_attached(attachment: &VolumeAttachment) -> bool {
    attachment.status.as_ref().is_some_and(|it| it.attached)
}

/// What the driver is told of the volume.
fn told(attachment: &VolumeAttachment, volume: Option<&PersistentVolume>, own: &str) -> Result<AttachedVolume, String> {
    let Some(name) = volume_of(attachment) else {
        return Err("the attachment names no PersistentVolume: volumes of other kinds are not attached".into());
    };
    let missing = || format!("persistentvolume {name:?} not found");
    let volume = volume.ok_or_else(missing)?;
    let spec = volume.spec.as_ref().ok_or_else(missing)?;
    let csi = spec.csi.as_ref().filter(|it| it.driver == attachment.spec.attacher);
    let csi = csi.ok_or_else(|| format!("PersistentVolume {name:?} is not of driver {}", attachment.spec.attacher))?;
    let held = volume.metadata.finalizers.clone().unwrap_or_default();
    let version = volume.metadata.resource_version.clone().unwrap_or_default();
    let hold =
        (!held.iter().any(|it| it == own)).then(|| (version, held.into_iter().chain([own.to_owned()]).collect()));
    Ok(AttachedVolume { hold, ..told_of(name, spec, csi) })
}

/// What a driver is told of its volume.
pub(crate) fn told_of(name: &str, spec: &PersistentVolumeSpec, csi: &CSIPersistentVolumeSource) -> AttachedVolume {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    AttachedVolume {
        volume: name.to_owned(),
        hold: None,
        handle: csi.volume_handle.clone(),
        fs_type: csi.fs_type.clone().unwrap_or_default(),
        is_block: spec.volume_mode.as_deref() == Some("Block"),
        access_mode: access_mode(modes).to_owned(),
        mount_options: spec.mount_options.clone().unwrap_or_default(),
        context: csi.volume_attributes.clone().unwrap_or_default(),
        read_only: csi.read_only == Some(true),
    }
}

/// One for all, as `GetVolumeCapabilities`: the one that allows most.
fn access_mode(modes: &[String]) -> &str {
    let order = ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let has = |mode: &str| modes.iter().any(|it| it == mode);
    match has("ReadOnlyMany") && (has("ReadWriteOnce") || has("ReadWriteOncePod")) {
        true => "ReadWriteMany",
        false => order.into_iter().find(|it| has(it)).unwrap_or_default(),
    }
}

/// Nobody has it attached any more: what held the volume for that goes.
pub(crate) fn release(volume: &PersistentVolume, is_attached: bool) -> Option<Job> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    let own = finalizer(&csi.driver);
    let is_held = volume.metadata.finalizers.iter().flatten().any(|it| *it == own);
    let is_free = volume.metadata.deletion_timestamp.is_some() && is_held && !is_attached;
    is_free.then(|| Job::LetGo { volume: volume.metadata.name.clone().unwrap_or_default(), finalizer: own })
}
