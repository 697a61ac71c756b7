//! How long a Pod takes from its create until a watcher sees it run, and how much of that is the runtime's.

use std::time::Duration;

use anyhow::Result;
use corten_testbed::RealNode;

use super::{
    super::{
        load::{millis, quantile},
        report::{Row, Unit},
    },
    Scale,
    floor::{Floor, RuntimeDemand},
    pods::Pods,
};

/// For what the last measurement has left to do: events, removals, status.
const QUIET: Duration = Duration::from_millis(700);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (mut floor, mut pods) = (Floor::new(node)?, Pods::begin(node).await?);
    // The first of each finds everything cold.
    turn(node, &mut floor, &mut pods, 1, &mut Times::default()).await?;
    let mut one = Times::default();
    for _ in 0..scale.starts {
        turn(node, &mut floor, &mut pods, 1, &mut one).await?;
    }
    report("a Pod runs", one, 500.0, rows);

    let n = scale.at_once;
    let (mut each, mut last) = (Times::default(), Times::default());
    for _ in 0..scale.rounds {
        let mut round = Times::default();
        turn(node, &mut floor, &mut pods, n, &mut round).await?;
        last.extend(round.last());
        each.extend(round);
    }
    report(&format!("the last of {n} Pods at once runs"), last, 4_900.0, rows);
    each.sort();
    rows.push(each.row(&format!("each of {n} Pods at once runs")));
    Ok(())
}

/// Ours, and the runtime's by itself, asked for the least and for all that a Pod has.
#[derive(Default)]
struct Times {
    ours: Vec<Duration>,
    least: Vec<Duration>,
    same: Vec<Duration>,
}

impl Times {
    fn all(&mut self) -> [&mut Vec<Duration>; 3] {
        [&mut self.ours, &mut self.least, &mut self.same]
    }

    fn extend(&mut self, other: Self) {
        let Self { ours, least, same } = other;
        for (all, more) in self.all().into_iter().zip([ours, least, same]) {
            all.extend(more);
        }
    }

    /// The longest of each.
    fn last(&self) -> Self {
        let longest = |it: &[Duration]| it.iter().max().copied().into_iter().collect();
        Self { ours: longest(&self.ours), least: longest(&self.least), same: longest(&self.same) }
    }

    fn sort(&mut self) {
        for times in self.all() {
            times.sort();
        }
    }

    /// Ours, and how many times the runtime's own it is.
    fn row(&self, what: &str) -> Row {
        let [ours, least, same] = [&self.ours, &self.least, &self.same].map(|it| quantile(it, 0.5).as_secs_f64() * 1e3);
        let note = format!(
            "{:.2} times the runtime by itself, {:.2} times where it is asked for all that a Pod has; {}",
            ours / least,
            ours / same,
            spread(&self.ours)
        );
        Row::new(what, ours, Unit::Milliseconds).note(note)
    }
}

/// The runtime by itself, then Corten: by turns, so that whatever else the machine does meets both.
async fn turn(node: &RealNode, floor: &mut Floor, pods: &mut Pods, n: usize, times: &mut Times) -> Result<()> {
    node.pause()?;
    let (least, same) = (floor.start(n, RuntimeDemand::Least).await, floor.start(n, RuntimeDemand::AsForAPod).await);
    node.go_on()?;
    tokio::time::sleep(QUIET).await;
    let (ours, names) = pods.start(n).await?;
    pods.delete(&names).await?;
    tokio::time::sleep(QUIET).await;
    times.extend(Times { ours, least: least?, same: same? });
    Ok(())
}

fn report(what: &str, mut times: Times, kubernetes: f64, rows: &mut Vec<Row>) {
    times.sort();
    rows.push(times.row(what).kubernetes(kubernetes));
    for (which, floor) in [("by itself", &times.least), ("asked for all that a Pod has", &times.same)] {
        let median = quantile(floor, 0.5).as_secs_f64() * 1e3;
        rows.push(Row::new(format!("{what}: the runtime {which}"), median, Unit::Milliseconds).note(spread(floor)));
    }
}

pub(super) fn spread(times: &[Duration]) -> String {
    let [best, p99] = [0.0, 0.99].map(|it| millis(quantile(times, it)));
    format!("median of {}, best {best} ms, p99 {p99} ms", times.len())
}
