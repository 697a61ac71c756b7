//! Devices that share something (KEP-4815): parts of one device take of the counters that it has.

use std::collections::BTreeSet;

use corten_api::resource::v1::ResourceSliceSpec;
use corten_meta::Quantity;

use crate::inventory::{DeviceId, Offer, quantity};

/// Is there enough left for the device of all that it takes, with what others of its pool take?
pub(crate) fn have_room<'a>(
    offer: Offer<'a>,
    slices: &[&'a ResourceSliceSpec],
    is_taken: impl Fn(&DeviceId) -> bool,
) -> bool {
    let consumed = offer.device.consumes_counters.as_deref().unwrap_or_default();
    if consumed.is_empty() {
        return true;
    }
    let pool: Vec<&ResourceSliceSpec> = slices.iter().copied().filter(|it| offer.is_of_pool(it)).collect();
    let devices = pool.iter().flat_map(|slice| slice.devices.iter().flatten().map(|device| Offer { slice, device }));
    let taken: Vec<Offer<'_>> = devices.filter(|it| is_taken(&it.id())).collect();
    let sets: BTreeSet<(&str, &str)> = consumed
        .iter()
        .flat_map(|it| it.counters.keys().map(|counter| (it.counter_set.as_str(), counter.as_str())))
        .collect();
    sets.into_iter().all(|(set, counter)| {
        let total = pool.iter().flat_map(|it| it.shared_counters.iter().flatten()).find(|it| it.name == set);
        let total = total.and_then(|it| quantity(&it.counters.get(counter)?.value));
        let used = taken.iter().map(|it| takes(*it, set, counter)).fold(Quantity::ZERO, Quantity::plus);
        total.is_some_and(|it| used.plus(takes(offer, set, counter)) <= it)
    })
}

fn takes(offer: Offer<'_>, set: &str, counter: &str) -> Quantity {
    let consumed = offer.device.consumes_counters.iter().flatten().filter(|it| it.counter_set == set);
    let amounts = consumed.filter_map(|it| quantity(&it.counters.get(counter)?.value));
    amounts.fold(Quantity::ZERO, Quantity::plus)
}
