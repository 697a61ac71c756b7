//! The workloads of upstream's scheduler_perf, by their names there. Upstream measures them through an API server; here the cycle is
//! alone. What upstream injects at a rate is injected after so many Pods, so that it is as much of the load on each machine.

use anyhow::Result;

use super::{
    cluster::{Cluster, Spent},
    templates::{self, Template},
};

/// One of them.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Pods a second below which upstream's own test of it fails.
    pub(super) upstream: Option<u32>,
    run: fn(Scale) -> Result<Outcome>,
}

/// What came of it.
pub(super) struct Outcome {
    /// The Pods that are counted.
    pub(super) n_pods: usize,
    pub(super) spent: Spent,
}

/// Every count is divided by this.
#[derive(Clone, Copy)]
pub(super) struct Scale(pub(super) usize);

impl Scale {
    fn of(self, count: usize) -> usize {
        (count / self.0).max(1)
    }
}

/// One Pod is injected for so many that are counted.
const CHURN_EVERY: usize = 100;
const MOONS: &[&str] = &["moon-1", "moon-2", "moon-3"];
const ONE_ZONE: &[&str] = &["zone1"];
/// The one node of SchedulingDaemonset that all Pods are for.
const NAMED_NODE: &str = "scheduler-perf-node";

pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "SchedulingBasic/5000Nodes_10000Pods", upstream: Some(680), run: |it| basic(it, 1000, 10_000) },
    Workload { name: "SchedulingBasic/5000Nodes_50000Pods", upstream: Some(810), run: |it| basic(it, 5000, 50_000) },
    Workload {
        name: "PreemptionAsync/5000Nodes",
        upstream: Some(570),
        run: |it| churned(it, (20_000, Template::LowPriority), Template::HighPriority, 5000),
    },
    Workload {
        name: "Unschedulable/5kNodes/100Init/10kPods",
        upstream: Some(590),
        run: |it| churned(it, (100, Template::Default), Template::TooLarge, 10_000),
    },
    Workload {
        name: "TopologySpreading/5000Nodes_5000Pods",
        upstream: Some(460),
        run: |it| zoned(it, MOONS, &[Template::Default], 5000, ("default", Template::Spread, 5000)),
    },
    Workload {
        name: "PreferredTopologySpreading/5000Nodes_5000Pods",
        upstream: Some(340),
        run: |it| zoned(it, MOONS, &[Template::Default], 5000, ("default", Template::PreferredSpread, 5000)),
    },
    Workload {
        name: "SchedulingPodAntiAffinity/5000Nodes_2000Pods",
        upstream: Some(60),
        run: |it| zoned(it, &[], &[Template::AntiAffinity], 1000, ("sched-1", Template::AntiAffinity, 2000)),
    },
    Workload {
        name: "SchedulingPodAffinity/5000Nodes_5000Pods",
        upstream: Some(35),
        run: |it| zoned(it, ONE_ZONE, &[Template::Affinity], 5000, ("sched-1", Template::Affinity, 5000)),
    },
    Workload {
        name: "SchedulingPreferredPodAffinity/5000Nodes_5000Pods",
        upstream: Some(90),
        run: |it| zoned(it, &[], &[Template::PreferredAffinity], 5000, ("sched-1", Template::PreferredAffinity, 5000)),
    },
    Workload { name: "MixedSchedulingBasePod/5000Nodes_5000Pods", upstream: Some(140), run: mixed },
    Workload { name: "SchedulingDaemonset/15000Nodes", upstream: Some(1100), run: daemon_set },
    Workload { name: "EventHandlingPodDelete/1000Nodes_1000Pods, NodePorts", upstream: None, run: pods_deleted },
    Workload { name: "GangScheduling/5000Nodes_3000Gangs_9000Pods", upstream: None, run: |it| gangs(it, 3000, 3) },
    Workload {
        name: "GangScheduling/5000Nodes_9Gangs_9000Pods_1000PerGroup",
        upstream: None,
        run: |it| gangs(it, 9, 1000),
    },
];

impl Workload {
    pub(super) fn run(&self, scale: Scale) -> Result<Outcome> {
        (self.run)(scale)
    }
}

/// Places the Pods that are there, then counts those that come now.
fn counted(cluster: &mut Cluster, n_pods: usize, run: impl FnOnce(&mut Cluster) -> Result<()>) -> Result<Outcome> {
    cluster.place()?;
    cluster.spent = Spent::default();
    run(cluster)?;
    Ok(Outcome { n_pods, spent: cluster.spent })
}

