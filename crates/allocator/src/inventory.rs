//! What drivers offer: the devices of all pools that are whole.

use std::collections::BTreeMap;

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    resource::v1::{Device, DeviceClassSpec, DeviceTaint, ResourceSliceSpec},
};
use corten_meta::Quantity;

/// A device, by driver, pool and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

/// A taint that an administrator puts on devices, whatever their driver says of them (KEP-5055). What is not named is any.
#[derive(Clone, Debug, Default)]
pub struct TaintRule {
    pub driver: Option<String>,
    pub pool: Option<String>,
    pub device: Option<String>,
    pub taint: DeviceTaint,
}

impl TaintRule {
    fn is_about(&self, slice: &ResourceSliceSpec, device: &Device) -> bool {
        let is = |wanted: &Option<String>, it: &str| wanted.as_ref().is_none_or(|wanted| wanted == it);
        is(&self.driver, &slice.driver) && is(&self.pool, &slice.pool.name) && is(&self.device, &device.name)
    }
}

/// All slices and classes there are, and what is said of devices beside them.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    slices: BTreeMap<String, ResourceSliceSpec>,
    classes: BTreeMap<String, DeviceClassSpec>,
    taint_rules: BTreeMap<String, TaintRule>,
}

/// A device, and the slice that it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) slice: &'a ResourceSliceSpec,
    pub(crate) device: &'a Device,
}

impl Offer<'_> {
    pub(crate) fn id(&self) -> DeviceId {
        let (driver, pool) = (self.slice.driver.clone(), self.slice.pool.name.clone());
        DeviceId { driver, pool, device: self.device.name.clone() }
    }

    pub(crate) fn is_of_pool(&self, slice: &ResourceSliceSpec) -> bool {
        self.slice.driver == slice.driver && self.slice.pool.name == slice.pool.name
    }
}

/// May the device be given several times at once?
pub(crate) fn is_shareable(device: &Device) -> bool {
    device.allow_multiple_allocations == Some(true)
}

/// What is no quantity is refused by validation.
pub(crate) fn quantity(it: &ApiQuantity) -> Option<Quantity> {
    it.0.parse().ok()
}

impl Inventory {
    /// Says whether it was known.
    pub fn set_slice(&mut self, name: String, slice: ResourceSliceSpec) -> bool {
        self.slices.insert(name, slice).is_some()
    }

    pub fn remove_slice(&mut self, name: &str) {
        self.slices.remove(name);
    }

    /// Says whether it was known.
    pub fn set_class(&mut self, name: String, class: DeviceClassSpec) -> bool {
        self.classes.insert(name, class).is_some()
    }

    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// `None`: the rule selects no devices.
    pub fn set_taint_rule(&mut self, name: String, rule: Option<TaintRule>) {
        match rule {
            Some(rule) => drop(self.taint_rules.insert(name, rule)),
            None => self.remove_taint_rule(&name),
        }
    }

    pub fn remove_taint_rule(&mut self, name: &str) {
        self.taint_rules.remove(name);
    }

    /// What its driver and the rules put on a device.
    pub(crate) fn taints<'a>(
        &'a self,
        slice: &'a ResourceSliceSpec,
        device: &'a Device,
    ) -> impl Iterator<Item = &'a DeviceTaint> {
        let rules = self.taint_rules.values().filter(move |it| it.is_about(slice, device));
        device.taints.iter().flatten().chain(rules.map(|it| &it.taint))
    }

    pub(crate) fn class(&self, name: &str) -> Option<&DeviceClassSpec> {
        self.classes.get(name)
    }

    /// May the device be given several times at once?
    pub fn is_shareable(&self, driver: &str, pool: &str, device: &str) -> bool {
        let slices = self.slices().into_iter().filter(|it| it.driver == driver && it.pool.name == pool);
        let mut devices = slices.flat_map(|it| it.devices.iter().flatten());
        devices.any(|it| it.name == device && is_shareable(it))
    }

    /// The slices of each pool's newest generation, where all of them are there: a driver may be amid a change.
    pub(crate) fn slices(&self) -> Vec<&ResourceSliceSpec> {
        let mut pools: BTreeMap<(&str, &str), (i64, Vec<&ResourceSliceSpec>)> = BTreeMap::new();
        for spec in self.slices.values() {
            let pool = pools.entry((&spec.driver, &spec.pool.name)).or_default();
            if pool.1.is_empty() || spec.pool.generation > pool.0 {
                *pool = (spec.pool.generation, vec![spec]);
            } else if spec.pool.generation == pool.0 {
                pool.1.push(spec);
            }
        }
        let is_whole = |slices: &Vec<&ResourceSliceSpec>| {
            let wanted = slices.first().map_or(0, |it| it.pool.resource_slice_count);
            usize::try_from(wanted).is_ok_and(|it| it == slices.len())
        };
        pools.into_values().map(|it| it.1).filter(is_whole).flatten().collect()
    }
}
