//! A driver of devices for scripts: see `corten_devices::sample_driver`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use corten_devices::sample_driver::SampleDriver;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where it writes what it is asked (`log`), and is told what goes wrong (`fault`) and where to describe devices (`cdi`)
    folder: PathBuf,
    /// The kubelet's folder where plugins register
    #[arg(long, default_value = "/var/lib/kubelet/plugins_registry")]
    registry: PathBuf,
    #[arg(long, default_value = "gpu.example.com")]
    name: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    let driver = SampleDriver::new(&args.name, &args.folder);
    runtime.block_on(driver.serve(&args.registry)).context("serving the driver")
}
