//! How soon many claims are bound, each to a volume that is made for it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use corten_testbed::{RealNode, cpu_of};
use serde_json::{Value, json};

use super::{
    super::report::{Row, Unit},
    Scale,
    pods::Pods,
};

pub(super) const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// Of volumes that are made without a Pod.
pub(super) const AT_ONCE: &str = "at-once";
const PATIENCE: Duration = Duration::from_secs(180);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let mut pods = Pods::begin(node).await?;
    class_at_once(&mut pods).await?;
    // The first finds everything cold.
    pods.make(CLAIMS, &claim("first", AT_ONCE, 8)).await?;
    bound(&mut pods, 1).await?;
    let n = scale.claims;
    let (begin, cpu) = (Instant::now(), cpu_of(node.pid())?);
    for idx in 0..n {
        pods.make(CLAIMS, &claim(&format!("claim-{idx}"), AT_ONCE, 8)).await?;
    }
    let made = begin.elapsed();
    bound(&mut pods, n + 1).await?;
    let (took, used) = (begin.elapsed(), cpu_of(node.pid())? - cpu);
    let note = format!(
        "shall be at most 5 s for 1000; all were made after {:.2} s; {:.2} ms of Corten's processor time each, beside mkfs",
        made.as_secs_f64(),
        used.as_secs_f64() * 1e3 / n as f64
    );
    rows.push(Row::new(format!("{n} claims are bound"), took.as_secs_f64(), Unit::Seconds).note(note));
    Ok(())
}

pub(super) async fn class_at_once(pods: &mut Pods) -> Result<()> {
    let class = json!({
        "kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": AT_ONCE},
        "provisioner": "local.corten.dev", "volumeBindingMode": "Immediate",
    });
    pods.make(CLASSES, &class).await
}

pub(super) fn claim(name: &str, class: &str, mib: usize) -> Value {
    json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{mib}Mi")}},
        },
    })
}

/// Until so many claims are bound.
async fn bound(pods: &mut Pods, n: usize) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let claims = pods.get(CLAIMS).await?;
        let claims = claims["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let n_bound = claims.iter().filter(|it| it["status"]["phase"] == "Bound").count();
        if n_bound >= n {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("{n_bound} of {n} claims are bound after {PATIENCE:?}");
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
