//! What a claim's volume is to begin with, checked as external-provisioner checks it (`getSnapshotSource`, `getPVCSource`), in
//! its words.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, TypedObjectReference},
    snapshots::{ALLOW_MODE_CHANGE, CONTENT_MANAGED_BY, GROUP, VolumeSnapshot, VolumeSnapshotContent},
};
use corten_meta::{Key, Quantity};

use crate::{
    provision::spec,
    removal::is_reached,
    words::{DriverFacts, Source},
};

/// Holds a claim whose volume others begin with until all of them have (`pvcCloneFinalizer`).
pub const CLONING_PROTECTION: &str = "provisioner.storage.kubernetes.io/cloning-protection";

/// What is known of what volumes can begin with.
pub(crate) struct Sources<'s> {
    pub(crate) claims: &'s BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    pub(crate) volumes: &'s BTreeMap<String, Arc<PersistentVolume>>,
    pub(crate) snapshots: &'s BTreeMap<Key, Arc<VolumeSnapshot>>,
    pub(crate) contents: &'s BTreeMap<String, Arc<VolumeSnapshotContent>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoSource {
    /// It is something that another program reads, and makes the volume of.
    OfPopulator,
    /// It is on another node.
    Elsewhere(String),
    /// It cannot be, or not yet.
    Refused(String),
}

impl From<String> for NoSource {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// Is it one that a populator makes the volume of?
fn is_populators(source: &TypedObjectReference) -> bool {
    let group = source.api_group.as_deref().unwrap_or_default();
    !matches!((group, &*source.kind), (GROUP, "VolumeSnapshot") | ("", "PersistentVolumeClaim"))
}

/// Does the claim's volume begin with this snapshot or claim?
pub(crate) fn is_of(claim: &PersistentVolumeClaim, kind: &str, key: &Key) -> bool {
    let source = claim.spec.as_ref().and_then(|it| it.data_source_ref.as_ref());
    claim.metadata.namespace.as_deref() == Some(&*key.namespace)
        && source.is_some_and(|it| it.kind == kind && it.name == *key.name)
}

/// The claim whose volume this one's begins with.
pub(crate) fn claim_of(claim: &PersistentVolumeClaim) -> Option<Key> {
    let source = claim.spec.as_ref()?.data_source_ref.as_ref()?;
    let is_claim = source.kind == "PersistentVolumeClaim" && source.api_group.as_deref().unwrap_or_default().is_empty();
    is_claim.then(|| Key::new(claim.metadata.namespace.as_deref().unwrap_or_default(), &*source.name))
}

/// Is it held for clones, to be deleted, and begun with by none that has no volume yet? As external-provisioner's
/// `CloningProtectionController`.
pub(crate) fn is_to_be_let_go<'c>(
    claim: &PersistentVolumeClaim,
    key: &Key,
    mut others: impl Iterator<Item = &'c Arc<PersistentVolumeClaim>>,
) -> bool {
    let is_held = claim.metadata.finalizers.iter().flatten().any(|it| it == CLONING_PROTECTION);
    let is_pending =
        |it: &PersistentVolumeClaim| it.status.as_ref().is_none_or(|it| it.phase.as_deref() == Some("Pending"));
    is_held
        && claim.metadata.deletion_timestamp.is_some()
        && !others.any(|it| is_pending(it) && claim_of(it).as_ref() == Some(key))
}

