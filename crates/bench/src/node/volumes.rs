//! How much later a Pod runs that waits for its claim's volume than one with an `emptyDir`.

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
    claims::{CLAIMS, claim},
    pods::{COMMAND, Pods, container},
    starts::spread,
};

const BOUND_MS: u32 = 50;
/// Of the cluster, as it is made.
const CLASS: &str = "local";

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let mut pods = Pods::begin(node).await?;
    let (mut of_its_own, mut claimed) = (Vec::new(), Vec::new());
    // The first of each finds everything cold.
    for round in 0..=scale.starts {
        let empty = json!({"emptyDir": {}});
        let (time, name) = pods.until("Running", &with_volume(empty)).await?;
        of_its_own.extend((round > 0).then_some(time));
        pods.delete(&[name]).await?;

        let name = format!("claim-{round}");
        let begin = Instant::now();
        pods.make(CLAIMS, &claim(&name, CLASS, 16)).await?;
        let made = begin.elapsed();
        let source = json!({"persistentVolumeClaim": {"claimName": name}});
        let (time, pod) = pods.until("Running", &with_volume(source)).await?;
        claimed.extend((round > 0).then_some(made + time));
        pods.delete(&[pod]).await?;
        pods.unmake(&format!("{CLAIMS}/{name}")).await?;
    }
    for times in [&mut of_its_own, &mut claimed] {
        times.sort();
    }
    let median = |times: &[Duration]| quantile(times, 0.5).as_secs_f64() * 1e3;
    let (own, with_claim) = (median(&of_its_own), median(&claimed));
    rows.push(Row::new("a Pod with an emptyDir runs", own, Unit::Milliseconds).note(spread(&of_its_own)));
    rows.push(Row::new("a claim and its Pod, until it runs", with_claim, Unit::Milliseconds).note(spread(&claimed)));
    let note = format!("shall be at most {BOUND_MS} ms; scheduled, made, bound, its file system mounted");
    rows.push(Row::new("what the claim takes longer", with_claim - own, Unit::Milliseconds).note(note));
    Ok(())
}

fn with_volume(mut source: Value) -> Value {
    let mut main = container("main", &COMMAND);
    main["volumeMounts"] = json!([{"name": "v", "mountPath": "/data"}]);
    source["name"] = "v".into();
    json!({"containers": [main], "volumes": [source]})
}
