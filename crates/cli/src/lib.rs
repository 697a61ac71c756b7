//! The command line of Corten: one table of verbs, and what every verb needs to become a program.
//!
//! A verb is a file in `verbs/` and a row here; help, completion and the reference page are read off the table.

mod command_line;
mod connection;
mod failure;
mod node_name;
pub mod node_options;
mod node_process;
mod output;
mod progress;
mod supervision;
mod turn;
mod verbs;
mod why;

use std::{process::ExitCode, sync::OnceLock};

use clap::{ArgMatches, Command};

pub use node_name::NodeName;
pub use node_process::NodeClaim;

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

/// All verbs of this crate, in the order of their names.
pub const VERBS: &[Verb] = &[
    verbs::completion::VERB,
    verbs::down::VERB,
    verbs::reset::VERB,
    verbs::supervise::VERB,
    verbs::up::VERB,
    verbs::version::VERB,
    verbs::why::VERB,
];

/// Where `corten up` keeps the administrator's kubeconfig, unless told otherwise.
pub const ADMIN_KUBECONFIG: &str = "/var/lib/corten/admin.kubeconfig";

/// The verbs of the binary, for the verbs here that speak of the whole command (completion).
static OWN: OnceLock<Vec<Verb>> = OnceLock::new();

fn whole_command() -> Command {
    command(OWN.get().map(Vec::as_slice).unwrap_or_default())
}

/// The whole command: the verbs of this crate and those of the binary, in the order of their names.
pub fn command(own: &[Verb]) -> Command {
    let mut app = Command::new("corten")
        .about("A container orchestrator that speaks the Kubernetes API, and can always say why")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true);
    let mut verbs: Vec<&Verb> = VERBS.iter().chain(own).collect();
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

/// Runs the program: `own` are the verbs that only the binary can give hands to (`node`, `server`).
pub fn main(own: &[Verb]) -> ExitCode {
    OWN.get_or_init(|| own.to_vec());
    let matches = whole_command().get_matches();
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::from(2) };
    let Some(verb) = VERBS.iter().chain(own).find(|it| it.name == name) else { return ExitCode::from(2) };
    (verb.run)(matches).unwrap_or_else(|error| {
        let (text, json) = failure::told(&error, FAILED);
        if output::is_json(matches) {
            // Where it cannot be written, nobody reads it.
            let _unread = output::json(&json);
        }
        eprintln!("error: {text}");
        ExitCode::from(FAILED)
    })
}

const FAILED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_order_explained_and_well_formed() {
        assert!(VERBS.is_sorted_by_key(|it| it.name), "verbs are kept in the order of their names");
        for verb in VERBS {
            assert!(!verb.about.ends_with('.') && !verb.long_about.is_empty(), "{}", verb.name);
            assert!(verb.examples.contains("corten "), "{} has examples", verb.name);
        }
        command(&[]).debug_assert();
    }
}
