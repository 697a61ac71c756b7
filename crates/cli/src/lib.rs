//! The command line of Corten: one table of verbs, and what every verb needs to become a program.
//!
//! A verb is a file in `verbs/` and a row here; help, completion and the reference page are read off the table.

mod cluster_place;
mod connection;
mod own_kubeconfig;
mod reference;
mod verb;
mod verbs;
mod why;

use std::{ffi::OsString, process::ExitCode};

use clap::Command;
use corten_console::failure;
use corten_node_process::node_record;

pub use connection::{ADMIN_KUBECONFIG, NODE_KUBECONFIG};
pub use corten_console::failure::Failure;
pub use corten_console::output;
pub use corten_node_process::node_folders::SNAPSHOTS_MADE;
pub use corten_node_process::node_name::NodeName;
pub use corten_node_process::node_process::{NodeClaim, command_on, up_with};
pub use corten_records::{control_plane_record, etcd_member};
pub use reference::reference;
pub use verb::Verb;
pub use verbs::{
    nodes,
    token::control_plane::{
        ETCD_AUTHORITY_KEY as SHARED_ETCD_AUTHORITY_KEY, ETCD_CLUSTER as SHARED_ETCD_CLUSTER, SECRET as SHARED_SECRET,
    },
    up::{VERB as UP, node_line, restart_args, start_joined_node},
};

use verb::{ALL, command_of, whole_command};

/// All verbs of this crate, in the order of their names.
pub const VERBS: &[Verb] = &[
    verbs::certs::VERB,
    verbs::completion::VERB,
    verbs::down::VERB,
    verbs::reset::VERB,
    verbs::supervise::VERB,
    verbs::token::VERB,
    verbs::version::VERB,
    verbs::volume::VERB,
    verbs::why::VERB,
];

/// The whole command: the verbs of this crate and those of the binary.
pub fn command(own: &[Verb]) -> Command {
    command_of(&[VERBS, own].concat())
}

/// Runs the program: `own` are the verbs that only the binary can give hands to (`node`, `server`).
pub fn main(own: &[Verb]) -> ExitCode {
    ALL.get_or_init(|| [VERBS, own].concat());
    let matches = match whole_command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return misused(&error),
    };
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::from(MISUSED) };
    let Some(verb) = VERBS.iter().chain(own).find(|it| it.name == name) else { return ExitCode::from(MISUSED) };
    (verb.run)(matches).unwrap_or_else(|error| {
        let (text, json) = failure::told(&error, FAILED);
        if output::is_json(matches) {
            // Where it cannot be written, nobody reads it.
            let _unread = output::json(&json);
        }
        eprintln!("error: {text}");
        let begins_anew = error.downcast_ref::<BeginsAnew>().is_some();
        ExitCode::from(if begins_anew { u8::try_from(node_record::BEGINS_ANEW).unwrap_or(FAILED) } else { FAILED })
    })
}

/// A node that ends because a new process can do what it cannot; whoever looks after it starts it again.
#[derive(Debug)]
pub struct BeginsAnew(pub String);

impl std::fmt::Display for BeginsAnew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BeginsAnew {}

/// What was asked for cannot be read, or it is help that was asked for.
fn misused(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(MISUSED);
    if error.use_stderr() && asks_for_json(std::env::args_os().skip(1)) {
        // Where it cannot be written, nobody reads it.
        let _unread = output::json(&failure::misused(error, code));
    }
    let _unread = error.print();
    ExitCode::from(code)
}

/// As far as that can be told of arguments that are not right: `-o json`, `-ojson`, `--output=json`.
fn asks_for_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.take_while(|it| it != "--").collect();
    let joined = args.iter().any(|it| ["-ojson", "-o=json", "--output=json"].iter().any(|form| it == form));
    joined || args.windows(2).any(|it| (it[0] == "-o" || it[0] == "--output") && it[1] == "json")
}

const FAILED: u8 = 1;
const MISUSED: u8 = 2;

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

    #[test]
    fn whoever_asks_for_json_is_told_in_json() {
        for (line, is_json) in [
            ("why -o json --bogus", true),
            ("why --bogus -ojson", true),
            ("why --output=json a b c", true),
            ("why --output json", true),
            ("why -o text", false),
            ("why json -o", false),
            ("why -- -o json", false),
        ] {
            assert_eq!(asks_for_json(line.split(' ').map(OsString::from)), is_json, "{line}");
        }
        let error =
            command(&[]).try_get_matches_from(["corten", "why", "--bogus", "-o", "json"]).expect_err("no option");
        let json = serde_json::to_value(failure::misused(&error, MISUSED)).expect("JSON");
        assert_eq!((&json["kind"], &json["code"]), (&"Error".into(), &2.into()));
        let message = json["message"].as_str().unwrap_or_default();
        assert!(message.contains("--bogus") && !message.contains('\n') && !message.starts_with("error"), "{message}");
        assert_eq!(json["next"], "corten why --help");
    }
}
