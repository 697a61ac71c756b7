//! What a request takes of the capacity of a device, and devices that are given several times at once (KEP-5075).

use std::collections::BTreeMap;

use corten_api::{
    capacity_range::reckons_in_millis,
    resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, Device, DeviceCapacity},
};
use corten_meta::Quantity;

use crate::inventory::{Offer, quantity};

/// How much is taken, by the full name of the capacity.
pub(crate) type Consumed = BTreeMap<String, Quantity>;

/// A name without a domain is of the driver's own.
pub(crate) fn full_name(name: &str, driver: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("{driver}/{name}") }
}

/// The name under which the device has the capacity (`capacityNameForStatus`).
pub(crate) fn own_name<'a>(full: &'a str, device: &Device) -> &'a str {
    let is_own = device.capacity.as_ref().is_some_and(|it| it.contains_key(full));
    if is_own { full } else { full.split_once('/').map_or(full, |it| it.1) }
}

/// By full name; what is named with the driver's domain goes before what is named without one (`resolveDeviceCapacity`).
pub(crate) fn capacities(offer: Offer<'_>) -> BTreeMap<String, &DeviceCapacity> {
    let driver = &offer.slice.driver;
    let all = || offer.device.capacity.iter().flatten();
    let named = |is_full: bool| all().filter(move |it| it.0.contains('/') == is_full);
    named(false).chain(named(true)).map(|(name, it)| (full_name(name, driver), it)).collect()
}

/// What the request takes of each capacity of the device (`cmpRequestOverCapacity`); `None` where the device never has as much.
///
/// # Errors
/// What is asked for cannot be reckoned with: no device has it.
pub(crate) fn consumed(wanted: Option<&CapacityRequirements>, offer: Offer<'_>) -> Result<Option<Consumed>, String> {
    let capacities = capacities(offer);
    let mut requested = BTreeMap::new();
    for (name, amount) in wanted.iter().flat_map(|it| it.requests.iter().flatten()) {
        let full = full_name(name, &offer.slice.driver);
        let Some(amount) = capacities.contains_key(&full).then(|| quantity(amount)).flatten() else { return Ok(None) };
        if requested.insert(full.clone(), amount).is_some() {
            return Err(format!("capacity {full:?} is requested by two names"));
        }
    }
    let mut consumed = Consumed::new();
    let mut is_enough = true;
    for (name, capacity) in capacities {
        let Some(total) = quantity(&capacity.value) else { return Ok(None) };
        let policy = Policy::of(capacity.request_policy.as_ref());
        let amount =
            policy.amount(requested.get(&name).copied(), total).map_err(|it| format!("capacity {name:?}: {it}"))?;
        if amount.is_negative() {
            return Err(format!("capacity {name:?}: capacity value is negative"));
        }
        is_enough &= policy.allows(amount) && amount <= total;
        consumed.insert(name, amount);
    }
    Ok(is_enough.then_some(consumed))
}

/// `CapacityRequestPolicy`, as numbers.
#[derive(Default)]
struct Policy {
    default: Option<Quantity>,
    values: Vec<Quantity>,
    range: Option<Range>,
}

struct Range {
    min: Quantity,
    max: Option<Quantity>,
    step: Option<Quantity>,
    /// Reckoned in thousandths, where a bound is no whole number (`DRAFractionalCapacityRange`).
    in_millis: bool,
}

impl Policy {
    fn of(policy: Option<&CapacityRequestPolicy>) -> Self {
        let Some(policy) = policy else { return Self::default() };
        Self {
            default: policy.default.as_ref().and_then(quantity),
            values: policy.valid_values.iter().flatten().filter_map(quantity).collect(),
            range: policy.valid_range.as_ref().and_then(Range::of),
        }
    }

    /// How much is taken where so much is asked for (`calculateConsumedQuantity`).
    fn amount(&self, requested: Option<Quantity>, total: Quantity) -> Result<Quantity, String> {
        let Some(requested) = requested else { return Ok(self.default.unwrap_or(total)) };
        match &self.range {
            Some(range) => range.rounded_up(requested),
            None => Ok(self.values.iter().copied().find(|it| requested <= *it).unwrap_or(requested)),
        }
    }

    /// As in `violatesPolicy`.
    fn allows(&self, amount: Quantity) -> bool {
        self.default == Some(amount)
            || match &self.range {
                Some(range) => range.has(amount),
                None => self.values.is_empty() || self.values.contains(&amount),
            }
    }
}

impl Range {
    fn of(range: &CapacityRequestPolicyRange) -> Option<Self> {
        let of = |it: &Option<_>| it.as_ref().and_then(quantity);
        let (min, max, step) = (quantity(&range.min)?, of(&range.max), of(&range.step));
        Some(Self { min, max, step, in_millis: reckons_in_millis(min, max, step) })
    }

    fn number(&self, of: Quantity) -> i128 {
        i128::from(if self.in_millis { of.milli_value() } else { of.value() })
    }

    /// To the least, or to the next step from there (`roundUpRange`).
    fn rounded_up(&self, requested: Quantity) -> Result<Quantity, String> {
        if requested < self.min {
            return Ok(self.min);
        }
        let Some(step) = self.step else { return Ok(requested) };
        let (least, by) = (self.number(self.min), self.number(step));
        let above = self.number(requested) - least;
        let n_steps = above.checked_div(by).map(|it| it + i128::from(above % by != 0));
        let amount = n_steps.and_then(|it| i64::try_from(least + by * it).ok());
        // Written as the step is.
        let written = |amount: i64| match self.in_millis {
            true => step.plus(Quantity::millis(amount).minus(Quantity::millis(step.milli_value()))),
            false => step.rounded_up().plus(Quantity::units(amount).minus(Quantity::units(step.value()))),
        };
        let fits = amount.filter(|_| !self.in_millis || requested.value() < i64::MAX / 1000);
        fits.map(written)
            .ok_or_else(|| "capacity request cannot be represented in the device's range arithmetic".to_owned())
    }

    fn has(&self, amount: Quantity) -> bool {
        let is_step = |by: i128| (self.number(amount) - self.number(self.min)).checked_rem(by) == Some(0);
        self.max.is_none_or(|it| amount <= it) && self.step.is_none_or(|it| is_step(self.number(it)))
    }
}
