//! Volumes that nobody claims any more (`shouldDelete`), and those that are to be kept (`handleProtectionFinalizer`).

use corten_api::core::v1::PersistentVolume;

use crate::{
    attaching,
    provision::{FINALIZER, PROVISIONED_BY},
    secrets::of_removal,
    words::{DriverFacts, Job, Topology},
};

/// What there is to do about the volume, where it is this node's driver's.
pub(crate) fn job(volume: &PersistentVolume, driver: &DriverFacts) -> Option<Job> {
    let (spec, meta) = (volume.spec.as_ref()?, &volume.metadata);
    let csi = spec.csi.as_ref().filter(|it| it.driver == driver.name)?;
    let provisioned_by = meta.annotations.as_ref().and_then(|it| it.get(PROVISIONED_BY));
    if provisioned_by != Some(&driver.name) || !is_reached(volume, &driver.topology) {
        return None;
    }
    let name = meta.name.clone()?;
    if spec.persistent_volume_reclaim_policy.as_deref() != Some("Delete") {
        // Whoever deletes the object keeps the data: nothing is to be done before it goes.
        let is_held = meta.finalizers.iter().flatten().any(|it| it == FINALIZER);
        return is_held.then_some(Job::LetGo { volume: name, finalizer: FINALIZER.into() });
    }
    let is_released = volume.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Released");
    // It is attached nowhere any more: what held it for that goes along, where that is Corten's.
    let attaches = driver.attaches || driver.attaches_nothing;
    let held = attaches.then(|| attaching::finalizer(&driver.name));
    let finalizers = std::iter::once(FINALIZER.to_owned()).chain(held).collect();
    let (driver, handle) = (driver.name.clone(), csi.volume_handle.clone());
    is_released.then(|| Job::Remove { volume: name, driver, handle, secret: of_removal(volume), finalizers })
}

/// Does the volume name the nodes that reach it?
pub(crate) fn is_placed(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_some_and(|it| it.node_affinity.as_ref().is_some_and(|it| it.required.is_some()))
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
