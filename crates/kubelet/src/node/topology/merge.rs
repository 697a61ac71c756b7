//! From the hints of all providers the best one that is in all of them.
//!
//! Upstream goes through every combination of hints, which are as many as the product of all lists. What a combination comes to
//! is known from less: the nodes that all have in common, whether all are preferred, and whether all name the same nodes.
//! Combinations that come to the same are looked at once.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use super::{Hints, Numa, TopologyHint};
use crate::{NumaNodes, TopologyConfig, TopologyPolicy};

const ANYWHERE: TopologyHint = TopologyHint { nodes: None, is_preferred: true };
const NOWHERE: TopologyHint = TopologyHint { nodes: None, is_preferred: false };

/// The best hint, and whether the policy takes a pod with it.
pub(super) fn merge(config: &TopologyConfig, numa: &Numa, hints: Vec<Hints>) -> (TopologyHint, bool) {
    let mut lists = lists(hints);
    match config.policy {
        TopologyPolicy::None => (NOWHERE, true),
        TopologyPolicy::BestEffort => (best(config, numa, &lists), true),
        TopologyPolicy::Restricted => {
            let best = best(config, numa, &lists);
            (best, best.is_preferred)
        }
        TopologyPolicy::SingleNumaNode => {
            let is_single = |it: &TopologyHint| it.is_preferred && it.nodes.is_none_or(|it| it.len() == 1);
            lists.iter_mut().for_each(|it| it.retain(is_single));
            let mut best = best(config, numa, &lists);
            if best.nodes == Some(numa.nodes) {
                best.nodes = None;
            }
            (best, best.is_preferred)
        }
    }
}

/// A list for each resource (`filterProvidersHints`).
fn lists(hints: Vec<Hints>) -> Vec<Vec<TopologyHint>> {
    let of_resource = |it: Option<Vec<TopologyHint>>| match it {
        None => vec![ANYWHERE],
        Some(it) if it.is_empty() => vec![NOWHERE],
        Some(it) => it,
    };
    hints.into_iter().flat_map(BTreeMap::into_values).map(of_resource).collect()
}

/// What a combination of hints comes to, so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Combination {
    nodes: NumaNodes,
    is_preferred: bool,
    /// What the first hint that names nodes names; not kept where it no longer matters.
    first: Option<NumaNodes>,
}

impl Combination {
    /// As in `mergePermutation`.
    fn and(self, hint: TopologyHint) -> Self {
        let first = self.first.or(hint.nodes);
        let is_same = hint.nodes.is_none() || hint.nodes == first;
        let nodes = hint.nodes.map_or(self.nodes, |it| self.nodes.and(it));
        let is_preferred = self.is_preferred && hint.is_preferred && is_same;
        Self { nodes, is_preferred, first: first.filter(|_| is_preferred) }
    }
}

fn best(config: &TopologyConfig, numa: &Numa, lists: &[Vec<TopologyHint>]) -> TopologyHint {
    let none = Combination { nodes: numa.nodes, is_preferred: true, first: None };
    let mut combinations = BTreeSet::from([none]);
    for list in lists {
        let with = |it: Combination| list.iter().map(move |hint| it.and(*hint));
        // What has no node in common never has one again.
        combinations = combinations.into_iter().flat_map(with).filter(|it| !it.nodes.is_empty()).collect();
    }
    let order = Order { numa, prefers_closest: config.prefers_closest_numa_nodes, enough: fewest_needed(lists) };
    let best = combinations.into_iter().min_by(|a, b| order.compare(*a, *b));
    let hint = best.map(|it| TopologyHint { nodes: Some(it.nodes), is_preferred: it.is_preferred });
    hint.unwrap_or(TopologyHint { nodes: Some(numa.nodes), is_preferred: false })
}

/// Of each resource the fewest nodes it can be had from, and of these the most (`maxOfMinAffinityCounts`).
fn fewest_needed(lists: &[Vec<TopologyHint>]) -> u32 {
    let fewest = |it: &Vec<TopologyHint>| it.iter().filter_map(|it| it.nodes).map(NumaNodes::len).min();
    lists.iter().filter_map(fewest).max().unwrap_or(0)
}

/// Which of two combinations is the better one.
struct Order<'a> {
    numa: &'a Numa,
    prefers_closest: bool,
    /// So many nodes are enough for what needs most of them.
    enough: u32,
}

