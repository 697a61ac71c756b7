//! Which of the joined nodes that have a driver of somebody else's are to ask it: those that stand for its Leases.

use std::collections::{BTreeMap, BTreeSet};

use corten_provisioner::Topology;

use crate::NodeDriver;

/// For each driver and place: one that holds its Lease, and one that takes over. Each reads all Pods, for their sidecars.
const CANDIDATES: usize = 2;

/// What the cluster says of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedNode {
    pub(super) is_ready: bool,
    pub(super) labels: Topology,
}

/// The nodes that may act for a driver, as its CSIDriver names them: whoever acts is handed the Secrets of its classes, and says what its
/// volumes are, so that it is not for a node to say that it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    All,
    Named(BTreeSet<String>),
}

impl Allowed {
    /// `*`, or names of nodes between commas.
    pub(super) fn parse(text: &str) -> Self {
        match text.trim() {
            "*" => Self::All,
            names => Self::Named(names.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()),
        }
    }

    fn has(&self, node: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(nodes) => nodes.contains(node),
        }
    }
}

#[derive(Default)]
pub(super) struct Candidates {
    drivers: BTreeMap<String, Vec<(NodeDriver, Vec<String>)>>,
    nodes: BTreeMap<String, ObservedNode>,
    /// By driver.
    allowed: BTreeMap<String, Allowed>,
}

impl Candidates {
    /// Takes in what a node says of its drivers, each with the keys of the labels that say where it is. True: that is new, as of the other
    /// functions.
    pub(super) fn tell(&mut self, node: &str, drivers: Vec<(NodeDriver, Vec<String>)>) -> bool {
        if drivers.is_empty() {
            return self.forget(node);
        }
        let before = self.drivers.insert(node.to_owned(), drivers);
        before.as_ref() != self.drivers.get(node)
    }

    pub(super) fn forget(&mut self, node: &str) -> bool {
        self.drivers.remove(node).is_some()
    }

    /// What the cluster says of the node; `None`: there is no such node any more.
    pub(super) fn see(&mut self, node: String, seen: Option<ObservedNode>) -> bool {
        let before = match seen.clone() {
            Some(seen) => self.nodes.insert(node, seen),
            None => self.nodes.remove(&node),
        };
        before != seen
    }

    /// Which nodes may act for the driver; `None`: none.
    pub(super) fn allow(&mut self, driver: String, nodes: Option<Allowed>) -> bool {
        let before = match nodes.clone() {
            Some(nodes) => self.allowed.insert(driver, nodes),
            None => self.allowed.remove(&driver),
        };
        before != nodes
    }

    pub(super) fn are_any(&self) -> bool {
        !self.drivers.is_empty()
    }

    /// The drivers that each node is to ask: first where volumes can be made, for a driver need not have its controller on each node. Of these
    /// the first by name: that changes only when one comes or goes.
    pub(super) fn chosen(&self) -> BTreeMap<String, Vec<NodeDriver>> {
        let mut places: BTreeMap<(&str, Topology), usize> = BTreeMap::new();
        let mut chosen: BTreeMap<String, Vec<NodeDriver>> = BTreeMap::new();
        let by_parts = [true, false].into_iter().flat_map(|makes| self.drivers.iter().map(move |it| (makes, it)));
        for (makes, (name, drivers)) in by_parts {
            let Some(node) = self.nodes.get(name).filter(|it| it.is_ready) else { continue };
            let may_act = |(it, _): &&(NodeDriver, _)| {
                it.facts.provisions == makes && self.allowed.get(&it.facts.name).is_some_and(|it| it.has(name))
            };
            for (driver, keys) in drivers.iter().filter(may_act) {
                let keys: BTreeSet<&String> = keys.iter().collect();
                let here = node.labels.iter().filter(|it| keys.contains(it.0));
                let topology: Topology = here.map(|(key, value)| (key.clone(), value.clone())).collect();
                let n_chosen = places.entry((&driver.facts.name, topology.clone())).or_default();
                if *n_chosen < CANDIDATES {
                    *n_chosen += 1;
                    let mut driver = driver.clone();
                    driver.facts.topology = topology;
                    chosen.entry(name.clone()).or_default().push(driver);
                }
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use corten_provisioner::DriverFacts;

    use super::*;

    fn driver(name: &str) -> (NodeDriver, Vec<String>) {
        let facts = DriverFacts { name: name.to_owned(), ..DriverFacts::default() };
        (NodeDriver { facts, node_id: "id".into(), limit: None }, vec!["zone".into()])
    }

    fn seen(zone: &str, is_ready: bool) -> Option<ObservedNode> {
        let labels = [("zone", zone), ("other", "x")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        Some(ObservedNode { is_ready, labels: labels.into() })
    }

    fn chosen(candidates: &Candidates) -> String {
        let all = candidates.chosen();
        let of = |(node, drivers): (&String, &Vec<NodeDriver>)| {
            let drivers = drivers.iter().map(|it| format!("{}@{}", it.facts.name, it.facts.topology["zone"]));
            format!("{node}:{}", drivers.collect::<Vec<_>>().join("+"))
        };
        all.iter().map(of).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn two_for_each_driver_and_place() {
        let mut all = Candidates::default();
        assert!(!all.are_any());
        for node in 1..=5 {
            assert!(all.tell(&format!("n{node}"), vec![driver("d")]));
        }
        assert_eq!(chosen(&all), "", "nothing is known of the nodes yet");
        for node in 1..=5 {
            assert!(all.see(format!("n{node}"), seen("a", true)));
        }
        assert_eq!(chosen(&all), "", "no CSIDriver says that they may act for it");
        assert!(all.allow("d".into(), Some(Allowed::parse("n5, n9"))) && all.allow("e".into(), Some(Allowed::All)));
        assert_eq!(chosen(&all), "n5:d@a");
        assert!(all.allow("d".into(), Some(Allowed::parse("*"))) && !all.allow("d".into(), Some(Allowed::All)));
        assert_eq!(chosen(&all), "n1:d@a n2:d@a");
        assert!(!all.see("n1".into(), seen("a", true)), "nothing new");
        assert!(all.see("n1".into(), seen("a", false)));
        assert_eq!(chosen(&all), "n2:d@a n3:d@a");
        assert!(all.see("n5".into(), seen("b", true)));
        assert_eq!(chosen(&all), "n2:d@a n3:d@a n5:d@b");
        assert!(all.tell("n3", vec![driver("d"), driver("e")]));
        assert_eq!(chosen(&all), "n2:d@a n3:d@a+e@a n5:d@b");
        assert!(!all.tell("n3", vec![driver("d"), driver("e")]), "nothing new");
        assert!(all.see("n2".into(), None));
        assert!(all.tell("n3", Vec::new()));
        assert_eq!(chosen(&all), "n4:d@a n5:d@b");
        assert!(all.forget("n4") && !all.forget("n4"));
        assert!(all.allow("d".into(), None));
        assert_eq!(chosen(&all), "");
    }

    #[test]
    fn a_node_where_no_volumes_can_be_made_acts_where_no_other_does() {
        let mut all = Candidates::default();
        all.allow("d".into(), Some(Allowed::All));
        for (name, provisions) in [("n1", false), ("n2", false), ("n3", true), ("n4", false)] {
            all.see(name.into(), seen("a", true));
            let (mut driver, keys) = driver("d");
            driver.facts.provisions = provisions;
            all.tell(name, vec![(driver, keys)]);
        }
        assert_eq!(all.chosen().into_keys().collect::<Vec<_>>(), ["n1", "n3"]);
    }
}
