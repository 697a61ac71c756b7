//! What is measured, in parts that each begin with a new server.

mod admission;
mod collects;
mod comings;
mod creates;
mod custom;
mod etcd_api;
mod etcd_server;
mod greedy;
mod lists;
mod machine;
mod on_etcd;
mod one_webhook;
mod start;
mod watches;

use std::time::Duration;

use anyhow::{Context, Result};
use corten_testbed::Launcher;

use super::{report::Row, scheduler};

#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// How long a load lasts.
    time: Duration,
    starts: usize,
    pods: usize,
    /// Those that are listed beside kube-apiserver: few, and many.
    listed: [usize; 2],
    /// For memory alone.
    many_pods: usize,
    watchers: usize,
    watched_writes: usize,
    deleted: usize,
    owned: usize,
    replicas: usize,
    /// Definitions that are created at once.
    definitions: usize,
    /// Definitions that come and go, more than the history that is kept of them.
    comings: usize,
    /// The workloads of the scheduler are divided by this.
    scheduler_divisor: usize,
    /// Of the size that Kubernetes was measured with.
    comparable: bool,
}

impl Scale {
    pub(super) const FULL: Self = Self {
        time: Duration::from_secs(5),
        starts: 5,
        pods: 20_000,
        listed: [1_000, 10_000],
        many_pods: 100_000,
        watchers: 1_000,
        watched_writes: 100,
        deleted: 2_000,
        owned: 100_000,
        replicas: 1_000,
        definitions: 500,
        comings: 14_000,
        scheduler_divisor: 1,
        comparable: true,
    };
    pub(super) const QUICK: Self = Self {
        time: Duration::from_secs(1),
        starts: 2,
        pods: 2_000,
        listed: [100, 1_000],
        many_pods: 10_000,
        watchers: 100,
        watched_writes: 20,
        deleted: 200,
        owned: 2_000,
        replicas: 100,
        definitions: 50,
        comings: 200,
        scheduler_divisor: 10,
        comparable: false,
    };

    /// Puts Kubernetes's number beside ours if it was taken with as much.
    fn compare(self, row: Row, kubernetes: f64) -> Row {
        if self.comparable { row.kubernetes(kubernetes) } else { row }
    }
}

/// The parts that are the load of every day.
pub(super) const DAILY: [&str; 10] =
    ["start", "configmaps", "pods", "lists", "watches", "deletes", "collects", "custom", "replicas", "scheduling"];

type Part =
    for<'a> fn(&'a Launcher, Scale, &'a mut Vec<Row>) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(super) const PARTS: &[(&str, Part)] = &[
    ("machine", |launcher, scale, rows| Box::pin(machine::measure(launcher, scale, rows))),
    ("start", |launcher, scale, rows| Box::pin(start::measure(launcher, scale, rows))),
    ("configmaps", |launcher, scale, rows| Box::pin(creates::config_maps(launcher, scale, rows))),
    ("pods", |launcher, scale, rows| Box::pin(creates::pods(launcher, scale, rows))),
    ("lists", |launcher, scale, rows| Box::pin(lists::measure(launcher, scale, rows))),
    ("watches", |launcher, scale, rows| Box::pin(watches::measure(launcher, scale, rows))),
    ("deletes", |launcher, scale, rows| Box::pin(creates::delete_collection(launcher, scale, rows))),
    ("collects", |launcher, scale, rows| Box::pin(collects::measure(launcher, scale, rows))),
    ("admission", |launcher, scale, rows| Box::pin(admission::measure(launcher, scale, rows))),
    ("webhook", |launcher, scale, rows| Box::pin(one_webhook::measure(launcher, scale, rows))),
    ("custom", |launcher, scale, rows| Box::pin(custom::measure(launcher, scale, rows))),
    ("comings", |launcher, scale, rows| Box::pin(comings::measure(launcher, scale, rows))),
    ("etcd-api", |launcher, scale, rows| {
        let Scale { time, watchers, watched_writes, .. } = scale;
        Box::pin(etcd_api::measure(launcher, etcd_api::Load { time, watchers, watched_writes }, rows))
    }),
    ("etcd", |launcher, scale, rows| {
        let Scale { time, listed, .. } = scale;
        Box::pin(on_etcd::measure(launcher, on_etcd::Load { time, listed }, rows))
    }),
    ("scheduler", |_, scale, rows| {
        let load = scheduler::Load { divisor: scale.scheduler_divisor };
        Box::pin(async move { scheduler::measure_alone(load, rows) })
    }),
    ("scheduling", |launcher, scale, rows| {
        let load = scheduler::Load { divisor: scale.scheduler_divisor };
        Box::pin(scheduler::measure_through_api(launcher, load, rows))
    }),
    ("many-pods", |launcher, scale, rows| {
        let load = scheduler::Load { divisor: scale.scheduler_divisor };
        Box::pin(scheduler::measure_many_pods(launcher, load, rows))
    }),
    ("autoscalers", |_, scale, rows| {
        let divisor = scale.scheduler_divisor;
        Box::pin(std::future::ready(scheduler::autoscalers(scheduler::Load { divisor }, rows)))
    }),
    ("greedy", |launcher, scale, rows| Box::pin(greedy::measure(launcher, scale, rows))),
    ("replicas", |launcher, scale, rows| Box::pin(creates::replicas(launcher, scale, rows))),
];

pub(super) async fn all(launcher: &Launcher, scale: Scale, only: &[String]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, part) in PARTS {
        if !only.is_empty() && !only.iter().any(|it| it == name) {
            continue;
        }
        eprintln!("measuring {name}");
        part(launcher, scale, &mut rows).await.with_context(|| format!("measuring {name}"))?;
    }
    Ok(rows)
}

/// In the units of the reference: a megabyte is a million bytes.
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
