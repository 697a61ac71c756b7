//! One thing a user can ask for, and the whole command that is made of all of them.

use std::{process::ExitCode, sync::OnceLock};

use clap::{ArgMatches, Command};

/// One thing a user can ask for.
#[derive(Clone, Copy)]
pub struct Verb {
    pub name: &'static str,
    /// One line, for the list of verbs.
    pub about: &'static str,
    /// What it does in full, shown by `--help` below `about`.
    pub long_about: &'static str,
    /// Commands a user can copy, shown at the end of `--help`.
    pub examples: &'static str,
    /// Adds its arguments.
    pub args: fn(Command) -> Command,
    /// Runs it. An error is printed once, with its causes, and ends the program with 1.
    pub run: fn(&ArgMatches) -> anyhow::Result<ExitCode>,
}

/// All verbs of the program, once it runs: for verbs that speak of the whole command (completion).
pub(crate) static ALL: OnceLock<Vec<Verb>> = OnceLock::new();

pub(crate) fn whole_command() -> Command {
    command_of(ALL.get().map(Vec::as_slice).unwrap_or_default())
}

/// The whole command, its verbs in the order of their names.
pub(crate) fn command_of(verbs: &[Verb]) -> Command {
    let mut app = Command::new("corten")
        .about("A container orchestrator that speaks the Kubernetes API, and can always say why")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true);
    let mut verbs: Vec<&Verb> = verbs.iter().collect();
    verbs.sort_by_key(|it| it.name);
    for verb in verbs {
        let command = Command::new(verb.name)
            .about(verb.about)
            .long_about(format!("{}\n\n{}", verb.about, verb.long_about))
            .after_help(format!("Examples:\n{}", verb.examples));
        app = app.subcommand((verb.args)(command));
    }
    app
}