impl Order<'_> {
    /// As `HintMerger.compare`: preferred ones first, of these the narrowest; of others those with just enough nodes, then
    /// those with fewer, which are the better the more they have, then those with more.
    fn compare(&self, a: Combination, b: Combination) -> Ordering {
        let by_preference = b.is_preferred.cmp(&a.is_preferred);
        let by_nodes = || self.narrowest(a.nodes, b.nodes);
        if by_preference.is_ne() || a.is_preferred {
            return by_preference.then_with(by_nodes);
        }
        let is_short = |it: Combination| it.nodes.len() < self.enough;
        match (is_short(a), is_short(b)) {
            (false, false) => by_nodes(),
            (true, true) => b.nodes.len().cmp(&a.nodes.len()).then_with(by_nodes),
            // Too few are better than too many, and worse than enough.
            (true, false) if b.nodes.len() == self.enough => Ordering::Greater,
            (false, true) if a.nodes.len() == self.enough => Ordering::Less,
            (is_short, _) => {
                if is_short {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }

    fn narrowest(&self, a: NumaNodes, b: NumaNodes) -> Ordering {
        let by_distance = || {
            let ((sum_a, n_a), (sum_b, n_b)) = (self.numa.distance(a), self.numa.distance(b));
            (sum_a * n_b).cmp(&(sum_b * n_a))
        };
        let by_size = a.len().cmp(&b.len());
        let by_size = if self.prefers_closest { by_size.then_with(by_distance) } else { by_size };
        by_size.then(a.cmp(&b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `0+` is node 0, preferred; `01` nodes 0 and 1, not preferred; `*+` anywhere. A list is in brackets, `none` is no
    /// preference.
    fn hint(text: &str) -> TopologyHint {
        let is_preferred = text.ends_with('+');
        let digits = text.trim_end_matches('+');
        let nodes = (digits != "*").then(|| digits.chars().filter_map(|it| it.to_digit(10)).collect());
        TopologyHint { nodes, is_preferred }
    }

    fn provider(idx: usize, text: &str) -> Hints {
        let list = |it: &str| it.split_whitespace().map(hint).collect();
        let hints = (text != "none").then(|| list(text));
        Hints::from([(format!("r{idx}"), hints)])
    }

    fn shown((hint, is_taken): (TopologyHint, bool)) -> String {
        let nodes = hint.nodes.map_or("*".into(), |it| it.iter().map(|it| it.to_string()).collect::<String>());
        format!("{nodes}{}{}", if hint.is_preferred { "+" } else { "" }, if is_taken { "" } else { " refused" })
    }

    fn numa(n_nodes: u32) -> Numa {
        Numa { nodes: (0..n_nodes).collect(), ..Numa::default() }
    }

    #[test]
    fn what_goes_best_together() {
        // Providers; then for best-effort, restricted and single-numa-node.
        for (providers, expected) in [
            (&[][..], ["01+", "01+", "*+"]),
            (&["none"], ["01+", "01+", "*+"]),
            (&[""], ["01", "01 refused", "* refused"]),
            (&["0+ 1+"], ["0+", "0+", "0+"]),
            (&["1+", "0+ 1+ 01"], ["1+", "1+", "1+"]),
            (&["0+", "1+"], ["01", "01 refused", "* refused"]),
            (&["0+ 1+", "01+"], ["0", "0 refused", "* refused"]),
            (&["01+", "01+"], ["01+", "01+", "* refused"]),
            (&["0 1 01", "1+"], ["1", "1 refused", "* refused"]),
            (&["*+", "1+"], ["1+", "1+", "1+"]),
            (&["0+ 01", "none", "01"], ["01", "01 refused", "* refused"]),
        ] {
            let policies = [TopologyPolicy::BestEffort, TopologyPolicy::Restricted, TopologyPolicy::SingleNumaNode];
            let of = |policy| {
                let config = TopologyConfig { policy, ..TopologyConfig::default() };
                shown(merge(&config, &numa(2), providers.iter().enumerate().map(|it| provider(it.0, it.1)).collect()))
            };
            assert_eq!(policies.map(of), expected, "{providers:?}");
        }
    }

    /// Of what nobody prefers, so many nodes as who needs most of them needs; else fewer, rather than more.
    #[test]
    fn what_nobody_prefers() {
        for (providers, expected) in [
            (&["0 01 012", "01 012"][..], "01"),
            (&["0123", "0 1"], "0"),
            (&["012 0123", "01 0123"], "012"),
            (&["01 23", "13 0123"], "01"),
            (&["023 123", "01 0123"], "023"),
        ] {
            let config = TopologyConfig { policy: TopologyPolicy::BestEffort, ..TopologyConfig::default() };
            let hints = providers.iter().enumerate().map(|it| provider(it.0, it.1)).collect();
            assert_eq!(shown(merge(&config, &numa(4), hints)), expected, "{providers:?}");
        }
    }

    #[test]
    fn nodes_that_are_near_each_other() {
        let row = |it: [u32; 4]| (0_u32..).zip(it).collect();
        let rows = [[10, 11, 12, 12], [11, 10, 12, 12], [12, 12, 10, 11], [12, 12, 11, 10]];
        let numa = Numa { distances: (0_u32..).zip(rows.map(row)).collect(), ..numa(4) };
        for (prefers_closest_numa_nodes, expected) in [(false, "02+"), (true, "23+")] {
            let policy = TopologyPolicy::Restricted;
            let config = TopologyConfig { policy, prefers_closest_numa_nodes, ..TopologyConfig::default() };
            assert_eq!(shown(merge(&config, &numa, vec![provider(0, "02+ 12+ 23+")])), expected);
        }
    }

    /// Upstream looks at each of 255⁸ combinations.
    #[test]
    fn many_providers_of_many_nodes() {
        let numa = numa(8);
        let all: Vec<_> =
            numa.sets().into_iter().map(|it| TopologyHint { nodes: Some(it), is_preferred: true }).collect();
        let hints = (0..8).map(|it| Hints::from([(format!("r{it}"), Some(all.clone()))])).collect();
        let config = TopologyConfig { policy: TopologyPolicy::Restricted, ..TopologyConfig::default() };
        assert_eq!(shown(merge(&config, &numa, hints)), "0+");
    }
}
