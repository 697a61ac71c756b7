//! A cluster around a scheduler, in this process and without I/O: whatever it wants done is done at once, and told to it as watches
//! would. Only the scheduler's own time counts.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail};
use corten_meta::{Key, Time};
use corten_scheduler::{ClusterObject, Config, Effect, Event, PodGroup, Scheduler};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::templates::{self, Template};

pub(super) struct Cluster {
    scheduler: Scheduler,
    now: Time,
    pods: BTreeMap<Key, Value>,
    n_created: usize,
    n_bound: usize,
    wake_at: Option<Time>,
    pub(super) spent: Spent,
}

/// The processor time that the scheduler took.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    /// For placing Pods.
    pub(super) placing: Duration,
    /// For taking in what it was told of.
    pub(super) taking_in: Duration,
}

impl Cluster {
    pub(super) fn new() -> Self {
        let now = Time::from_unix_seconds(1_800_000_000);
        let scheduler = Scheduler::new(Config::default());
        let (pods, spent) = (BTreeMap::new(), Spent::default());
        Self { scheduler, now, pods, n_created: 0, n_bound: 0, wake_at: None, spent }
    }

    pub(super) fn n_bound(&self) -> usize {
        self.n_bound
    }

    /// Nodes in these zones, by turns.
    pub(super) fn add_nodes(&mut self, count: usize, zones: &[&str]) -> Result<()> {
        for idx in 0..count {
            let zone = zones.get(idx % zones.len().max(1)).copied().unwrap_or_default();
            self.add_node(&templates::node(&format!("node-{idx}"), zone, 110))?;
        }
        Ok(())
    }

    pub(super) fn add_node(&mut self, node: &Value) -> Result<()> {
        let node = serde_json::from_value(node.clone()).context("reading a node")?;
        self.step(Event::Node(Box::new(node)))
    }

    pub(super) fn add_pods(&mut self, count: usize, namespace: &str, template: Template) -> Result<()> {
        for idx in 0..count {
            self.n_created += 1;
            let mut pod = template.pod(namespace, &format!("pod-{:06}", self.n_created), idx);
            pod["metadata"]["uid"] = format!("00000000-0000-0000-0000-{:012}", self.n_created).into();
            self.see_pod(pod)?;
        }
        Ok(())
    }

    pub(super) fn add_pod_groups(&mut self, count: usize, namespace: &str, size: usize) -> Result<()> {
        for idx in 0..count {
            let group = templates::pod_group(&format!("gang-{idx}"), namespace, size);
            let group: PodGroup = serde_json::from_value(group).context("reading a PodGroup")?;
            self.step(Event::Cluster(Box::new(ClusterObject::PodGroup(group))))?;
        }
        Ok(())
    }

    /// Deletes so many Pods of the namespace that are bound.
    pub(super) fn delete_pods(&mut self, count: usize, namespace: &str) -> Result<()> {
        let is_bound = |it: &(&Key, &Value)| it.0.namespace == namespace && it.1["spec"]["nodeName"].is_string();
        let gone: Vec<Key> = self.pods.iter().filter(is_bound).take(count).map(|it| it.0.clone()).collect();
        gone.into_iter().try_for_each(|it| self.delete_pod(&it))
    }

    fn delete_pod(&mut self, key: &Key) -> Result<()> {
        self.pods.remove(key);
        self.step(Event::PodGone(key.clone()))
    }

    /// Ticks until the scheduler wants none at once.
    pub(super) fn place(&mut self) -> Result<()> {
        while self.wake_at.is_some_and(|it| it <= self.now) {
            self.wake_at = None;
            self.step(Event::Tick)?;
        }
        Ok(())
    }

    /// As above, and lets time go on until so many Pods are bound.
    pub(super) fn place_until(&mut self, n_bound: usize) -> Result<()> {
        self.place()?;
        while self.n_bound < n_bound {
            let Some(at) = self.wake_at else {
                bail!("{} Pods are bound, not {n_bound}, and the scheduler waits for nothing", self.n_bound)
            };
            self.now = at;
            self.place()?;
        }
        Ok(())
    }

    /// Fails where a Pod of the namespace has no node.
    pub(super) fn expect_all_bound(&self, namespace: &str) -> Result<()> {
        let is_open = |it: &(&Key, &Value)| it.0.namespace == namespace && !it.1["spec"]["nodeName"].is_string();
        self.pods.iter().find(is_open).map_or(Ok(()), |(key, _)| bail!("{key} is not bound"))
    }

    fn see_pod(&mut self, pod: Value) -> Result<()> {
        let read = serde_json::from_value(pod.clone()).context("reading a Pod")?;
        let field = |name: &str| pod["metadata"][name].as_str().unwrap_or_default().to_owned();
        self.pods.insert(Key::new(field("namespace"), field("name")), pod);
        self.step(Event::Pod(Box::new(read)))
    }

    fn step(&mut self, event: Event) -> Result<()> {
        let is_tick = matches!(event, Event::Tick);
        let begin = processor_time();
        let effects = self.scheduler.step(event, self.now);
        let took = processor_time().saturating_sub(begin);
        let spent = if is_tick { &mut self.spent.placing } else { &mut self.spent.taking_in };
        *spent += took;
        effects.into_iter().try_for_each(|it| self.carry_out(it))
    }

    fn carry_out(&mut self, effect: Effect) -> Result<()> {
        match effect {
            Effect::Bind { pod, uid, node, .. } => {
                self.n_bound += 1;
                self.step(Event::Bound { pod: pod.clone(), uid, node: node.clone() })?;
                let mut bound = self.pods.get(&pod).context("binding a Pod that is not there")?.clone();
                bound["spec"]["nodeName"] = node.into();
                self.see_pod(bound)
            }
            Effect::PatchCondition { pod, patch } => {
                let mut patched = self.pods.get(&pod).context("patching a Pod that is not there")?.clone();
                for (name, value) in patch["status"].as_object().into_iter().flatten() {
                    patched["status"][name] = value.clone();
                }
                self.see_pod(patched)
            }
            Effect::Evict(eviction) => {
                let victim = eviction.victim_key();
                self.n_bound -= 1;
                self.step(Event::Evicted { eviction })?;
                self.delete_pod(&victim)
            }
            Effect::WakeAt(at) => {
                self.wake_at = Some(self.wake_at.map_or(at, |it| it.min(at)));
                Ok(())
            }
            Effect::Event { .. } | Effect::Record { .. } | Effect::PatchGroup { .. } => Ok(()),
            other => bail!("none of these Pods needs {other:?}"),
        }
    }
}

/// Of this thread: what else the machine does costs nothing here.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
