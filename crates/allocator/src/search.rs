//! The search: device after device for request after request, back where nothing goes on.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    resource::v1::{
        AllocationResult, Device, DeviceAllocationConfiguration, DeviceAllocationResult, DeviceClaim, DeviceClassSpec,
        DeviceConstraint, DeviceRequestAllocationResult, ResourceClaimSpec, ResourceSliceSpec,
    },
};

use crate::{
    constraint::keeps,
    consumable::{Consumed, capacities, own_name},
    counters,
    inventory::{DeviceId, Inventory, Offer, is_shareable, quantity},
    node::{TargetNode, is_everywhere, only, reaches},
    request::{RequestedDevices, ways},
    selector::{Selectors, Unselected},
    taken::{Taken, add_one},
};

/// So many devices are tried for the claims of one pod on one node: a puzzle that takes longer is not solved.
const TRIES_MAX: usize = 100_000;
/// `AllocationResultsMaxSize`: one claim has no more.
const DEVICES_MAX: usize = 32;

/// What one claim is given.
pub type Allocation = AllocationResult;

/// Why there is no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not on this node.
    NotHere,
    /// On no node, as things are: what somebody has to change.
    Broken(String),
    /// The selectors take more work than those of one pod may (upstream's `filterTimeout`).
    TooMuchWork,
}

impl Refusal {
    fn of(why: Unselected, what: impl FnOnce(String) -> String) -> Self {
        match why {
            Unselected::Wrong(error) => Self::Broken(what(error)),
            Unselected::TooMuchWork => Self::TooMuchWork,
        }
    }
}

/// Gives each of the claims its devices, all or none; in the order of the claims. What is in `taken` is not given again.
///
/// # Errors
/// See [`Refusal`].
pub fn allocate(
    claims: &[&ResourceClaimSpec],
    node: TargetNode<'_>,
    inventory: &Inventory,
    taken: &Taken,
    selectors: &Selectors,
) -> Result<Vec<Allocation>, Refusal> {
    let slices = inventory.slices();
    let late_pools = slices.iter().copied().filter(|it| awaits_conditions(it)).map(pool).collect();
    let context = Context { inventory, slices: &slices, late_pools, node, selectors };
    let mut tasks = Vec::new();
    for (claim, spec) in claims.iter().enumerate() {
        let Some(devices) = &spec.devices else { continue };
        for request in devices.requests.iter().flatten() {
            let mut found = Vec::new();
            for wanted in ways(request) {
                let offers = context.offers(&wanted)?;
                found.push(RequestAlternative::new(wanted, offers));
            }
            tasks.push(Task { claim, devices, ways: found });
        }
    }
    let mut search = Search { slices: &slices, taken, given: BTreeSet::new(), chosen: Vec::new(), tries: 0 };
    if !search.solve(&tasks, 0)? {
        return Err(Refusal::NotHere);
    }
    let results = (0..claims.len()).map(|it| result(it, claims[it], &search.chosen, inventory, node));
    Ok(results.collect())
}

/// Can the claim be given anything at all?
///
/// # Errors
/// See [`Refusal`]: a class that is not there, an expression that is none.
pub fn check(claim: &ResourceClaimSpec, inventory: &Inventory, selectors: &Selectors) -> Result<(), Refusal> {
    let requests = claim.devices.iter().flat_map(|it| it.requests.iter().flatten());
    for wanted in requests.flat_map(ways) {
        let class = class_of(&wanted, inventory).map_err(Refusal::Broken)?;
        let of_class = selectors.compile(class.selectors.as_deref().unwrap_or_default());
        of_class.map_err(|it| wanted.refusal_of_class(it))?;
        selectors.compile(wanted.selectors).map_err(|it| wanted.refusal(it))?;
    }
    Ok(())
}

