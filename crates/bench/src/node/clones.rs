//! How long the clone of a volume takes where the disk's file system shares blocks: on an XFS made for it, in a file.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use corten_testbed::RealNode;
use serde_json::json;

use super::{
    super::{
        load::quantile,
        report::{Row, Unit},
    },
    Scale,
    claims::{AT_ONCE, CLAIMS, claim, class_at_once},
    pods::{Pods, container},
    starts::spread,
};

const DISK_BYTES: u64 = 16 << 30;
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let mut pods = Pods::begin(node).await?;
    class_at_once(&mut pods).await?;
    let mib = scale.cloned_mib;
    // The file system needs some room for itself.
    let size = mib + mib / 8 + 16;
    pods.make(CLAIMS, &claim("source", AT_ONCE, size)).await?;
    let mut main =
        container("main", &["sh", "-c", &format!("dd if=/dev/urandom of=/data/f bs=1M count={mib} && sync")]);
    main["volumeMounts"] = json!([{"name": "v", "mountPath": "/data"}]);
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "source"}});
    let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": [volume]});
    let (_, writer) = pods.until("Succeeded", &spec).await?;
    pods.delete(&[writer]).await?;

    let mut times = Vec::new();
    for round in 0..scale.starts.div_ceil(4) {
        let name = format!("clone-{round}");
        let mut clone = claim(&name, AT_ONCE, size);
        clone["spec"]["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": "source"});
        let begin = Instant::now();
        pods.make(CLAIMS, &clone).await?;
        bound(&mut pods, &name).await?;
        times.push(begin.elapsed());
        pods.unmake(&format!("{CLAIMS}/{name}")).await?;
    }
    times.sort();
    let what = format!("a clone of {mib} MiB is bound, by reflink");
    let note = format!("shall be below 100 ms; {}", spread(&times));
    rows.push(Row::new(what, quantile(&times, 0.5).as_secs_f64() * 1e3, Unit::Milliseconds).note(note));
    Ok(())
}

async fn bound(pods: &mut Pods, name: &str) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if pods.get(&format!("{CLAIMS}/{name}")).await?["status"]["phase"] == "Bound" {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    bail!("{name} is not bound after {PATIENCE:?}")
}

/// An XFS in a file.
pub(super) struct Disk {
    mounted: PathBuf,
    _folder: tempfile::TempDir,
}

impl Disk {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("corten-disk-").tempdir_in("/var/tmp")?;
        let file = folder.path().join("disk");
        File::create(&file)?.set_len(DISK_BYTES)?;
        run(Command::new("mkfs.xfs").arg("-q").arg(&file))?;
        let mounted = folder.path().join("mounted");
        fs::create_dir(&mounted)?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&mounted))?;
        Ok(Self { mounted, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.mounted
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(self.path()));
    }
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("running {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