fn basic(scale: Scale, n_before: usize, n_pods: usize) -> Result<Outcome> {
    zoned(scale, &[], &[Template::Default], n_before, ("default", Template::Default, n_pods))
}

/// SchedulingBasic on as many nodes as one likes, for the curve.
pub(super) fn basic_on(n_nodes: usize, n_pods: usize) -> Result<Outcome> {
    let mut cluster = Cluster::new();
    cluster.add_nodes(n_nodes, &[])?;
    cluster.add_pods(n_nodes, "default", Template::Default)?;
    counted(&mut cluster, n_pods, |it| {
        let n_before = it.n_bound();
        it.add_pods(n_pods, "default", Template::Default)?;
        it.place_until(n_before + n_pods)
    })
}

fn zoned(
    scale: Scale,
    zones: &[&str],
    before: &[Template],
    n_before: usize,
    (namespace, template, n_pods): (&str, Template, usize),
) -> Result<Outcome> {
    let (mut cluster, n_pods) = (Cluster::new(), scale.of(n_pods));
    cluster.add_nodes(scale.of(5000), zones)?;
    before.iter().try_for_each(|it| cluster.add_pods(scale.of(n_before), "sched-0", *it))?;
    counted(&mut cluster, n_pods, |it| {
        let n_before = it.n_bound();
        it.add_pods(n_pods, namespace, template)?;
        it.place_until(n_before + n_pods)
    })
}

fn mixed(scale: Scale) -> Result<Outcome> {
    let before = [
        Template::Default,
        Template::Affinity,
        Template::AntiAffinity,
        Template::PreferredAffinity,
        Template::PreferredAntiAffinity,
    ];
    zoned(scale, ONE_ZONE, &before, 2000, ("default", Template::Default, 5000))
}

/// Pods that fit, beside others that fit nowhere or only in the place of others.
fn churned(scale: Scale, (n_before, before): (usize, Template), churn: Template, n_pods: usize) -> Result<Outcome> {
    let (mut cluster, n_pods) = (Cluster::new(), scale.of(n_pods));
    cluster.add_nodes(scale.of(5000), &[])?;
    cluster.add_pods(scale.of(n_before), "default", before)?;
    counted(&mut cluster, n_pods, |it| {
        for n_left in (0..n_pods).step_by(CHURN_EVERY).map(|done| n_pods - done) {
            it.add_pods(1, "churn", churn)?;
            it.add_pods(n_left.min(CHURN_EVERY), "measured", Template::Default)?;
            it.place()?;
        }
        it.expect_all_bound("measured")
    })
}

fn daemon_set(scale: Scale) -> Result<Outcome> {
    let (mut cluster, n_pods) = (Cluster::new(), scale.of(30_000));
    cluster.add_nodes(scale.of(15_000), &[])?;
    let mut node = templates::node(NAMED_NODE, "", 90_000);
    node["status"]["allocatable"]["cpu"] = "90000".into();
    node["status"]["allocatable"]["memory"] = "9000Gi".into();
    cluster.add_node(&node)?;
    counted(&mut cluster, n_pods, |it| {
        it.add_pods(n_pods, "default", Template::ForNode(NAMED_NODE))?;
        it.place_until(n_pods)
    })
}

/// Every node's port is taken. Many Pods wait for one, and each Pod that goes lets one in.
fn pods_deleted(scale: Scale) -> Result<Outcome> {
    let (mut cluster, n_nodes) = (Cluster::new(), scale.of(1000));
    cluster.add_nodes(n_nodes, &[])?;
    cluster.add_pods(n_nodes, "blockers", Template::HostPort)?;
    cluster.place()?;
    cluster.add_pods(n_nodes, "waiting", Template::HostPort)?;
    counted(&mut cluster, n_nodes, |it| {
        let n_bound = it.n_bound();
        for _ in 0..n_nodes {
            it.delete_pods(1, "blockers")?;
            it.place()?;
        }
        it.place_until(n_bound + n_nodes)
    })
}

fn gangs(scale: Scale, n_gangs: usize, size: usize) -> Result<Outcome> {
    let (mut cluster, n_gangs) = (Cluster::new(), scale.of(n_gangs));
    cluster.add_nodes(scale.of(5000), &[])?;
    cluster.add_pod_groups(n_gangs, "gang-ns-0", size)?;
    counted(&mut cluster, n_gangs * size, |it| {
        it.add_pods(n_gangs * size, "gang-ns-0", Template::OfGang(size))?;
        it.place_until(n_gangs * size)
    })
}
