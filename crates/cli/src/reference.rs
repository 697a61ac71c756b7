//! The page of the reference that describes every verb, read off the table.

use std::fmt::Write as _;

use crate::{VERBS, Verb, verb::command_of};

/// All verbs in the order of their names: those of this crate, and `own` of the binary.
pub fn reference(own: &[Verb]) -> String {
    let mut verbs = [VERBS, own].concat();
    verbs.sort_by_key(|it| it.name);
    let whole = command_of(&verbs);
    let mut page = String::from("<!-- Written by `UPDATE=1 cargo test -p corten reference`. -->\n\n# Commands\n");
    for verb in &verbs {
        let Verb { name, about, long_about, examples, .. } = verb;
        let _ = write!(page, "\n## corten {name}\n\n{about}.\n\n{long_about}\n\n```\n{examples}\n```\n");
        let Some(command) = whole.find_subcommand(name) else { continue };
        page += &options(command);
        for part in command.get_subcommands() {
            let about = part.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = write!(page, "\n### corten {name} {}\n\n{about}.\n{}", part.get_name(), options(part));
        }
    }
    page
}

/// What a command takes, in the order of its help; nothing where it takes nothing.
fn options(command: &clap::Command) -> String {
    let rows: Vec<String> = command.get_arguments().filter(|it| !it.is_hide_set()).map(option).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n| option | default | what it does |\n|---|---|---|\n{}", rows.concat())
}

fn option(arg: &clap::Arg) -> String {
    let takes_value = arg.get_action().takes_values();
    let values: Vec<&str> = arg.get_value_names().into_iter().flatten().map(|it| it.as_str()).collect();
    let value = if takes_value { values.join(" ") } else { String::new() };
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long} {value}"),
        (Some(long), None) => format!("--{long} {value}"),
        (None, Some(short)) => format!("-{short} {value}"),
        (None, None) => value,
    };
    let defaults: Vec<_> = arg.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
    let default = if takes_value && !defaults.is_empty() { format!("`{}`", defaults.join(",")) } else { String::new() };
    let possible: Vec<_> = if takes_value { arg.get_possible_values() } else { Vec::new() };
    let possible: Vec<_> = possible.iter().map(|it| format!("`{}`", it.get_name())).collect();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replace('|', "\\|").replace('\n', " ");
    let possible = if possible.is_empty() { String::new() } else { format!(": {}", possible.join(", ")) };
    format!("| `{}` | {default} | {help}{possible} |\n", name.trim())
}
