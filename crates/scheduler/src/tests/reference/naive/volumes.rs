//! What the claims of a pod allow: one driver, `d`, one class whose volumes it makes, and one whose volumes are made by hand.

use std::collections::BTreeSet;

use super::{Node, Pod, World};

#[derive(Clone, Debug, Default)]
pub(in super::super) struct Storage {
    pub(in super::super) claims: Vec<Claim>,
    /// Volumes that are nobody's.
    pub(in super::super) free: Vec<Volume>,
    /// The zone of the only nodes for which the driver makes volumes.
    pub(in super::super) zone: Option<&'static str>,
    /// How many GiB the driver tells are left in the zones a and b; nothing: it tells nothing.
    pub(in super::super) left: Option<[i64; 2]>,
    /// No pod with its volumes is to come to a node without the driver.
    pub(in super::super) is_driver_needed: bool,
}

#[derive(Clone, Debug)]
pub(in super::super) struct Claim {
    pub(in super::super) namespace: &'static str,
    pub(in super::super) gibs: i64,
    pub(in super::super) is_for_one_pod: bool,
    pub(in super::super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum State {
    Bound(Place),
    /// To a volume that is not there.
    BoundToNothing,
    /// Its volume comes with the node: made, or found among those that are there.
    Made,
    Found,
    /// It gets a volume without a pod, and has none yet.
    Immediate,
}

/// Where a volume can be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Place {
    Anywhere,
    Zone(&'static str),
    Node(usize),
    /// Anywhere, but by its label it is of these zones.
    Labelled(&'static str),
}

#[derive(Clone, Debug)]
pub(in super::super) struct Volume {
    pub(in super::super) gibs: i64,
    pub(in super::super) place: Place,
    pub(in super::super) is_of_driver: bool,
}

type Reasons = Option<(Vec<&'static str>, bool)>;

impl Place {
    fn is_reachable(self, node: &Node, idx: usize) -> bool {
        match self {
            Self::Anywhere | Self::Labelled(_) => true,
            Self::Zone(zone) => node.zone == Some(zone),
            Self::Node(there) => there == idx,
        }
    }
}

/// What a node leads to.
#[derive(Default)]
struct Found<'a> {
    /// Of each claim of the class whose volumes are found, or that found one all the same: the class, and both sizes.
    chosen: Vec<(State, i64, i64)>,
    made: Vec<&'a Claim>,
    reasons: BTreeSet<&'static str>,
}

impl World {
    fn claims<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = (usize, &'a Claim)> {
        pod.claims.iter().map(|it| (*it, &self.storage.claims[*it]))
    }

    /// Why no node is looked at.
    pub(super) fn refusal(&self, pod: &Pod) -> Option<&'static str> {
        let is_immediate = self.claims(pod).any(|it| it.1.state == State::Immediate);
        is_immediate.then_some("pod has unbound immediate PersistentVolumeClaims")
    }

    pub(super) fn volume_rejection(&self, pod: &Pod, idx: usize) -> Reasons {
        let taken = |it: usize| self.pods.iter().any(|other| other.node.is_some() && other.claims.contains(&it));
        if self.claims(pod).any(|(it, claim)| claim.is_for_one_pod && taken(it)) {
            let text = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
            return Some((vec![text], false));
        }
        let found = || {
            let reasons = self.found(pod, idx).reasons;
            (!reasons.is_empty()).then(|| (reasons.into_iter().collect(), true))
        };
        self.limit_rejection(pod, idx).or_else(found).or_else(|| self.zone_rejection(pod, idx))
    }

    /// The volumes of the driver, those that are not made yet by their claim.
    fn handles(&self, pod: &Pod) -> BTreeSet<usize> {
        let counts = |it: &Claim| matches!(it.state, State::Bound(_) | State::Made);
        self.claims(pod).filter(|it| counts(it.1)).map(|it| it.0).collect()
    }

    fn limit_rejection(&self, pod: &Pod, idx: usize) -> Reasons {
        let own = self.handles(pod);
        if own.is_empty() {
            return None;
        }
        let Some(limit) = self.nodes[idx].volumes_max else {
            let text = "d CSI driver is not installed on the node";
            return self.storage.is_driver_needed.then(|| (vec![text], false));
        };
        let there: BTreeSet<usize> = self.on(idx).flat_map(|it| self.handles(it)).collect();
        let is_beyond = !own.is_subset(&there) && there.union(&own).count() > limit?;
        is_beyond.then(|| (vec!["node(s) exceed max volume count"], false))
    }

    fn found<'a>(&'a self, pod: &'a Pod, idx: usize) -> Found<'a> {
        let (node, mut found, mut taken) = (&self.nodes[idx], Found::default(), BTreeSet::new());
        let mut unbound: Vec<&Claim> = Vec::new();
        for (_, claim) in self.claims(pod) {
            match claim.state {
                State::Bound(place) if place.is_reachable(node, idx) => {}
                State::Bound(_) => {
                    found.reasons.insert("node(s) didn't match PersistentVolume's node affinity");
                }
                State::BoundToNothing => {
                    let text = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
                    found.reasons.insert(text);
                }
                _ => unbound.push(claim),
            }
        }
        unbound.sort_by_key(|it| it.gibs);
        let mut to_be_made = Vec::new();
        for claim in unbound {
            let suits = |it: &Volume| {
                it.is_of_driver == (claim.state == State::Made)
                    && it.gibs >= claim.gibs
                    && it.place.is_reachable(node, idx)
            };
            let free = self.storage.free.iter().enumerate().filter(|it| suits(it.1) && !taken.contains(&it.0));
            match free.min_by_key(|it| it.1.gibs) {
                Some((at, volume)) => {
                    taken.insert(at);
                    found.chosen.push((claim.state, claim.gibs, volume.gibs));
                }
                None => to_be_made.push(claim),
            }
        }
        // The first that cannot be made is told of alone (`checkVolumeProvisions`).
        for claim in to_be_made {
            if claim.state == State::Found || (self.storage.zone.is_some() && self.storage.zone != node.zone) {
                found.reasons.insert("node(s) didn't find available persistent volumes to bind");
                break;
            }
            if self.left(idx).is_some_and(|it| it < claim.gibs) {
                found.reasons.insert("node(s) did not have enough free storage");
                break;
            }
            found.made.push(claim);
        }
        found
    }

    /// What is left for a volume on the node, as far as the driver tells.
    fn left(&self, idx: usize) -> Option<i64> {
        let zones = self.storage.left?;
        Some(self.nodes[idx].zone.map_or(0, |it| zones[usize::from(it == "b")]))
    }

    fn zone_rejection(&self, pod: &Pod, idx: usize) -> Reasons {
        let zone = self.nodes[idx].zone?;
        let mut labels = self.claims(pod).filter_map(|it| match it.1.state {
            State::Bound(Place::Labelled(zones)) => Some(zones),
            _ => None,
        });
        let is_elsewhere = labels.any(|it| !it.split("__").any(|it| it == zone));
        is_elsewhere.then(|| (vec!["node(s) had no available volume zone"], true))
    }

    /// The mean of the classes, of what is left where the volumes are taken away.
    pub(super) fn volume_score(&self, pod: &Pod, idx: usize) -> i64 {
        let found = self.found(pod, idx);
        let mut uses: Vec<(i64, i64)> = Vec::new();
        for class in [State::Made, State::Found] {
            let of_class = found.chosen.iter().filter(|it| it.0 == class);
            let sums = of_class.fold((0, 0), |sums, it| (sums.0 + it.1, sums.1 + it.2));
            if sums.1 > 0 {
                uses.push(sums);
            }
        }
        if found.chosen.is_empty() && !found.made.is_empty() {
            let requested = found.made.iter().map(|it| it.gibs).sum();
            uses.extend(self.left(idx).map(|it| (requested, it)));
        }
        if uses.is_empty() {
            return 0;
        }
        let points = |(requested, capacity): &(i64, i64)| {
            if requested > capacity { 0 } else { 100 - requested * 100 / capacity }
        };
        let sum: i64 = uses.iter().map(points).sum();
        let n_classes = i64::try_from(uses.len()).expect("few");
        super::whole((super::float(sum) / super::float(n_classes)).round())
    }
}
