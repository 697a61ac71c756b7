//! What claims for devices cost beside the number of devices: the extended resources of their classes (KEP-5004).
//!
//! Nobody pays twice: what a Pod pays for is not asked of the claim that is made for its extended resources.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use corten_api::resources::PODS;
use corten_meta::{Resource, Time};
use corten_validation::read::{items, text};
use serde_json::Value;

use super::{
    amounts::{Amounts, add, subtract},
    usage::{DEVICES_SUFFIX, counted_by, is_claim, is_extended, usage},
};

/// What is before the name of a class in the name of the resource that every class has, as quotas name it.
pub(super) const IMPLIED: &str = "requests.deviceclass.resource.kubernetes.io/";
/// Says of a claim that it was made for the extended resources of its Pod.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// The extended resource that each DeviceClass names, or none (`ExtendedResourceCache`).
#[derive(Debug, Default)]
pub struct DeviceClasses(BTreeMap<String, Option<String>>);

impl FromIterator<(String, Option<String>)> for DeviceClasses {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(classes: I) -> Self {
        Self(classes.into_iter().map(|(class, it)| (class, it.filter(|it| !it.is_empty()))).collect())
    }
}

impl DeviceClasses {
    fn resource_of(&self, class: &str) -> Option<&str> {
        self.0.get(class)?.as_deref()
    }

    /// Is there a class that has the devices of what a quota names?
    fn has(&self, name: &str) -> bool {
        match (name.strip_prefix(IMPLIED), name.strip_prefix("requests.")) {
            (Some(class), _) => self.0.contains_key(class),
            (None, Some(resource)) => self.0.values().any(|it| it.as_deref() == Some(resource)),
            (None, None) => false,
        }
    }
}

/// What the cost of a claim for devices depends on beside the claim.
pub trait Neighbours {
    fn classes(&self) -> &DeviceClasses;
    fn pod(&self, namespace: &str, name: &str) -> Option<Value>;
    /// The claims for devices of a namespace.
    fn claims(&self, namespace: &str) -> Vec<Value>;
}

/// Nothing is known: claims cost their devices alone.
impl Neighbours for () {
    fn classes(&self) -> &DeviceClasses {
        const { &DeviceClasses(BTreeMap::new()) }
    }

    fn pod(&self, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn claims(&self, _: &str) -> Vec<Value> {
        Vec::new()
    }
}

/// May the name count objects of this resource?
pub fn counts(name: &str, resource: &Resource) -> bool {
    counted_by(name) == Some((&*resource.group, &*resource.plural)) || (is_claim(resource) && is_extended(name))
}

/// As in `claimEvaluator.MatchingResources`: claims count for an extended resource where a class has it.
pub(super) fn is_counted(name: &str, resource: &Resource, neighbours: &dyn Neighbours) -> bool {
    counts(name, resource) && (!is_claim(resource) || !is_extended(name) || neighbours.classes().has(name))
}

/// Adds the extended resources to what a claim costs (`addExtendedResourceQuota`).
pub(super) fn add_extended(claim: &Value, usage: &mut Amounts, neighbours: &dyn Neighbours, now: Time) {
    let mut extended = Amounts::new();
    for (name, amount) in &*usage {
        let Some(class) = name.strip_suffix(DEVICES_SUFFIX) else { continue };
        add(&mut extended, &Amounts::from([(format!("{IMPLIED}{class}"), *amount)]));
        // Two classes may name one resource: the devices of both are of it.
        if let Some(resource) = neighbours.classes().resource_of(class) {
            add(&mut extended, &Amounts::from([(format!("requests.{resource}"), *amount)]));
        }
    }
    if let Some(paid) = paid_by_pod(claim, neighbours, now) {
        subtract(&mut extended, &paid);
    }
    usage.extend(extended.into_iter().filter(|it| !it.1.is_negative() && !it.1.is_zero()));
}

/// What the Pod costs whose extended resources the claim is for (`getVerifiedPodUsage`); of several such claims only the one that its
/// status names, or else the first, is spared.
fn paid_by_pod(claim: &Value, neighbours: &dyn Neighbours, now: Time) -> Option<Amounts> {
    let (name, uid) = owner(claim)?;
    let namespace = text(claim, "/metadata/namespace");
    let pod = neighbours.pod(namespace, name).filter(|it| text(it, "/metadata/uid") == uid)?;
    let named = &pod["status"]["extendedResourceClaimStatus"];
    let is_it = if named.is_null() {
        let claims = neighbours.claims(namespace);
        let mut siblings = claims.iter().filter(|it| owner(it).is_some_and(|it| it.1 == uid));
        !siblings.any(|it| age(it) < age(claim))
    } else {
        named["resourceClaimName"] == claim["metadata"]["name"]
    };
    is_it.then(|| usage(&PODS, &pod, now, neighbours))
}

/// Name and uid of the Pod for whose extended resources the claim was made.
fn owner(claim: &Value) -> Option<(&str, &str)> {
    let metadata = &claim["metadata"];
    if metadata["annotations"][ANNOTATION] != "true" {
        return None;
    }
    let owner = items(claim, "/metadata/ownerReferences").iter().find(|it| it["controller"] == true)?;
    (owner["kind"] == "Pod" && owner["apiVersion"] == "v1").then(|| (text(owner, "/name"), text(owner, "/uid")))
}

fn age(claim: &Value) -> (&str, &str) {
    (text(claim, "/metadata/creationTimestamp"), text(claim, "/metadata/name"))
}
