//! What Corten itself needs, the whole cluster in one process, while many Pods run.

use std::time::Duration;

use anyhow::Result;
use corten_testbed::{RealNode, cpu_of, memory_of};

use super::{
    super::{
        measure::megabytes,
        report::{Row, Unit},
    },
    Scale,
    pods::Pods,
};

const WATCHED: Duration = Duration::from_secs(10);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let resident = |what: String| anyhow::Ok(Row::new(what, megabytes(memory_of(node.pid())?), Unit::Megabytes));
    rows.push(resident("memory, no Pod".into())?.note("resident; the whole cluster and its node"));
    let mut pods = Pods::begin(node).await?;
    let mut n_left = scale.pods;
    while n_left > 0 {
        let n = n_left.min(scale.at_once);
        pods.start(n).await?;
        n_left -= n;
    }
    // kubelet and kube-proxy alone, without the control plane, were measured with 138 MB.
    rows.push(resident(format!("memory, {} Pods run", scale.pods))?.note("the same").kubernetes(138.0));
    let before = cpu_of(node.pid())?;
    tokio::time::sleep(WATCHED).await;
    let used = (cpu_of(node.pid())? - before).as_secs_f64() * 1e3 / WATCHED.as_secs_f64();
    let what = format!("processor time per second, {} Pods run", scale.pods);
    rows.push(Row::new(what, used, Unit::Milliseconds).note("Corten's own, nothing happens"));
    rows.push(resident(format!("memory, {} Pods run, a while later", scale.pods))?.note("the same"));
    Ok(())
}
