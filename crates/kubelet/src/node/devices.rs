//! Which devices of plugins a container gets, as the kubelet's `devicemanager` chooses them.
//!
//! One container and one resource at a time: what a plugin prefers is known only once it is asked, and what it was given for
//! one container is not there for the next.

mod hints;

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::{Container, Pod};

pub(crate) use hints::DeviceHints;

use crate::{
    AllocatedDevices, ContainerDevices, DeviceNews, DeviceResource, DeviceWish, NumaNodes, PodsDevices,
    spec::{
        pod::{is_sidecar, spec_of},
        requests::amount,
    },
};

/// What is known of the devices of this node, and whose they are.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// Before that nothing is given: what was given in an earlier run is not known.
    pub(crate) are_known: bool,
    resources: BTreeMap<String, DeviceResource>,
    allocated: PodsDevices,
    /// The pod for which a plugin is being asked; others wait.
    asking: Option<String>,
    /// On which NUMA nodes containers are to have theirs, by pods and containers.
    affinities: BTreeMap<String, BTreeMap<String, NumaNodes>>,
}

/// What is next for a pod's devices.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It has all it asks for.
    Done,
    /// It is another pod's turn, or not known yet what there is.
    Wait,
    Ask(DeviceWish),
    Refuse(String),
}

/// How many devices there are of each resource, and how many of them can be given.
pub(crate) type DeviceCounts = BTreeMap<String, (usize, usize)>;

/// Devices by their ids, and whether each is well (`None`: nobody says).
pub(crate) type DevicesHealth = Vec<(String, Option<bool>)>;

impl Devices {
    pub(crate) fn take(&mut self, news: DeviceNews) {
        if !self.are_known {
            self.allocated = news.allocated;
            self.are_known = true;
        }
        self.resources = news.resources;
    }

    pub(crate) fn counts(&self) -> DeviceCounts {
        let counts = self.resources.iter().map(|(name, it)| (name.clone(), (it.devices.len(), healthy(it).count())));
        counts.collect()
    }

    /// The pod asks for devices, and nothing can be said of them now.
    pub(crate) fn is_busy(&self, pod: &Pod) -> bool {
        wants_extended(pod) && (!self.are_known || self.asking.is_some())
    }

    /// Looks at what the pod asks for, and has.
    pub(crate) fn next(&self, uid: &str, pod: &Pod) -> Next {
        if !wants_extended(pod) {
            return Next::Done;
        }
        if self.is_busy(pod) {
            return Next::Wait;
        }
        let mut reusable: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (container, is_reused) in in_order(pod) {
            for (resource, count) in self.wanted(container) {
                let Some(given) = self.of_container(uid, &container.name).find(|it| it.resource == resource) else {
                    let reusable = reusable.get(resource).cloned().unwrap_or_default();
                    let affinity = self.affinities.get(uid).and_then(|it| it.get(&container.name)).copied();
                    return match self.choose(resource, count, &reusable, affinity) {
                        Ok(chosen) => Next::Ask(DeviceWish { container: container.name.clone(), ..chosen }),
                        Err(why) => Next::Refuse(why),
                    };
                };
                let reusable = reusable.entry(resource.to_owned()).or_default();
                for id in &given.ids {
                    if is_reused {
                        reusable.insert(id.clone());
                    } else {
                        reusable.remove(id);
                    }
                }
            }
        }
        Next::Done
    }

    pub(crate) fn ask(&mut self, uid: &str) {
        self.asking = Some(uid.to_owned());
    }

    pub(crate) fn answered(&mut self, uid: &str, given: Option<AllocatedDevices>) {
        if self.asking.as_deref() == Some(uid) {
            self.asking = None;
        }
        if let Some(given) = given {
            let all = self.allocated.entry(uid.to_owned()).or_default();
            all.retain(|it| (&it.container, &it.resource) != (&given.container, &given.resource));
            all.push(given);
        }
    }

    /// Gives up what pods had that have an end by now; names them.
    pub(crate) fn release(&mut self, holds: impl Fn(&str) -> bool) -> Vec<String> {
        let asking = self.asking.clone();
        let ended: Vec<String> =
            self.allocated.keys().filter(|it| asking.as_ref() != Some(it) && !holds(it)).cloned().collect();
        for uid in &ended {
            self.allocated.remove(uid);
        }
        self.affinities.retain(|it, _| holds(it));
        ended
    }

    /// What the host is to know when it starts the container.
    pub(crate) fn given(&self, uid: &str, container: &str) -> ContainerDevices {
        let mut given = ContainerDevices::default();
        for it in self.of_container(uid, container) {
            given.allocated.push((it.resource.clone(), it.ids.clone()));
            given.granted.add(&it.granted);
        }
        given
    }

