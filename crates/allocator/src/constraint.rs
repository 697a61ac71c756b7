//! What the devices of a claim must have in common, or not.

use corten_api::resource::v1::{DeviceAttribute, DeviceConstraint};

use crate::{inventory::Offer, request::RequestedDevices};

/// Do the devices keep to the constraint, as far as they are chosen?
pub(crate) fn keeps(constraint: &DeviceConstraint, chosen: &[(&RequestedDevices<'_>, Offer<'_>)]) -> bool {
    let of_it = chosen.iter().filter(|it| it.0.is_named_by(constraint.requests.as_ref()));
    if let Some(name) = &constraint.match_attribute {
        let mut values = of_it.map(|it| attribute(it.1, name));
        let Some(first) = values.next() else { return true };
        // A device without the attribute has it in common with nobody, itself included.
        return first.is_some() && values.all(|it| it == first);
    }
    let Some(name) = &constraint.distinct_attribute else { return true };
    let values: Vec<Option<&DeviceAttribute>> = of_it.map(|it| attribute(it.1, name)).collect();
    values.iter().enumerate().all(|(at, it)| it.is_some() && !values[..at].contains(it))
}

/// A name without a domain is of the driver's own.
fn attribute<'a>(offer: Offer<'a>, name: &str) -> Option<&'a DeviceAttribute> {
    let attributes = offer.device.attributes.as_ref()?;
    let own = name.split_once('/').filter(|it| it.0 == offer.slice.driver).map(|it| it.1);
    attributes.get(name).or_else(|| attributes.get(own?))
}