impl Sources<'_> {
    /// What the driver is to begin with; `None`: with nothing.
    pub(crate) fn of(
        &self,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        (driver, node): (&DriverFacts, &str),
    ) -> Result<Option<Source>, NoSource> {
        let Some(source) = spec(claim).data_source_ref else { return Ok(None) };
        if is_populators(&source) {
            return Err(NoSource::OfPopulator);
        }
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        if source.namespace.as_deref().is_some_and(|it| !it.is_empty() && it != namespace) {
            let why = format!("data source {} is in another namespace, which is not supported", source.name);
            return Err(why.into());
        }
        let key = Key::new(namespace, &*source.name);
        if source.kind == "VolumeSnapshot" {
            if !driver.snapshots {
                return Err(
                    "CSI driver does not support snapshot restore: it must have capability CREATE_DELETE_SNAPSHOT"
                        .to_owned()
                        .into(),
                );
            }
            return self.snapshot(&key, claim, bytes, (driver, node)).map(Some);
        }
        if !driver.clones {
            return Err("CSI driver does not support clone: it must have capability CLONE_VOLUME".to_owned().into());
        }
        self.claim(&key, claim, bytes, (driver, node)).map(Some)
    }

    fn snapshot(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        (driver, node): (&DriverFacts, &str),
    ) -> Result<Source, NoSource> {
        let name = &key.name;
        let missing =
            || format!("error getting snapshot {name} from api server: volumesnapshots.{GROUP} {name:?} not found");
        let snapshot = self.snapshots.get(key).ok_or_else(missing)?;
        if snapshot.metadata.is_deleting() {
            return Err(format!("snapshot {name} is currently being deleted").into());
        }
        let bound = &snapshot.status.bound_volume_snapshot_content_name;
        if bound.is_empty() {
            return Err(format!("snapshot {name} not bound").into());
        }
        let missing = || format!("error getting snapshotcontent {bound} for snapshot {key} from api server: not found");
        let content = self.contents.get(bound).ok_or_else(missing)?;
        if !content.is_of(&snapshot.metadata) {
            return Err(format!("snapshotcontent {bound} for snapshot {key} is bound to a different snapshot").into());
        }
        if content.spec.driver != driver.name {
            let why =
                format!("snapshot {key} is of driver {}, and the class is of {}", content.spec.driver, driver.name);
            return Err(why.into());
        }
        if !snapshot.is_ready() {
            return Err(format!("snapshot {name} is not Ready").into());
        }
        let handle = content.handle().ok_or_else(|| format!("snapshot handle of {name} is not available"))?;
        if let Some(there) = content.status.restore_size.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > bytes)
        {
            let why =
                format!("requested volume size {bytes} is less than the size {there} for the source snapshot {name}");
            return Err(why.into());
        }
        let mode = spec(claim).volume_mode.unwrap_or_else(|| "Filesystem".to_owned());
        let may_change = content.metadata.annotations.get(ALLOW_MODE_CHANGE).is_some_and(|it| it == "true");
        if content.spec.source_volume_mode.as_ref().is_some_and(|it| *it != mode) && !may_change {
            let why = format!(
                "requested volume {}/{} modifies the mode of the source volume but does not have permission to do so. \
                 {ALLOW_MODE_CHANGE} annotation is not present on snapshotcontent {bound}",
                key.namespace,
                claim.metadata.name.as_deref().unwrap_or_default()
            );
            return Err(why.into());
        }
        match content.metadata.labels.get(CONTENT_MANAGED_BY).filter(|it| *it != node) {
            Some(other) => Err(NoSource::Elsewhere(format!("snapshot {name} is on node {other}"))),
            None => Ok(Source::Snapshot(handle.to_owned())),
        }
    }

    fn claim(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        (driver, node): (&DriverFacts, &str),
    ) -> Result<Source, NoSource> {
        let (name, namespace) = (&key.name, &key.namespace);
        let missing = || {
            format!(
                "error getting PVC {name} (namespace {namespace:?}) from api server: persistentvolumeclaims {name:?} not found"
            )
        };
        let of = self.claims.get(key).ok_or_else(missing)?;
        if of.metadata.deletion_timestamp.is_some() {
            return Err(format!("the PVC DataSource {name} is currently being deleted").into());
        }
        let (status, source_spec) = (of.status.clone().unwrap_or_default(), spec(of));
        let phase = status.phase.unwrap_or_default();
        let volume = self.volumes.get(source_spec.volume_name.as_deref().unwrap_or_default());
        let is_bound = |it: &&Arc<PersistentVolume>| {
            let claim = it.spec.as_ref().and_then(|it| it.claim_ref.as_ref());
            claim.is_some_and(|it| it.uid == of.metadata.uid)
        };
        let volume = volume.filter(|_| phase == "Bound").filter(is_bound);
        let unbound = || format!("the PVC DataSource {name} must be bound to a PersistentVolume, and is {phase}");
        let volume = volume.ok_or_else(unbound)?;
        let csi = volume.spec.as_ref().and_then(|it| it.csi.as_ref()).filter(|it| it.driver == driver.name);
        let other = || format!("the source PVC {name} is not of driver {}", driver.name);
        let csi = csi.ok_or_else(other)?;
        let capacity =
            status.capacity.as_ref().and_then(|it| it.get("storage")).and_then(|it| it.0.parse::<Quantity>().ok());
        let there = capacity.and_then(|it| u64::try_from(it.value()).ok()).unwrap_or_default();
        if bytes < there {
            let why = format!(
                "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested \
                 {bytes} but source is {there}"
            );
            return Err(why.into());
        }
        let mode = |it: &Option<String>| it.clone().unwrap_or_else(|| "Filesystem".to_owned());
        if mode(&spec(claim).volume_mode) != mode(&source_spec.volume_mode) {
            let why = "the source PVC and destination PVCs must have the same volume mode for cloning";
            return Err(why.to_owned().into());
        }
        if !is_reached(volume, driver, node) {
            return Err(NoSource::Elsewhere(format!("the volume of the source PVC {name} is on another node")));
        }
        Ok(Source::Volume(csi.volume_handle.clone()))
    }
}
