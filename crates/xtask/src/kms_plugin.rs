//! A KMS plugin for scripts: see `corten_encryption::plugin`.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use corten_encryption::plugin::Plugin;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where it listens (`kms.sock`), and is told its key (`key`) and what goes wrong (`fault`)
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    runtime.block_on(Arc::new(Plugin::new(&args.folder)).serve()).context("serving the plugin")
}
