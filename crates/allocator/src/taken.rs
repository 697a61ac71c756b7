//! What somebody has: whole devices, and shares of devices.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resource::v1::AllocationResult;

use crate::{
    consumable::{Consumed, full_name},
    inventory::{DeviceId, quantity},
};

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    whole: BTreeSet<DeviceId>,
    shared: BTreeMap<DeviceId, Consumed>,
}

impl Taken {
    /// Adds what an allocation takes from others. Who has administrative access takes nothing.
    pub fn add(&mut self, allocation: &AllocationResult) {
        let results = allocation.devices.iter().flat_map(|it| it.results.iter().flatten());
        for it in results.filter(|it| it.admin_access != Some(true)) {
            let id = DeviceId { driver: it.driver.clone(), pool: it.pool.clone(), device: it.device.clone() };
            if it.share_id.is_none() {
                self.whole.insert(id);
                continue;
            }
            let shares = self.shared.entry(id).or_default();
            for (name, amount) in it.consumed_capacity.iter().flatten() {
                if let Some(amount) = quantity(amount) {
                    add_one(shares, full_name(name, &it.driver), amount);
                }
            }
        }
    }

    pub(crate) fn has_whole(&self, id: &DeviceId) -> bool {
        self.whole.contains(id)
    }

    /// Of a device that is shared: how much of it is gone.
    pub(crate) fn of_shared(&self, id: &DeviceId) -> Option<&Consumed> {
        self.shared.get(id)
    }
}

pub(crate) fn add_one(to: &mut Consumed, name: String, amount: corten_meta::Quantity) {
    let sum = to.entry(name).or_default();
    *sum = sum.plus(amount);
}
