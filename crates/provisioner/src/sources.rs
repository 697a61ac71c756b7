//! What a claim's volume is to begin with, checked as external-provisioner checks it (`getSnapshotSource`, `getPVCSource`), in
//! its words.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    snapshots::{ALLOW_MODE_CHANGE, GROUP, VolumeSnapshot, VolumeSnapshotContent},
    volumes::{CLONING_FINALIZER, DataSource},
};
use corten_meta::{Key, Quantity};

use crate::{
    acting::{self, Acting, Actor},
    provision::spec,
    removal::{is_reached, node_of},
    words::{DriverFacts, Source},
};

/// Longer ones wait without being told that they are rings.
const RING_CLAIMS_MAX: usize = 16;

/// What is said of claims that are to begin with themselves.
pub const RING_OF_ONE: &str = "is its own data source";
pub const RING: &str = "are each other's data sources";

/// What is known of what volumes can begin with.
pub(crate) struct Sources<'s> {
    pub(crate) claims: &'s BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    pub(crate) volumes: &'s BTreeMap<String, Arc<PersistentVolume>>,
    pub(crate) snapshots: &'s BTreeMap<Key, Arc<VolumeSnapshot>>,
    pub(crate) contents: &'s BTreeMap<String, Arc<VolumeSnapshotContent>>,
    pub(crate) acting: Acting<'s>,
    /// It is not asked where that is: whoever acts is found by that already, or there is nobody, and the driver says whether it can.
    pub(crate) is_anywhere: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoSource {
    /// It is something that another program reads, and makes the volume of.
    OfPopulator,
    /// It is on another node: on this, of a driver whose volumes have one.
    Elsewhere { why: String, node: Option<String> },
    /// It cannot be, or not yet.
    Refused(String),
}

impl From<String> for NoSource {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// What the claim's volume is to begin with, as the claim says it.
fn data_source(claim: &PersistentVolumeClaim) -> Option<DataSource> {
    claim.spec.as_ref()?.data_source_ref.clone().map(DataSource::from)
}

/// The snapshot or claim of this kind that the claim's volume begins with: of its own namespace alone.
pub(crate) fn source_of(claim: &PersistentVolumeClaim, kind: &str) -> Option<Key> {
    let namespace = claim.metadata.namespace.as_deref()?;
    let source = data_source(claim).filter(|it| it.kind == kind && it.of_populator().is_none())?;
    let is_own = source.namespace.is_empty() || source.namespace == namespace;
    is_own.then(|| Key::new(namespace, source.name))
}

/// Does the claim's volume begin with this snapshot or claim?
pub(crate) fn is_of(claim: &PersistentVolumeClaim, kind: &str, key: &Key) -> bool {
    source_of(claim, kind).is_some_and(|it| it == *key)
}

/// May the clone begin with this claim, though that is deleted? Where it is held, those that were asked for before are made; else the source
/// would wait for the clone, and the clone for the source.
fn outlasts_deletion(source: &PersistentVolumeClaim, clone: &PersistentVolumeClaim) -> bool {
    let is_held = source.metadata.finalizers.iter().flatten().any(|it| it == CLONING_FINALIZER);
    is_held && clone.metadata.creation_timestamp <= source.metadata.deletion_timestamp
}

impl Sources<'_> {
    /// What the driver is to begin with; `None`: with nothing.
    pub(crate) fn of(
        &self,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        driver: &DriverFacts,
    ) -> Result<Option<Source>, NoSource> {
        let Some(source) = data_source(claim) else { return Ok(None) };
        if source.of_populator().is_some() {
            return Err(NoSource::OfPopulator);
        }
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        if !source.namespace.is_empty() && source.namespace != namespace {
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
            return self.snapshot(&key, claim, bytes, driver).map(Some);
        }
        if !driver.clones {
            return Err("CSI driver does not support clone: it must have capability CLONE_VOLUME".to_owned().into());
        }
        self.claim(&key, claim, bytes, driver).map(Some)
    }

    fn snapshot(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        driver: &DriverFacts,
    ) -> Result<Source, NoSource> {
        let name = &key.name;
        let missing =
            || format!("error getting snapshot {name} from api server: volumesnapshots.{GROUP} {name:?} not found");
        let snapshot = self.snapshots.get(key).ok_or_else(missing)?;
        // One that was asked for before holds the snapshot (`SnapshotDeletePending`): they would wait for each other.
        let is_late =
            |deleted: &corten_meta::Time| claim.metadata.creation_timestamp.as_ref().is_none_or(|it| it.0 > deleted.0);
        if snapshot.metadata.deletion_timestamp.as_ref().is_some_and(is_late) {
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
        if self.is_anywhere {
            return Ok(Source::Snapshot(handle.to_owned()));
        }
        let (elsewhere, node) = match self.acting.of_content(content, driver) {
            Actor::Node(node) if node != self.acting.node => (format!("on node {node}"), Some(node)),
            Actor::Place(place) if place != driver.topology => {
                (format!("in another place ({})", acting::shown(&place)), None)
            }
            _ => return Ok(Source::Snapshot(handle.to_owned())),
        };
        Err(NoSource::Elsewhere { why: format!("snapshot {name} is {elsewhere}"), node })
    }

    /// Claims without volumes each of which is to begin with the next, and the last with the first; none: the claim leads to no such ring.
    fn ring(&self, claim: &PersistentVolumeClaim, source: &Key) -> Vec<String> {
        let own = Key::new(source.namespace.clone(), claim.metadata.name.clone().unwrap_or_default());
        let (mut seen, mut next) = (vec![own], source.clone());
        while seen.len() < RING_CLAIMS_MAX {
            if let Some(first) = seen.iter().position(|it| *it == next) {
                return seen[first..].iter().map(|it| it.name.to_string()).collect();
            }
            let claim = self.claims.get(&next).filter(|it| spec(it).volume_name.is_none_or(|it| it.is_empty()));
            let Some(source) = claim.and_then(|it| source_of(it, "PersistentVolumeClaim")) else { return Vec::new() };
            seen.push(std::mem::replace(&mut next, source));
        }
        Vec::new()
    }

    fn claim(
        &self,
        key: &Key,
        claim: &PersistentVolumeClaim,
        bytes: u64,
        driver: &DriverFacts,
    ) -> Result<Source, NoSource> {
        let (name, namespace) = (&key.name, &key.namespace);
        let missing = || {
            format!(
                "error getting PVC {name} (namespace {namespace:?}) from api server: persistentvolumeclaims {name:?} not found"
            )
        };
        let of = self.claims.get(key).ok_or_else(missing)?;
        if of.metadata.deletion_timestamp.is_some() && !outlasts_deletion(of, claim) {
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
        let unbound = || match self.ring(claim, key).as_slice() {
            [] => format!("the PVC DataSource {name} must be bound to a PersistentVolume, and is {phase}"),
            [one] => format!("the PVC {one} {RING_OF_ONE}: it never has a volume"),
            ring => format!("the PVCs {} {RING}: they never have volumes", ring.join(", ")),
        };
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
        if !self.is_anywhere && !is_reached(volume, driver, self.acting.node) {
            let node = if driver.is_built_in() { node_of(volume) } else { None };
            return Err(NoSource::Elsewhere {
                why: format!("the volume of the source PVC {name} is on another node"),
                node,
            });
        }
        Ok(Source::Volume(csi.volume_handle.clone()))
    }
}