    /// Of each resource the container has: the devices, and what their plugin says of their health (`None`: nothing).
    pub(crate) fn health(&self, uid: &str, container: &str) -> Vec<(String, DevicesHealth)> {
        let health = |resource: &str, id: &String| {
            let known = self.resources.get(resource).filter(|it| it.is_connected);
            known.and_then(|it| it.devices.get(id)).map(|it| it.is_healthy)
        };
        let of_one = |it: &AllocatedDevices| {
            let devices = it.ids.iter().map(|id| (id.clone(), health(&it.resource, id))).collect();
            (it.resource.clone(), devices)
        };
        self.of_container(uid, container).map(of_one).collect()
    }

    fn of_container<'a>(&'a self, uid: &str, container: &'a str) -> impl Iterator<Item = &'a AllocatedDevices> {
        self.allocated.get(uid).into_iter().flatten().filter(move |it| it.container == container)
    }

    /// The resources of plugins that a container asks for; any other's name is nobody's here.
    fn wanted<'a>(&'a self, container: &'a Container) -> impl Iterator<Item = (&'a str, usize)> {
        let limits = container.resources.as_ref().and_then(|it| it.limits.as_ref());
        let wanted = limits.into_iter().flatten().filter(|it| self.resources.contains_key(it.0));
        wanted.filter_map(|(name, quantity)| {
            let count = amount(name, quantity.0.parse().ok()?);
            Some((name.as_str(), usize::try_from(count).ok().filter(|it| *it > 0)?))
        })
    }

    /// As `devicesToAllocate`: first what containers of the pod had that are over by then, then what nobody has.
    fn choose(
        &self,
        resource: &str,
        count: usize,
        reusable: &BTreeSet<String>,
        affinity: Option<NumaNodes>,
    ) -> Result<DeviceWish, String> {
        let known = self.resources.get(resource).filter(|it| !it.devices.is_empty() || it.is_connected);
        let known = known.ok_or_else(|| format!("cannot allocate unregistered device {resource}"))?;
        let healthy: BTreeSet<&str> = healthy(known).collect();
        if healthy.is_empty() {
            return Err(format!("no healthy devices present; cannot allocate unhealthy devices {resource}"));
        }
        let used = self.used(resource);
        let again: Vec<&str> =
            reusable.iter().map(String::as_str).filter(|it| healthy.contains(it)).take(count).collect();
        let free: Vec<&str> = healthy.iter().copied().filter(|it| !used.contains(it)).collect();
        let needed = count - again.len();
        if free.len() < needed {
            let numbers = format!("Requested: {needed}, Available: {}", free.len());
            return Err(format!("requested number of devices unavailable for {resource}. {numbers}"));
        }
        let owned = |ids: &[&str]| ids.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
        let (near, available, must) = match affinity {
            None => (nearest(&free, known, needed), free, Vec::new()),
            Some(chosen) => {
                let (n_aligned, sorted) = hints::by_affinity(&free, known, chosen);
                let (near, aligned) = (sorted[..needed].to_vec(), sorted[..n_aligned].to_vec());
                if n_aligned >= needed { (near, aligned, Vec::new()) } else { (near, sorted, aligned) }
            }
        };
        Ok(DeviceWish {
            container: String::new(),
            resource: resource.to_owned(),
            ids: owned(&[&again[..], &near[..]].concat()),
            available: owned(&[&again[..], &available[..]].concat()),
            must_include: owned(&[&again[..], &must[..]].concat()),
        })
    }

    fn used(&self, resource: &str) -> BTreeSet<&str> {
        let given = self.allocated.values().flatten().filter(|it| it.resource == resource);
        given.flat_map(|it| it.ids.iter().map(String::as_str)).collect()
    }
}

fn healthy(resource: &DeviceResource) -> impl Iterator<Item = &str> {
    let is_connected = resource.is_connected;
    resource.devices.iter().filter(move |it| is_connected && it.1.is_healthy).map(|it| it.0.as_str())
}

/// Devices of one NUMA node where one has enough of them: of these the one with the fewest.
fn nearest<'a>(free: &[&'a str], known: &DeviceResource, needed: usize) -> Vec<&'a str> {
    let mut nodes: BTreeMap<i64, Vec<&'a str>> = BTreeMap::new();
    for id in free {
        for node in known.devices.get(*id).into_iter().flat_map(|it| &it.numa_nodes) {
            nodes.entry(*node).or_default().push(id);
        }
    }
    let fitting = nodes.values().filter(|it| it.len() >= needed).min_by_key(|it| it.len());
    let from = fitting.map_or(free, Vec::as_slice);
    from.iter().copied().take(needed).collect()
}

/// In the order they run; true: its devices go on to containers that come after it.
fn in_order(pod: &Pod) -> impl Iterator<Item = (&Container, bool)> {
    let spec = spec_of(pod);
    let init = spec.init_containers.iter().flatten().map(|it| (it, !is_sidecar(it)));
    init.chain(spec.containers.iter().map(|it| (it, false)))
}

/// It asks for something that a plugin may offer.
pub(crate) fn wants_extended(pod: &Pod) -> bool {
    in_order(pod).any(|(container, _)| {
        let limits = container.resources.as_ref().and_then(|it| it.limits.as_ref());
        limits.into_iter().flatten().any(|it| it.0.contains('/'))
    })
}

#[cfg(test)]
mod tests;
