//! A CSI driver for scripts: see `corten_volumes::SampleDriver`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use corten_volumes::{SampleDriver, SampleSettings};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where it keeps its volumes and what it was asked (`calls`), and is told what goes wrong (`faults`)
    folder: PathBuf,
    /// Where it listens: a socket in a node's folder `plugins_registry`
    #[arg(long)]
    socket: PathBuf,
    #[arg(long, default_value = "sample.csi.corten.dev")]
    name: String,
    /// Its name for this node
    #[arg(long, default_value = "node-1")]
    node: String,
    /// Other nodes, on which others of it have the same folder
    #[arg(long, value_delimiter = ',')]
    others: Vec<String>,
    /// Where it is, with others of it: its volumes are everywhere there, and not on its node alone
    #[arg(long)]
    zone: Option<String>,
    /// What it does not offer: controller, attach, attached, snapshot, clone, expand, capacity, modify, list, list-snapshots, stage, node-expand, stats, condition, group, topology
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// What it has for all volumes together, in bytes
    #[arg(long, default_value_t = 10 << 30)]
    capacity: u64,
    /// It makes folders where it should mount
    #[arg(long)]
    no_mounts: bool,
    /// It is of the time of CSI 1.5, and refuses whatever came later
    #[arg(long)]
    csi_1_5: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let settings = SampleSettings {
        folder: args.folder,
        socket: args.socket,
        name: args.name,
        node: args.node,
        others: args.others.into_iter().collect(),
        zone: args.zone,
        without: args.without.into_iter().collect(),
        capacity: args.capacity,
        mounts: !args.no_mounts,
        is_old: args.csi_1_5,
    };
    let driver = SampleDriver::new(settings).context("opening what the driver has")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    runtime.block_on(Arc::new(driver).serve()).context("serving the driver")
}
