//! The scheduler: its cycle alone, in this process and without I/O, and through the API with durable writes; and what autoscalers
//! take that are looked at all at once.

mod autoscalers;
mod cluster;
mod templates;
mod through_api;
mod workloads;

use anyhow::{Context, Result};
use corten_testbed::Launcher;

use self::workloads::{Outcome, Scale, WORKLOADS};
use super::report::{Row, Unit};

#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Every count is divided by this.
    pub(super) divisor: usize,
}

/// How many nodes the curve has.
const CURVE: [usize; 4] = [100, 1_000, 5_000, 20_000];
const CURVE_PODS: usize = 3_000;
const AUTOSCALERS: usize = 10_000;

/// Without I/O.
pub(super) fn measure_alone(load: Load, rows: &mut Vec<Row>) -> Result<()> {
    for workload in WORKLOADS {
        let outcome = workload.run(Scale(load.divisor)).with_context(|| format!("playing {}", workload.name))?;
        let upstream = workload.upstream.map(|it| format!("; upstream's own test wants {it} /s")).unwrap_or_default();
        rows.push(cycles(workload.name, &outcome, &upstream));
    }
    for n_nodes in CURVE.map(|it| it / load.divisor) {
        let outcome = workloads::basic_on(n_nodes, CURVE_PODS / load.divisor)?;
        rows.push(cycles(&format!("SchedulingBasic, {n_nodes} nodes"), &outcome, ""));
    }
    Ok(())
}

pub(super) async fn measure_through_api(launcher: &Launcher, load: Load, rows: &mut Vec<Row>) -> Result<()> {
    through_api::measure(launcher, load.divisor, rows).await
}

pub(super) async fn measure_many_pods(launcher: &Launcher, load: Load, rows: &mut Vec<Row>) -> Result<()> {
    rows.push(through_api::memory(launcher, load.divisor).await?);
    Ok(())
}

pub(super) fn autoscalers(load: Load, rows: &mut Vec<Row>) -> Result<()> {
    rows.push(autoscalers::measure(AUTOSCALERS / load.divisor)?);
    Ok(())
}

fn cycles(name: &str, outcome: &Outcome, upstream: &str) -> Row {
    let Outcome { n_pods, spent } = outcome;
    let each = |spent: std::time::Duration| spent.as_secs_f64() * 1e6 / *n_pods as f64;
    let (placing, taking_in) = (each(spent.placing), each(spent.taking_in));
    let row = Row::new(format!("cycles alone, {name}"), 1e6 / placing, Unit::PerSecond);
    let note = format!("{placing:.1} µs for each of {n_pods} Pods, and {taking_in:.1} to be told of it");
    row.note(note + upstream)
}
