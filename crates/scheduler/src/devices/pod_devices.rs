//! The claims of one pod: why it cannot be placed yet, and what they are given on a node.

use std::collections::{BTreeMap, BTreeSet};

use corten_allocator::{
    Allocation, Refusal as NoDevices, ResourceClasses, Selectors, Taken, TargetNode, allocate, check, selects,
};
use corten_api::resource::v1::{DeviceRequest, ResourceClaimSpec};
use corten_meta::Key;

use super::{
    DeviceClaim, Devices,
    extended_claim::{self, ExtendedClaim},
};
use crate::{PodInfo, requests::Amounts};

/// A node, as far as devices are concerned.
#[derive(Clone, Copy)]
pub(crate) struct DeviceNode<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) allocatable: &'a Amounts,
}

/// What a pod is given on a node.
#[derive(Default)]
pub(crate) struct PodAllocations {
    pub(crate) claims: Vec<(Key, Allocation)>,
    /// The claim for its extended resources.
    pub(crate) extended: Option<(ExtendedClaim, Allocation)>,
}

/// Why the pod's claims keep it off a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// What one has is elsewhere.
    Elsewhere,
    NoDevices,
    /// It is not known: the selectors take too much work.
    TooMuchWork,
}

/// As upstream says it of an allocation that takes longer than `filterTimeout`.
pub(crate) const TIMED_OUT: &str = "timed out trying to allocate devices";

/// The claims of one pod, and what others have.
pub(crate) struct PodDevices<'a> {
    pod: &'a PodInfo,
    devices: &'a Devices,
    open: Vec<&'a DeviceClaim>,
    allocated: Vec<&'a Allocation>,
    taken: Taken,
    selectors: Selectors,
}

/// Why the pod cannot be placed, whatever the nodes are like: the message, and the claim it is about.
pub(crate) fn refusal(pod: &PodInfo, devices: &Devices) -> Option<(String, Option<String>)> {
    if let Some(stale) = devices.stale_claim(pod) {
        return Some(("cannot schedule extended resource claim".into(), Some(stale.metadata.name.clone())));
    }
    let selectors = Selectors::default();
    for reference in &pod.device_claims {
        let Some(key) = reference.key(pod) else {
            let (namespace, name) = (&pod.key.namespace, &pod.key.name);
            return Some((format!("pod \"{namespace}/{name}\": ResourceClaim not created yet"), None));
        };
        let named = |message: String| Some((message, Some(key.name.clone())));
        let Some(claim) = devices.claim(&key) else {
            return named(format!("resourceclaim {:?} not found", key.name));
        };
        if claim.metadata.is_deleting() {
            return named(format!("resourceclaim {:?} is being deleted", key.name));
        }
        let is_own = claim.metadata.controller().is_some_and(|it| it.uid == pod.uid);
        if reference.is_made && !is_own {
            let (namespace, of) = (&pod.key.namespace, &pod.key.name);
            let what = format!("ResourceClaim {namespace}/{} was not created for pod {namespace}/{of}", key.name);
            return named(format!("{what} (pod is not owner)"));
        }
        if devices.allocation_of(&key).is_some() {
            continue;
        }
        match check(&claim.spec, &devices.inventory, &selectors) {
            Ok(()) | Err(NoDevices::NotHere) => {}
            Err(NoDevices::Broken(message)) => return named(message),
            Err(NoDevices::TooMuchWork) => return named(TIMED_OUT.to_owned()),
        }
    }
    None
}

/// `FirstAvailableDeviceRequestMaxSize`: a request names no more alternatives.
const ALTERNATIVES_MAX: usize = 8;

impl<'a> PodDevices<'a> {
    /// Does a claim name devices that would do as well, in order?
    pub(crate) fn have_alternatives(&self) -> bool {
        let claims = self.pod.device_claims.iter().filter_map(|it| self.devices.claim(&it.key(self.pod)?));
        claims.flat_map(|it| requests(&it.spec)).any(|it| it.exactly.is_none())
    }

