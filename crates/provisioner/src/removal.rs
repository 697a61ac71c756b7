//! Volumes that nobody claims any more (`shouldDelete`), and those that are to be kept (`handleProtectionFinalizer`).

use corten_api::{
    core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume},
    scheduling::{node_field, requirement_holds, term_matches},
};

use crate::{
    attaching,
    provision::{FINALIZER, PROVISIONED_BY},
    secrets::of_removal,
    words::{DriverFacts, Job},
};

/// What there is to do about the volume, which is this node's to look after, where it is the driver's.
pub(crate) fn job(volume: &PersistentVolume, driver: &DriverFacts) -> Option<Job> {
    let (spec, meta) = (volume.spec.as_ref()?, &volume.metadata);
    let csi = spec.csi.as_ref().filter(|it| it.driver == driver.name)?;
    let provisioned_by = meta.annotations.as_ref().and_then(|it| it.get(PROVISIONED_BY));
    if provisioned_by != Some(&driver.name) {
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

/// Does the volume name the places of its driver's that reach it?
pub(crate) fn is_placed(volume: &PersistentVolume, driver: &DriverFacts) -> bool {
    let mut keys = terms(volume).iter().flat_map(|it| it.match_expressions.iter().flatten()).map(|it| &it.key);
    keys.any(|it| driver.topology.contains_key(it))
}

/// Is the volume one that the node reaches? One that names no nodes is (`VolumeIsAccessible`).
///
/// One node stands for all in a place of a driver of others, and places are told apart by the driver's own keys: what is asked for
/// beside these says nothing about who acts. The built-in driver's volumes are each node's own.
pub(crate) fn is_reached(volume: &PersistentVolume, driver: &DriverFacts, node: &str) -> bool {
    let (terms, is_built_in) = (terms(volume), driver.is_built_in());
    let holds = |it: &NodeSelectorRequirement, value: Option<&str>| {
        let values = it.values.iter().flatten().map(String::as_str);
        requirement_holds(&it.operator, values, value)
    };
    terms.is_empty()
        || terms.iter().any(|term| {
            let labels = term.match_expressions.iter().flatten().map(|it| {
                let value = driver.topology.get(&it.key).map(String::as_str);
                (!is_built_in && value.is_none()) || holds(it, value)
            });
            let fields = term.match_fields.iter().flatten();
            let fields = fields.map(|it| !is_built_in || holds(it, node_field(&it.key, node)));
            term_matches(labels.chain(fields))
        })
}

/// The one node that a volume of the built-in driver is on.
pub(crate) fn node_of(volume: &PersistentVolume) -> Option<String> {
    let mut keys = terms(volume).iter().flat_map(|it| it.match_expressions.iter().flatten());
    let of = keys.find(|it| it.key == "kubernetes.io/hostname")?;
    of.values.as_deref().and_then(|it| if let [node] = it { Some(node.clone()) } else { None })
}

pub(crate) fn terms(volume: &PersistentVolume) -> &[NodeSelectorTerm] {
    let affinity = volume.spec.as_ref().and_then(|it| it.node_affinity.as_ref()?.required.as_ref());
    affinity.map_or(&[], |it| &it.node_selector_terms)
}
