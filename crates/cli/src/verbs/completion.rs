//! `corten completion SHELL`: the script that makes the shell complete verbs and options.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::{Verb, verb::whole_command};
use corten_console::output;

pub(crate) const VERB: Verb = Verb {
    name: "completion",
    about: "Print the completion script for a shell",
    long_about: "Made from the same table as the help, so it knows every verb and option of this very program.",
    examples: "  corten completion bash > /etc/bash_completion.d/corten\n  source <(corten completion zsh)",
    args,
    run,
};

fn args(command: Command) -> Command {
    let shell = Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("The shell to complete for");
    command.arg(shell)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let shell: &Shell = matches.get_one("shell").context("clap requires a shell")?;
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut whole_command(), "corten", &mut script);
    output::text(&String::from_utf8(script).context("clap writes UTF-8")?)?;
    Ok(ExitCode::SUCCESS)
}