    /// How far in front the alternatives stand that the claims have or are given on the node (`computeScore`).
    pub(crate) fn rank_on(&self, node: DeviceNode<'_>) -> i64 {
        let given = self.on(node).unwrap_or_default().claims;
        let of_claim = |key: Key| {
            let claim = self.devices.claim(&key)?;
            let new = given.iter().find(|it| it.0 == key).map(|it| &it.1);
            Some(rank(&claim.spec, new.or_else(|| self.devices.allocation_of(&key))?))
        };
        self.pod.device_claims.iter().filter_map(|it| of_claim(it.key(self.pod)?)).sum()
    }

    pub(crate) fn of(pod: &'a PodInfo, devices: &'a Devices) -> Self {
        let (mut open, mut allocated) = (Vec::new(), Vec::new());
        for key in pod.device_claims.iter().filter_map(|it| it.key(pod)) {
            match (devices.allocation_of(&key), devices.claim(&key)) {
                (Some(it), _) => allocated.push(it),
                (None, Some(claim)) => open.push(claim),
                (None, None) => {}
            }
        }
        let is_asking = !open.is_empty() || !pod.extended.is_empty();
        let taken = if is_asking { devices.taken() } else { Taken::default() };
        Self { pod, devices, open, allocated, taken, selectors: Selectors::default() }
    }

    /// Does it matter to the pod which devices the node can use?
    pub(crate) fn matter(pod: &PodInfo, node: DeviceNode<'_>, classes: &ResourceClasses) -> bool {
        !pod.device_claims.is_empty() || extended_claim::is_needed(pod, node, classes)
    }

    /// What the claims are given on the node that have nothing yet, and what the extended resources are.
    pub(crate) fn on(&self, node: DeviceNode<'_>) -> Result<PodAllocations, Conflict> {
        let extended = extended_claim::needed(self.pod, node, &self.devices.classes);
        let node = TargetNode { name: node.name, labels: node.labels };
        let is_here = |it: &&Allocation| it.node_selector.as_ref().is_none_or(|it| selects(it, node));
        if !self.allocated.iter().all(is_here) {
            return Err(Conflict::Elsewhere);
        }
        let own = self.open.iter().map(|it| &it.spec);
        let specs: Vec<&ResourceClaimSpec> = own.chain(extended.iter().map(|it| &it.spec)).collect();
        if specs.is_empty() {
            return Ok(PodAllocations::default());
        }
        match allocate(&specs, node, &self.devices.inventory, &self.taken, &self.selectors) {
            Ok(given) => {
                let mut given = given.into_iter();
                let claims = self.open.iter().map(|it| it.metadata.key()).zip(given.by_ref()).collect();
                Ok(PodAllocations { claims, extended: extended.zip(given.next()) })
            }
            Err(NoDevices::NotHere | NoDevices::Broken(_)) => Err(Conflict::NoDevices),
            Err(NoDevices::TooMuchWork) => Err(Conflict::TooMuchWork),
        }
    }
}

fn requests(claim: &ResourceClaimSpec) -> impl Iterator<Item = &DeviceRequest> {
    claim.devices.iter().flat_map(|it| it.requests.iter().flatten())
}

fn rank(claim: &ResourceClaimSpec, allocation: &Allocation) -> i64 {
    let results = allocation.devices.iter().flat_map(|it| it.results.iter().flatten());
    let given: BTreeSet<&str> = results.map(|it| &*it.request).collect();
    let of_request = |request: &DeviceRequest| -> usize {
        let alternatives = request.first_available.iter().flatten().enumerate();
        let is_given = |name: &str| given.contains(&*format!("{}/{name}", request.name));
        alternatives.filter(|it| is_given(&it.1.name)).map(|it| ALTERNATIVES_MAX.saturating_sub(it.0)).sum()
    };
    let sum = requests(claim).filter(|it| it.exactly.is_none()).map(of_request).sum::<usize>();
    i64::try_from(sum).unwrap_or(i64::MAX)
}
