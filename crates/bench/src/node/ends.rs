//! How soon it is heard that something has ended, and goes on from there: a command, init containers, a Pod that was deleted.

use std::time::{Duration, Instant};

use anyhow::Result;
use corten_testbed::RealNode;
use serde_json::{Value, json};

use super::{
    super::{
        load::quantile,
        report::{Row, Unit},
    },
    Scale,
    pods::{Pods, container},
    starts::spread,
};

const AT_ONCE: [&str; 1] = ["true"];
const N_INIT: usize = 3;

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let mut pods = Pods::begin(node).await?;
    // The first finds everything cold.
    times(&mut pods, 1, "Succeeded", &ends_at_once()).await?;
    let (ends, _) = times(&mut pods, scale.starts, "Succeeded", &ends_at_once()).await?;
    rows.push(row("a Pod has begun and succeeded", ends));
    let (begins, gone) = times(&mut pods, scale.starts, "Running", &with_init_containers()).await?;
    rows.push(row(&format!("a Pod runs after {N_INIT} init containers"), begins));
    rows.push(row("a Pod that was deleted is gone, its container ending when told to", gone));
    Ok(())
}

fn ends_at_once() -> Value {
    json!({"restartPolicy": "Never", "containers": [container("main", &AT_ONCE)]})
}

fn with_init_containers() -> Value {
    let init: Vec<Value> = (0..N_INIT).map(|it| container(&format!("init-{it}"), &AT_ONCE)).collect();
    // Whoever is the first process of a container hears only the signals it asks for.
    let main = container("main", &["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.01; done"]);
    json!({"initContainers": init, "containers": [main]})
}

/// Of one Pod after the other: until it is in that phase, and from its deletion until it is gone.
async fn times(pods: &mut Pods, n: usize, phase: &str, spec: &Value) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut reached, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let (time, name) = pods.until(phase, spec).await?;
        reached.push(time);
        let begin = Instant::now();
        pods.delete(&[name]).await?;
        gone.push(begin.elapsed());
    }
    Ok((reached, gone))
}

fn row(what: &str, mut times: Vec<Duration>) -> Row {
    times.sort();
    Row::new(what, quantile(&times, 0.5).as_secs_f64() * 1e3, Unit::Milliseconds).note(spread(&times))
}
