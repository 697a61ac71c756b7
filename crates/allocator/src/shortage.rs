//! What of a claim no node could be given: a class that is not there, or devices that no driver offers.
//!
//! Nodes, taints and the claims of others are not looked at: those change by themselves.

use std::collections::BTreeSet;

use corten_api::resource::v1::{DeviceClassSpec, ResourceClaimSpec, ResourceSliceSpec};

use crate::{
    inventory::{Inventory, Offer},
    request::{RequestedDevices, ways},
    selector::{Selectors, Unselected},
};

/// Why a request of a claim can be given nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// It names a class that is not there.
    NoClass { request: String, class: String },
    /// Its selectors, or those of its class, select none of all devices.
    NoDevice { request: String, class: String },
    /// An expression cannot be compiled or evaluated: its words.
    Broken { request: String, error: String },
}

/// What can be given by nobody, a request at most once; a request that has several ways must lack them all.
pub fn shortages(claim: &ResourceClaimSpec, inventory: &Inventory) -> Vec<Shortage> {
    let selectors = Selectors::default();
    let requests = claim.devices.iter().flat_map(|it| it.requests.iter().flatten());
    let of_request = |ways: Vec<RequestedDevices<'_>>| {
        let mut found: Vec<Option<Shortage>> = ways.iter().map(|it| of_way(it, inventory, &selectors)).collect();
        // Where one way cannot be looked at, the scheduler gives none of the others either.
        let is_fault = |it: &Option<Shortage>| matches!(it, Some(Shortage::NoClass { .. } | Shortage::Broken { .. }));
        match found.iter().position(is_fault) {
            Some(at) => found.swap_remove(at),
            None if found.iter().all(Option::is_some) => found.into_iter().next().flatten(),
            None => None,
        }
    };
    requests.map(ways).filter_map(of_request).collect()
}

fn of_way(wanted: &RequestedDevices<'_>, inventory: &Inventory, selectors: &Selectors) -> Option<Shortage> {
    let (request, class) = (wanted.name.clone(), wanted.class.to_owned());
    let Some(spec) = inventory.class(wanted.class) else { return Some(Shortage::NoClass { request, class }) };
    let of_class = spec.selectors.as_deref().unwrap_or_default();
    let mut offers = offers(inventory.slices()).filter(|it| matches!(wanted.consumed(*it), Ok(Some(_))));
    let is_it = |offer: Offer<'_>| {
        Ok::<_, Unselected>(selectors.select(of_class, offer)? && selectors.select(wanted.selectors, offer)?)
    };
    match offers.find_map(|it| is_it(it).map(|it| it.then_some(())).transpose()) {
        Some(Ok(())) => None,
        Some(Err(why)) => Some(Shortage::Broken { request, error: why.words() }),
        None => Some(Shortage::NoDevice { request, class }),
    }
}

fn offers<'a>(slices: Vec<&'a ResourceSliceSpec>) -> impl Iterator<Item = Offer<'a>> {
    slices.into_iter().flat_map(|slice| slice.devices.iter().flatten().map(move |device| Offer { slice, device }))
}

/// How many of all devices a class selects.
///
/// # Errors
/// An expression cannot be compiled or evaluated.
pub fn selected_by(class: &DeviceClassSpec, inventory: &Inventory) -> Result<usize, String> {
    let (selectors, of_class) = (Selectors::default(), class.selectors.as_deref().unwrap_or_default());
    let is_it = |offer: Offer<'_>| selectors.select(of_class, offer).map_err(Unselected::words);
    offers(inventory.slices()).try_fold(0, |n, it| Ok(n + usize::from(is_it(it)?)))
}

impl Inventory {
    /// How many devices drivers offer, and which drivers those are.
    pub fn offered(&self) -> (usize, BTreeSet<&str>) {
        let slices = self.slices();
        let drivers = slices.iter().map(|it| &*it.driver).collect();
        (offers(slices).count(), drivers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn inventory() -> Inventory {
        let mut inventory = Inventory::default();
        let class = |expression: &str| {
            serde_json::from_value(json!({ "selectors": [{ "cel": { "expression": expression } }] })).expect("a class")
        };
        inventory.set_class("gpu".into(), class("device.driver == 'gpu.example.com'"));
        inventory.set_class("fpga".into(), class("device.driver == 'fpga.example.com'"));
        inventory.set_class("broken".into(), class("device.attributes['gpu.example.com'].nope == 1"));
        let slice = json!({
            "driver": "gpu.example.com", "allNodes": true, "devices": [{ "name": "a" }, { "name": "b" }],
            "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
        });
        inventory.set_slice("s".into(), serde_json::from_value(slice).expect("a slice"));
        inventory
    }

    fn found(requests: Value) -> Vec<Shortage> {
        let spec = json!({ "devices": { "requests": requests } });
        shortages(&serde_json::from_value(spec).expect("a claim"), &inventory())
    }

    #[test]
    fn what_nobody_offers_is_told() {
        let (no_class, no_device) = (
            |request: &str, class: &str| Shortage::NoClass { request: request.into(), class: class.into() },
            |request: &str, class: &str| Shortage::NoDevice { request: request.into(), class: class.into() },
        );
        let exactly = |class: &str| json!([{ "name": "r", "exactly": { "deviceClassName": class } }]);
        let first = |classes: [&str; 2]| {
            let [a, b] = classes.map(|it| json!({ "name": it, "deviceClassName": it }));
            json!([{ "name": "r", "firstAvailable": [a, b] }])
        };
        assert_eq!(found(exactly("gpu")), []);
        assert_eq!(found(exactly("nope")), [no_class("r", "nope")]);
        assert_eq!(found(exactly("fpga")), [no_device("r", "fpga")]);
        assert!(matches!(&found(exactly("broken"))[..], [Shortage::Broken { .. }]));
        let own = json!({ "deviceClassName": "gpu", "selectors": [{ "cel": { "expression": "false" } }] });
        assert_eq!(found(json!([{ "name": "r", "exactly": own }])), [no_device("r", "gpu")]);
        assert_eq!(found(first(["fpga", "gpu"])), []);
        assert_eq!(found(first(["gpu", "nope"])), [no_class("r/nope", "nope")]);
        assert_eq!(found(first(["fpga", "fpga"])), [no_device("r/fpga", "fpga")]);
        assert_eq!(inventory().offered(), (2, ["gpu.example.com"].into()));
    }

    #[test]
    fn a_class_selects_devices() {
        let inventory = inventory();
        let n = |class: &str| selected_by(inventory.class(class).expect("a class"), &inventory);
        assert_eq!((n("gpu"), n("fpga")), (Ok(2), Ok(0)));
        assert!(n("broken").is_err());
    }
}