impl RequestedDevices<'_> {
    fn refusal(&self, why: Unselected) -> Refusal {
        Refusal::of(why, |error| format!("request {}: {error}", self.name))
    }

    fn refusal_of_class(&self, why: Unselected) -> Refusal {
        Refusal::of(why, |error| format!("class {}: {error}", self.class))
    }
}

fn class_of<'a>(wanted: &RequestedDevices<'_>, inventory: &'a Inventory) -> Result<&'a DeviceClassSpec, String> {
    let missing = || format!("request {}: device class {} does not exist", wanted.name, wanted.class);
    inventory.class(wanted.class).ok_or_else(missing)
}

struct Context<'a> {
    inventory: &'a Inventory,
    slices: &'a [&'a ResourceSliceSpec],
    /// Devices of these have to be made ready, and are given where no others are left.
    late_pools: BTreeSet<(&'a str, &'a str)>,
    node: TargetNode<'a>,
    selectors: &'a Selectors,
}

/// A request of a claim.
struct Task<'a> {
    claim: usize,
    devices: &'a DeviceClaim,
    ways: Vec<RequestAlternative<'a>>,
}

struct RequestAlternative<'a> {
    wanted: RequestedDevices<'a>,
    /// The devices that could be it.
    offers: Vec<Candidate<'a>>,
    /// It may have some of them several times.
    may_repeat: bool,
}

impl<'a> RequestAlternative<'a> {
    fn new(wanted: RequestedDevices<'a>, offers: Vec<Candidate<'a>>) -> Self {
        let mut way = Self { wanted, offers, may_repeat: false };
        way.may_repeat = way.offers.iter().any(|it| way.repeats(it.offer));
        way
    }

    /// May one device be given to it several times? Of all there are each is given once.
    fn repeats(&self, offer: Offer<'_>) -> bool {
        self.wanted.count.is_some() && is_shareable(offer.device)
    }
}

#[derive(Clone)]
struct Candidate<'a> {
    offer: Offer<'a>,
    /// What the request takes of it.
    consumed: Consumed,
}

impl<'a> Context<'a> {
    fn offers(&self, wanted: &RequestedDevices<'_>) -> Result<Vec<Candidate<'a>>, Refusal> {
        let class = class_of(wanted, self.inventory).map_err(Refusal::Broken)?;
        let of_class = class.selectors.as_deref().unwrap_or_default();
        let mut offers = Vec::new();
        for slice in self.slices.iter().copied() {
            for device in slice.devices.iter().flatten() {
                let offer = Offer { slice, device };
                let taints = self.inventory.taints(slice, device);
                if !reaches(slice, device, self.node) || !wanted.tolerates_all(taints) {
                    continue;
                }
                let is_of_class = self.selectors.select(of_class, offer).map_err(|it| wanted.refusal_of_class(it))?;
                let is_wanted = || self.selectors.select(wanted.selectors, offer).map_err(|it| wanted.refusal(it));
                if !is_of_class || !is_wanted()? {
                    continue;
                }
                let consumed = wanted.consumed(offer).map_err(|it| wanted.refusal(Unselected::Wrong(it)))?;
                offers.extend(consumed.map(|consumed| Candidate { offer, consumed }));
            }
        }
        offers.sort_by_key(|it| self.late_pools.contains(&pool(it.offer.slice)));
        Ok(offers)
    }
}

fn pool(slice: &ResourceSliceSpec) -> (&str, &str) {
    (&slice.driver, &slice.pool.name)
}

/// Do pods wait for conditions of a device of the slice before they are bound (KEP-5007)?
fn awaits_conditions(slice: &ResourceSliceSpec) -> bool {
    let awaits = |it: &Device| it.binding_conditions.as_ref().is_some_and(|it| !it.is_empty());
    slice.devices.iter().flatten().any(awaits)
}

struct Chosen<'a> {
    claim: usize,
    wanted: &'a RequestedDevices<'a>,
    offer: Offer<'a>,
    consumed: &'a Consumed,
}

