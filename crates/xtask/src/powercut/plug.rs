//! What a machine is for those who pull its plug.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

pub(super) trait Machine {
    /// What gets hold of it by hand.
    fn name(&self) -> String;

    /// For bash, as root. What becomes of its streams is the caller's matter.
    fn command(&self, script: &str) -> Command;

    /// How `corten up` is called.
    fn up(&self) -> &'static str;

    /// Where the API is reached from here.
    fn server(&self) -> String;

    /// What somebody would look at besides the cluster itself: a script.
    fn look(&self) -> &'static str;

    /// So many images of which none is like another: `127.0.0.1:5000/pulled:1` and so on.
    fn fill_registry(&self, n_images: usize) -> Result<()>;

    /// Pulls the plug.
    fn cut(&mut self) -> Result<()>;

    /// Switches it on, and returns when it can be reached. `has_cluster`: Corten was set up on it.
    fn boot(&mut self, has_cluster: bool) -> Result<()>;

    /// Is there something that starts the cluster at boot?
    fn starts_at_boot(&self) -> bool;

    /// When it started, as the API writes times.
    fn booted(&self) -> Result<String>;

    /// How many times slower it is than the machine that seconds are meant for.
    fn slowness(&self) -> Result<f64>;

    /// How many times longer limits are for it: at least as many as it is slower.
    fn patience(&self) -> Result<f64> {
        self.slowness()
    }

    fn remove(self: Box<Self>) -> Result<()>;

    fn run(&self, script: &str) -> Result<Output> {
        self.command(script).stdin(Stdio::null()).output().context("running a command in the machine")
    }

    /// What it prints; an error where it fails.
    fn output(&self, script: &str) -> Result<String> {
        let output = self.run(script)?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("{script}: {}: {}", output.status, error.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }
}
