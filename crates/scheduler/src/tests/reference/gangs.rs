//! Gangs whose pods ask for the same: whether they fit, and whether they would if others left, is a matter of counting.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::of;
use crate::{PodGroup, tests::*};

#[derive(Clone, Debug)]
struct Placed {
    node: usize,
    cpus: i64,
    priority: i64,
}

#[derive(Clone, Debug)]
struct Gang {
    cpus: i64,
    priority: i64,
    n_pods: usize,
    min_count: usize,
    /// So many of it are placed already, on the first node.
    n_before: usize,
}

#[derive(Clone, Debug)]
struct World {
    /// How many CPUs each has.
    nodes: Vec<i64>,
    placed: Vec<Placed>,
    gang: Gang,
}

fn worlds() -> impl Strategy<Value = World> {
    let placed = (any::<prop::sample::Index>(), 1..4_i64, 0..4_i64);
    let gang = (1..4_i64, of(&[0, 2, 4]), 1..6_usize, any::<prop::sample::Index>(), 0..2_usize);
    (prop::collection::vec(1..9_i64, 1..5), prop::collection::vec(placed, 0..8), gang).prop_map(
        |(nodes, placed, (cpus, priority, n_pods, min_count, n_before))| {
            let placed = placed.into_iter();
            let placed =
                placed.map(|(node, cpus, priority)| Placed { node: node.index(nodes.len()), cpus, priority }).collect();
            let min_count = 1 + min_count.index(n_pods);
            World { nodes, placed, gang: Gang { cpus, priority, n_pods, min_count, n_before } }
        },
    )
}

impl World {
    /// How many of the gang fit beside those of the others that stay.
    fn n_places(&self, stays: impl Fn(usize, &Placed) -> bool) -> usize {
        let left = |idx: usize| {
            let there = self.placed.iter().enumerate().filter(|it| it.1.node == idx && stays(it.0, it.1));
            let of_gang = if idx == 0 { self.gang.n_before } else { 0 };
            let of_gang = i64::try_from(of_gang).expect("few") * self.gang.cpus;
            self.nodes[idx] - there.map(|it| it.1.cpus).sum::<i64>() - of_gang
        };
        let places = (0..self.nodes.len()).map(|it| usize::try_from(left(it).max(0) / self.gang.cpus).expect("few"));
        places.sum()
    }

    fn n_wanted(&self) -> usize {
        self.gang.min_count.saturating_sub(self.gang.n_before)
    }

    fn told(&self) -> Scheduler {
        let now = Time::from_unix_seconds(1_800_000_000);
        let mut scheduler = Scheduler::new(Config::default());
        for (idx, cpus) in self.nodes.iter().enumerate() {
            scheduler.step(node(&object(&format!("node n{idx} cpu={cpus}"), &format!("n{idx}"))), now);
        }
        for (idx, it) in self.placed.iter().enumerate() {
            let Placed { node, cpus, priority } = it;
            let line = format!("pod p{idx} cpu={cpus} priority={priority} node=n{node} running");
            scheduler.step(pod(&object(&line, &format!("p{idx}"))), now);
        }
        let Gang { cpus, priority, n_pods, min_count, n_before } = self.gang;
        let spec = json!({ "schedulingPolicy": { "gang": { "minCount": min_count } }, "priority": priority });
        let metadata = json!({ "name": "g", "namespace": "default", "uid": "g" });
        scheduler.step(of_cluster::<PodGroup>(&json!({ "metadata": metadata, "spec": spec })), now);
        for idx in 0..n_before + n_pods {
            let on = if idx < n_before { "node=n0 running" } else { "" };
            let line = format!(
                r#"pod g{idx} cpu={cpus} priority={priority} {on} spec.schedulingGroup={{"podGroupName":"g"}}"#
            );
            scheduler.step(pod(&object(&line, &format!("g{idx}"))), now);
        }
        scheduler
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_gang_is_placed_whole_or_evicts_no_more_than_it_needs(world in worlds()) {
        let now = Time::from_unix_seconds(1_800_000_000);
        let mut scheduler = world.told();
        let effects = scheduler.step(Event::Tick, now);
        let mut bound: BTreeMap<&str, usize> = BTreeMap::new();
        let mut victims = Vec::new();
        for effect in &effects {
            match effect {
                Effect::Bind { node, .. } => *bound.entry(node).or_default() += 1,
                Effect::Evict(it) => victims.push(it.victim.name[1..].parse::<usize>().expect("it has a number")),
                _ => {}
            }
        }
        let n_bound: usize = bound.values().sum();
        let (all, wanted) = (world.gang.n_pods, world.n_wanted());
        let free = world.n_places(|_, _| true);
        if free >= wanted {
            prop_assert_eq!(n_bound, free.min(all), "as many as fit");
            prop_assert_eq!(victims, Vec::<usize>::new());
            return Ok(());
        }
        prop_assert_eq!(n_bound, 0, "no part of a gang");
        let is_lower = |it: &Placed| it.priority < world.gang.priority;
        let helps = world.n_places(|_, it| !is_lower(it)) >= wanted;
        prop_assert_eq!(helps, !victims.is_empty(), "{:?}", victims);
        for victim in &victims {
            prop_assert!(is_lower(&world.placed[*victim]), "p{} is as important", victim);
        }
        if helps {
            prop_assert!(world.n_places(|it, _| !victims.contains(&it)) >= wanted, "{:?} are too few", victims);
            // As few priorities as do: nobody goes where one that matters less could.
            let highest = victims.iter().map(|it| world.placed[*it].priority).max().expect("there are victims");
            let without_it = world.n_places(|_, it| it.priority >= highest);
            prop_assert!(without_it < wanted, "those below {} would have been enough", highest);
        }
        // They are asked once, and the gang comes when they have gone.
        for victim in &victims {
            let eviction = effects.iter().find_map(|it| match it {
                Effect::Evict(it) if it.victim.name == format!("p{victim}") => Some(it.clone()),
                _ => None,
            });
            scheduler.step(Event::Evicted { eviction: eviction.expect("it was asked") }, now);
            scheduler.step(Event::PodGone(Key::new("default", format!("p{victim}"))), now);
        }
        let later = now.after(Duration::from_secs(20));
        let effects = scheduler.step(Event::Tick, later);
        let n_bound = effects.iter().filter(|it| matches!(it, Effect::Bind { .. })).count();
        prop_assert_eq!(n_bound >= wanted.max(1), helps, "{} are bound", n_bound);
        prop_assert!(!effects.iter().any(|it| matches!(it, Effect::Evict(_))), "more are asked to leave");
    }
}
