//! A device plugin for scripts: see `corten_devices::sample`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use corten_devices::sample::SamplePlugin;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where it is told its devices (`devices`: `ID`, `ID unhealthy`, `ID healthy NUMA-NODE`) and what goes wrong (`fault`)
    folder: PathBuf,
    /// The kubelet's folder of device plugins
    #[arg(long, default_value = "/var/lib/kubelet/device-plugins")]
    plugins: PathBuf,
    #[arg(long, default_value = "example.com/fake")]
    resource: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    let plugin = SamplePlugin::new(&args.resource, &args.folder, &args.plugins);
    runtime.block_on(plugin.serve()).context("serving the plugin")
}
