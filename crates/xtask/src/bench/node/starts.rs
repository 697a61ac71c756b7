//! How long a Pod takes from its create until a watcher sees it run, and how much of that is the runtime's.

use std::time::Duration;

use anyhow::Result;

use super::{
    super::{
        load::{millis, quantile},
        report::{Row, Unit},
    },
    Scale,
    floor::Floor,
    pods::Pods,
};
use crate::real::RealNode;

/// For what the last measurement has left to do: events, removals, status.
const QUIET: Duration = Duration::from_millis(700);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let (mut floor, mut pods) = (Floor::new(node)?, Pods::begin(node).await?);
    // The first of each finds everything cold.
    turn(node, &mut floor, &mut pods, 1).await?;
    let (mut alone, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..scale.starts {
        let (by_itself, pod) = turn(node, &mut floor, &mut pods, 1).await?;
        alone.extend(by_itself);
        ours.extend(pod);
    }
    report("a Pod runs", alone, ours, 500.0, rows);

    let n = scale.at_once;
    let (mut alone, mut ours, mut last) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..scale.rounds {
        let (by_itself, pod) = turn(node, &mut floor, &mut pods, n).await?;
        last[0].extend(by_itself.last());
        last[1].extend(pod.last());
        alone.extend(by_itself);
        ours.extend(pod);
    }
    let [alone_last, ours_last] = last;
    report(&format!("the last of {n} Pods at once runs"), alone_last, ours_last, 4_900.0, rows);
    let row = between(&format!("each of {n} Pods at once runs"), &mut alone, &mut ours);
    rows.push(row);
    Ok(())
}

/// The runtime by itself, then Corten: by turns, so that whatever else the machine does meets both.
async fn turn(node: &RealNode, floor: &mut Floor, pods: &mut Pods, n: usize) -> Result<(Vec<Duration>, Vec<Duration>)> {
    node.pause()?;
    let by_itself = floor.start(n).await;
    node.go_on()?;
    tokio::time::sleep(QUIET).await;
    let (times, names) = pods.start(n).await?;
    pods.delete(&names).await?;
    tokio::time::sleep(QUIET).await;
    Ok((by_itself?, times))
}

fn report(what: &str, mut alone: Vec<Duration>, mut ours: Vec<Duration>, kubernetes: f64, rows: &mut Vec<Row>) {
    rows.push(between(what, &mut alone, &mut ours).kubernetes(kubernetes));
    let floor = quantile(&alone, 0.5).as_secs_f64() * 1e3;
    rows.push(Row::new(format!("{what}: the runtime by itself"), floor, Unit::Milliseconds).note(spread(&alone)));
}

/// Ours, and how many times the runtime's own it is.
fn between(what: &str, alone: &mut [Duration], ours: &mut [Duration]) -> Row {
    alone.sort();
    ours.sort();
    let [floor, median] = [&*alone, &*ours].map(|it| quantile(it, 0.5).as_secs_f64() * 1e3);
    let best = ours[0].as_secs_f64() / alone[0].as_secs_f64();
    let note =
        format!("{:.2} times the runtime by itself (best against best {best:.2}); {}", median / floor, spread(ours));
    Row::new(what, median, Unit::Milliseconds).note(note)
}

fn spread(times: &[Duration]) -> String {
    let [best, p99] = [0.0, 0.99].map(|it| millis(quantile(times, it)));
    format!("median of {}, best {best} ms, p99 {p99} ms", times.len())
}
