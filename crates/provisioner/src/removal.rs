//! Volumes that nobody claims any more: upstream's `shouldDelete`.

use corten_api::core::v1::PersistentVolume;

use crate::{
    provision::PROVISIONED_BY,
    words::{DriverFacts, Job, Topology},
};

/// The removal of the volume, where it is this node's driver's to remove.
pub(crate) fn job(volume: &PersistentVolume, driver: &DriverFacts) -> Option<Job> {
    let (spec, meta) = (volume.spec.as_ref()?, &volume.metadata);
    let csi = spec.csi.as_ref().filter(|it| it.driver == driver.name)?;
    let provisioned_by = meta.annotations.as_ref().and_then(|it| it.get(PROVISIONED_BY));
    let is_released = volume.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Released");
    let is_deletable = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    if !is_released || !is_deletable || provisioned_by != Some(&driver.name) || !is_reached(volume, &driver.topology) {
        return None;
    }
    Some(Job::Remove { volume: meta.name.clone()?, driver: driver.name.clone(), handle: csi.volume_handle.clone() })
}

/// Is the volume one that a node with these labels reaches? One that names no nodes is.
pub(crate) fn is_reached(volume: &PersistentVolume, topology: &Topology) -> bool {
    let affinity = volume.spec.as_ref().and_then(|it| it.node_affinity.as_ref()?.required.as_ref());
    let Some(required) = affinity else { return true };
    required.node_selector_terms.iter().any(|term| {
        let mut expressions = term.match_expressions.iter().flatten();
        expressions.all(|it| {
            let values = it.values.as_deref().unwrap_or_default();
            it.operator == "In" && topology.get(&it.key).is_some_and(|own| values.contains(own))
        })
    })
}
