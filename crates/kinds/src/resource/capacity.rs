//! How much of a capacity a request may take of a device that several may have (KEP-5075).

use corten_api::capacity_range::reckons_in_millis;
use corten_meta::{Quantity, Violation};
use corten_schema::Cursor;

use super::names::at_most;

/// `CapacityRequestPolicyDiscreteMaxOptions`.
const VALUES_MAX: usize = 10;

/// `DeviceCapacity`, of a device that is given once or several times.
pub(super) fn validate(capacity: Cursor<'_>, is_shared: bool) {
    let policy = capacity.at("requestPolicy");
    if !policy.exists() {
        return;
    }
    if !is_shared {
        return policy.forbidden("allowMultipleAllocations must be true");
    }
    let (values, range) = (policy.at("validValues"), policy.at("validRange"));
    if !values.is_empty() && range.exists() {
        let both =
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
        return policy.forbidden(both);
    }
    let kind = match (values.is_empty(), range.exists()) {
        (false, _) => "validValues",
        (true, true) => "validRange",
        (true, false) => return,
    };
    let default = policy.at("default");
    if !default.exists() {
        return default.missing(&format!("required when {kind} is defined"));
    }
    let (Some(default), Some(total)) = (default.quantity(), capacity.at("value").quantity()) else { return };
    if range.exists() { self::range(range, default, total) } else { self::values(values, default, total) }
}

/// As in `validateRequestPolicyValidValues`.
fn values(values: Cursor<'_>, default: Quantity, total: Quantity) {
    let all: Vec<(Cursor<'_>, Quantity)> = values.each().filter_map(|it| Some((it, it.quantity()?))).collect();
    for pair in all.windows(2).filter(|it| it[0].1 > it[1].1) {
        pair[1].0.invalid("values must be sorted in ascending order");
    }
    at_most(values, VALUES_MAX);
    for (at, (value, amount)) in all.iter().enumerate() {
        if *amount > total {
            value.invalid(&format!("option is larger than capacity value: {total}"));
        }
        if all[..at].iter().any(|it| it.1 == *amount) {
            value.report(Violation::duplicate(value.path(), amount.value()));
        }
    }
    if all.iter().all(|it| it.1 != default) {
        values.invalid_as(&default.to_string(), "default value is not valid according to the requestPolicy");
    }
}

/// As in `validateRequestPolicyRange`: steps are reckoned as they will be when something is taken.
fn range(range: Cursor<'_>, default: Quantity, total: Quantity) {
    let (min, max, step) = (range.at("min"), range.at("max"), range.at("step"));
    let Some(least) = min.quantity() else { return min.missing("required when validRange is defined") };
    if least > total {
        min.invalid(&format!("min is larger than capacity value: {total}"));
    }
    if default < least {
        min.invalid_as(&default.to_string(), &format!("default is less than min: {least}"));
    }
    if let Some(most) = max.quantity() {
        if least > most {
            max.invalid_as(&least.to_string(), &format!("min is larger than max: {most}"));
        }
        if most > total {
            max.invalid(&format!("max is larger than capacity value: {total}"));
        }
        if default > most {
            max.invalid_as(&default.to_string(), &format!("default is more than max: {most}"));
        }
    }
    let Some(by) = step.quantity() else { return };
    let in_millis = reckons_in_millis(least, max.quantity(), Some(by));
    let number = |of: Quantity| i128::from(if in_millis { of.milli_value() } else { of.value() });
    let first = least.plus(by);
    if first > total {
        step.invalid(&format!("one step {first} is larger than capacity value: {total}"));
    }
    for value in std::iter::once(default).chain(max.quantity()) {
        let above = number(value) - number(least);
        // Steps of nothing lead nowhere.
        if above.checked_rem(number(by)) != Some(0) {
            step.invalid_as(
                &value.to_string(),
                &format!("value is not a multiple of a given step ({by}) from ({least})"),
            );
        }
    }
}
