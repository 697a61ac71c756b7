//! Claims that ask for another VolumeAttributesClass than their volume has: upstream's external-resizer (`modifycontroller`) and
//! KEP-3751. A change that may be under way is finished before another one is begun; one that the driver will never do is told as
//! `Infeasible`, and forgotten where the claim asks for what it has again.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus},
    storage::v1::VolumeAttributesClass,
};
use corten_meta::Time;
use serde_json::{Value, json};

use crate::{
    claim_status::{MESSAGE, OF_MODIFICATION, key},
    provision::spec,
    secrets,
    words::{DriverFacts, Job, Modification},
};

/// What there is to do for a claim that is bound to a volume.
#[derive(Debug)]
pub(crate) enum ModifyDecision {
    /// The change, and what users are told as it begins.
    Job(Box<Job>, Option<String>),
    /// The class is not there, or not this driver's: why, and what is written, where that is not written yet.
    Missing(String, Option<Box<Job>>),
}

/// `is_over`: the last attempt ended for good, with nothing done. `None`: nothing.
pub(crate) fn wanted(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    driver: &DriverFacts,
    classes: &BTreeMap<String, Arc<VolumeAttributesClass>>,
    is_over: bool,
    now: Time,
) -> Option<ModifyDecision> {
    let (asked, status) = (spec(claim).volume_attributes_class_name, claim.status.clone().unwrap_or_default());
    let csi = volume.spec.as_ref()?.csi.as_ref().filter(|it| it.driver == driver.name)?;
    if !driver.modifies || status.phase.as_deref() != Some("Bound") || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let (asked, has) = (asked.as_deref().unwrap_or_default(), current(&status));
    let (said, target) = said(&status);
    // Whether the driver did it is not known: only with the same target can that be found out.
    let is_uncertain = said == "InProgress" && !target.is_empty() && !is_over;
    let target = if is_uncertain { target } else { asked };
    if target == has || target.is_empty() {
        let settled = || Job::WriteStatus { claim: key(claim), status: settled(&status, has) };
        return (!said.is_empty()).then(|| ModifyDecision::Job(Box::new(settled()), None));
    }
    let class = match classes.get(target) {
        None => Err(format!("VAC {target} does not exist.")),
        Some(it) if it.driver_name != driver.name => {
            Err(format!("VAC {target} is for driver {}, the volume is of driver {}", it.driver_name, driver.name))
        }
        Some(it) => Ok(it),
    };
    let class = match class {
        Ok(class) => class,
        Err(why) => {
            let pending = json!({ "modifyVolumeStatus": { "status": "Pending" } });
            let write = (said != "Pending").then(|| Job::WriteStatus { claim: key(claim), status: pending });
            return Some(ModifyDecision::Missing(why, write.map(Box::new)));
        }
    };
    let job = modification(claim, &status, volume, (driver, &csi.volume_handle), class, target, now);
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let told = (said != "InProgress").then(|| format!("external resizer is modifying volume {name} with vac {target}"));
    Some(ModifyDecision::Job(Box::new(Job::Modify(Box::new(job))), told))
}

/// The class that the volume has; empty: none.
fn current(status: &PersistentVolumeClaimStatus) -> &str {
    status.current_volume_attributes_class_name.as_deref().unwrap_or_default()
}

/// How far a change is said to be, and to which class.
fn said(status: &PersistentVolumeClaimStatus) -> (&str, &str) {
    let modify = status.modify_volume_status.as_ref();
    let target = modify.and_then(|it| it.target_volume_attributes_class_name.as_deref());
    (modify.map_or("", |it| it.status.as_str()), target.unwrap_or_default())
}

fn modification(
    claim: &PersistentVolumeClaim,
    status: &PersistentVolumeClaimStatus,
    volume: &PersistentVolume,
    (driver, handle): (&DriverFacts, &str),
    class: &VolumeAttributesClass,
    target: &str,
    now: Time,
) -> Modification {
    let condition = |kind: &str, message: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now, "message": message });
    let with = |said: &str, own: Value| {
        json!({
            "modifyVolumeStatus": { "status": said, "targetVolumeAttributesClassName": target },
            "conditions": conditions(status, Some(own)),
        })
    };
    let refused = || condition("ModifyVolumeError", MESSAGE);
    Modification {
        claim: key(claim),
        volume: volume.metadata.name.clone().unwrap_or_default(),
        driver: driver.name.clone(),
        handle: handle.to_owned(),
        class: target.to_owned(),
        parameters: class.parameters.clone().unwrap_or_default(),
        secret: secrets::of_modification(volume),
        begun: with("InProgress", condition("ModifyingVolume", "ModifyVolume operation in progress.")),
        done: settled(status, target),
        failed: with("InProgress", refused()),
        infeasible: with("Infeasible", refused()),
    }
}

/// A claim of which no change is under way.
fn settled(status: &PersistentVolumeClaimStatus, class: &str) -> Value {
    let class = if class.is_empty() { Value::Null } else { class.into() };
    json!({
        "currentVolumeAttributesClassName": class,
        "modifyVolumeStatus": null,
        "conditions": conditions(status, None),
    })
}

/// Those of others stay.
fn conditions(status: &PersistentVolumeClaimStatus, own: Option<Value>) -> Vec<Value> {
    let others = status.conditions.iter().flatten().filter(|it| !OF_MODIFICATION.contains(&it.type_.as_str()));
    others.filter_map(|it| serde_json::to_value(it).ok()).chain(own).collect()
}