struct Search<'a> {
    slices: &'a [&'a ResourceSliceSpec],
    taken: &'a Taken,
    /// What this search has given, to be taken back.
    given: BTreeSet<DeviceId>,
    chosen: Vec<Chosen<'a>>,
    tries: usize,
}

impl<'a> Search<'a> {
    /// Fills all tasks from this one on.
    fn solve(&mut self, tasks: &'a [Task<'a>], at: usize) -> Result<bool, Refusal> {
        let Some(task) = tasks.get(at) else { return Ok(true) };
        for way in &task.ways {
            // Of all there are none may be missing, and there must be one (`AllocationMode: All`).
            let count = way.wanted.count.unwrap_or(way.offers.len());
            if count == 0 || count > DEVICES_MAX || (count > way.offers.len() && !way.may_repeat) {
                continue;
            }
            if self.fill(tasks, at, way, count, 0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Chooses so many devices of a way, from this offer on, and then goes on with the next task.
    fn fill(
        &mut self,
        tasks: &'a [Task<'a>],
        at: usize,
        way: &'a RequestAlternative<'a>,
        count: usize,
        from: usize,
    ) -> Result<bool, Refusal> {
        if count == 0 {
            return self.solve(tasks, at + 1);
        }
        for (idx, Candidate { offer, consumed }) in way.offers.iter().enumerate().skip(from) {
            if way.offers.len() - idx < count && !way.may_repeat {
                return Ok(false);
            }
            self.tries += 1;
            if self.tries > TRIES_MAX {
                return Err(Refusal::Broken(format!("no allocation was found in {TRIES_MAX} tries")));
            }
            let (offer, id) = (*offer, offer.id());
            if !self.may_have(&tasks[at], way, offer, consumed, &id) {
                continue;
            }
            // The same device once more, or the next one.
            let next = idx + usize::from(!way.repeats(offer));
            let is_new = !way.wanted.has_admin_access && self.given.insert(id.clone());
            self.chosen.push(Chosen { claim: tasks[at].claim, wanted: &way.wanted, offer, consumed });
            let constraints = tasks[at].devices.constraints.as_deref().unwrap_or_default();
            if self.keeps_all(tasks[at].claim, constraints) && self.fill(tasks, at, way, count - 1, next)? {
                return Ok(true);
            }
            self.chosen.pop();
            if is_new {
                self.given.remove(&id);
            }
        }
        Ok(false)
    }

    fn may_have(
        &self,
        task: &Task<'_>,
        way: &RequestAlternative<'_>,
        offer: Offer<'a>,
        consumed: &Consumed,
        id: &DeviceId,
    ) -> bool {
        let n_of_claim = self.chosen.iter().filter(|it| it.claim == task.claim).count();
        if n_of_claim >= DEVICES_MAX {
            return false;
        }
        let is_shared = is_shareable(offer.device);
        if is_shared && !self.has_capacity(offer, consumed, id) {
            return false;
        }
        if way.wanted.has_admin_access {
            return true;
        }
        let has_share = |it: &DeviceId| self.taken.of_shared(it).is_some();
        let is_taken = |it: &DeviceId| self.taken.has_whole(it) || self.given.contains(it) || has_share(it);
        if is_shared && !self.taken.has_whole(id) && is_taken(id) {
            // It counts already.
            return true;
        }
        !is_taken(id) && counters::have_room(offer, self.slices, is_taken)
    }

    /// Is there enough left of each of its capacities, with what others have of it?
    fn has_capacity(&self, offer: Offer<'a>, consumed: &Consumed, id: &DeviceId) -> bool {
        let mut used = self.taken.of_shared(id).cloned().unwrap_or_default();
        let own = self.chosen.iter().filter(|it| it.offer.id() == *id);
        for (name, amount) in own.flat_map(|it| it.consumed).chain(consumed) {
            add_one(&mut used, name.clone(), *amount);
        }
        capacities(offer).into_iter().all(|(name, it)| {
            let total = quantity(&it.value).unwrap_or_default();
            used.get(&name).is_none_or(|it| *it <= total)
        })
    }

    fn keeps_all(&self, claim: usize, constraints: &[DeviceConstraint]) -> bool {
        let own = self.chosen.iter().filter(|it| it.claim == claim);
        let own: Vec<_> = own.map(|it| (it.wanted, it.offer)).collect();
        constraints.iter().all(|it| keeps(it, &own))
    }
}

fn result(
    claim: usize,
    spec: &ResourceClaimSpec,
    chosen: &[Chosen<'_>],
    inventory: &Inventory,
    node: TargetNode<'_>,
) -> Allocation {
    let own = || chosen.iter().filter(move |it| it.claim == claim);
    let one = |it: &Chosen<'_>| {
        let DeviceId { driver, pool, device } = it.offer.id();
        DeviceRequestAllocationResult {
            request: it.wanted.name.clone(),
            driver,
            pool,
            device,
            admin_access: it.wanted.has_admin_access.then_some(true),
            tolerations: Some(it.wanted.tolerations.to_vec()).filter(|it| !it.is_empty()),
            binding_conditions: it.offer.device.binding_conditions.clone().filter(|it| !it.is_empty()),
            binding_failure_conditions: it.offer.device.binding_failure_conditions.clone().filter(|it| !it.is_empty()),
            consumed_capacity: is_shareable(it.offer.device).then(|| written(it)).filter(|it| !it.is_empty()),
            ..DeviceRequestAllocationResult::default()
        }
    };
    let is_usable =
        |it: &Chosen<'_>| it.offer.device.binds_to_node != Some(true) && is_everywhere(it.offer.slice, it.offer.device);
    let is_everywhere = own().all(is_usable);
    let config = config(spec, &own().map(|it| it.wanted).collect::<Vec<_>>(), inventory);
    let devices = DeviceAllocationResult {
        results: Some(own().map(one).collect()),
        config: Some(config).filter(|it| !it.is_empty()),
    };
    AllocationResult {
        devices: Some(devices),
        node_selector: (!is_everywhere).then(|| only(node)),
        ..AllocationResult::default()
    }
}

/// What is taken of a device that others may have, too, by the names that it has.
fn written(chosen: &Chosen<'_>) -> BTreeMap<String, ApiQuantity> {
    let own = |name: &str| own_name(name, chosen.offer.device).to_owned();
    chosen.consumed.iter().map(|(name, it)| (own(name), ApiQuantity(it.to_string()))).collect()
}

/// What drivers are told besides: that of the classes first, which the claim's own goes before.
fn config(
    spec: &ResourceClaimSpec,
    wanted: &[&RequestedDevices<'_>],
    inventory: &Inventory,
) -> Vec<DeviceAllocationConfiguration> {
    let mut config = Vec::new();
    let mut seen = BTreeSet::new();
    for it in wanted.iter().filter(|it| seen.insert(it.name.clone())) {
        let of_class = inventory.class(it.class).and_then(|it| it.config.as_ref());
        config.extend(of_class.into_iter().flatten().map(|of| DeviceAllocationConfiguration {
            opaque: of.opaque.clone(),
            requests: Some(vec![it.name.clone()]),
            source: "FromClass".into(),
        }));
    }
    let own = spec.devices.iter().flat_map(|it| it.config.iter().flatten());
    let is_of_use = |of: &&corten_api::resource::v1::DeviceClaimConfiguration| {
        wanted.iter().any(|it| it.is_named_by(of.requests.as_ref()))
    };
    config.extend(own.filter(is_of_use).map(|of| DeviceAllocationConfiguration {
        opaque: of.opaque.clone(),
        requests: of.requests.clone(),
        source: "FromClaim".into(),
    }));
    config
}
