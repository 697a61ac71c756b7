//! One way in which a request can be met: `exactly`, or one of `firstAvailable`.

use corten_api::{
    resource::v1::{CapacityRequirements, DeviceRequest, DeviceSelector, DeviceTaint, DeviceToleration},
    scheduling::{Taint, Toleration},
};

use crate::{
    consumable::{Consumed, consumed},
    inventory::Offer,
};

/// What is asked for, whichever way it is written.
pub(crate) struct RequestedDevices<'a> {
    /// `REQUEST`, or `REQUEST/SUBREQUEST`.
    pub(crate) name: String,
    pub(crate) request: &'a str,
    pub(crate) class: &'a str,
    pub(crate) selectors: &'a [DeviceSelector],
    pub(crate) tolerations: &'a [DeviceToleration],
    capacity: Option<&'a CapacityRequirements>,
    /// `None`: all there are.
    pub(crate) count: Option<usize>,
    pub(crate) has_admin_access: bool,
}

/// The ways, in the order in which they are tried.
pub(crate) fn ways(request: &DeviceRequest) -> Vec<RequestedDevices<'_>> {
    let count = |mode: &Option<String>, count: Option<i64>| match mode.as_deref() {
        Some("All") => None,
        _ => Some(usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX)),
    };
    if let Some(it) = &request.exactly {
        return vec![RequestedDevices {
            name: request.name.clone(),
            request: &request.name,
            class: &it.device_class_name,
            selectors: it.selectors.as_deref().unwrap_or_default(),
            tolerations: it.tolerations.as_deref().unwrap_or_default(),
            capacity: it.capacity.as_ref(),
            count: count(&it.allocation_mode, it.count),
            has_admin_access: it.admin_access == Some(true),
        }];
    }
    let one = |it| -> RequestedDevices<'_> {
        let it: &corten_api::resource::v1::DeviceSubRequest = it;
        RequestedDevices {
            name: format!("{}/{}", request.name, it.name),
            request: &request.name,
            class: &it.device_class_name,
            selectors: it.selectors.as_deref().unwrap_or_default(),
            tolerations: it.tolerations.as_deref().unwrap_or_default(),
            capacity: it.capacity.as_ref(),
            count: count(&it.allocation_mode, it.count),
            has_admin_access: false,
        }
    };
    request.first_available.iter().flatten().map(one).collect()
}

impl RequestedDevices<'_> {
    /// Does a list of requests, which is for all where it is empty, name this one?
    pub(crate) fn is_named_by(&self, requests: Option<&Vec<String>>) -> bool {
        let names = requests.map(Vec::as_slice).unwrap_or_default();
        names.is_empty() || names.iter().any(|it| *it == self.name || it == self.request)
    }

    /// What it takes of the device's capacity: see [`consumed`].
    pub(crate) fn consumed(&self, offer: Offer<'_>) -> Result<Option<Consumed>, String> {
        consumed(self.capacity, offer)
    }

    /// Does nothing that is said of the device keep the request off?
    pub(crate) fn tolerates_all<'t>(&self, mut taints: impl Iterator<Item = &'t DeviceTaint>) -> bool {
        taints.all(|it| self.tolerates(it))
    }

    fn tolerates(&self, taint: &DeviceTaint) -> bool {
        if !matches!(&*taint.effect, "NoSchedule" | "NoExecute") {
            return true;
        }
        let of = Taint { key: &taint.key, value: taint.value.as_deref().unwrap_or_default(), effect: &taint.effect };
        self.tolerations.iter().any(|it| {
            let text = |it: &'_ Option<String>| it.clone().unwrap_or_default();
            let (key, operator, value, effect) = (text(&it.key), text(&it.operator), text(&it.value), text(&it.effect));
            Toleration { key: &key, operator: &operator, value: &value, effect: &effect }.tolerates(of)
        })
    }
}
