//! What the cost of a claim for devices depends on beside the claim, as the view has it.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta};
use corten_policies::quota::{DeviceClasses, Neighbours};
use corten_reconcile::View;
use serde::Deserialize;
use serde_json::Value;

use super::counted::Counted;
use crate::projections::projection;

#[derive(Deserialize)]
pub(super) struct DeviceClass {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ClassSpec,
}
projection!(DeviceClass, resources::DEVICE_CLASSES);

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct ClassSpec {
    extended_resource_name: Option<String>,
}

impl PartialEq for DeviceClass {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

pub(super) struct Beside<'a> {
    view: &'a View,
    classes: DeviceClasses,
}

impl<'a> Beside<'a> {
    pub(super) fn of(view: &'a View) -> Self {
        let named = |it: &DeviceClass| (it.metadata.name.clone(), it.spec.extended_resource_name.clone());
        Self { view, classes: view.list::<DeviceClass>().map(named).collect() }
    }
}

impl Neighbours for Beside<'_> {
    fn classes(&self) -> &DeviceClasses {
        &self.classes
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        self.view.get_in::<Counted>(&resources::PODS, &Key::new(namespace, name)).map(Counted::value)
    }

    fn claims(&self, namespace: &str) -> Vec<Value> {
        let claims = self.view.in_namespace_of::<Counted>(&resources::RESOURCE_CLAIMS, namespace);
        claims.map(Counted::value).collect()
    }
}
