//! `corten version`: which Corten this is, and which Kubernetes it speaks.

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, Command};
use serde::Serialize;

use crate::Verb;
use corten_console::output::{self, Format};

pub(crate) const VERB: Verb = Verb {
    name: "version",
    about: "Print the version of this program and of the Kubernetes API it speaks",
    long_about: "Asks no server: `kubectl version` shows what a running cluster is.",
    examples: "  corten version\n  corten version -o json",
    args,
    run,
};

/// The release of Kubernetes whose API this program speaks.
const KUBERNETES: &str = "v1.37";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    kubernetes: &'static str,
    platform: String,
}

fn args(command: Command) -> Command {
    output::args(command)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let version = Version { version: env!("CARGO_PKG_VERSION"), kubernetes: KUBERNETES, platform };
    match output::format(matches) {
        Format::Json => output::json(&version)?,
        Format::Text => output::text(&format!(
            "corten {} ({}), Kubernetes API {}\n",
            version.version, version.platform, version.kubernetes
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}
