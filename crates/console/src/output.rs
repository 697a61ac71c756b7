//! How verbs print: text for people, JSON for programs, colour only on a terminal, and a closed pipe is no error.

use std::io::{ErrorKind, IsTerminal as _, Write as _, stdout};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use corten_meta::Time;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// Adds `-o`.
pub fn args(command: Command) -> Command {
    let output = Arg::new("output").short('o').long("output").value_name("FORMAT");
    command.arg(output.value_parser(["text", "json"]).default_value("text").help("How to print the answer"))
}

pub fn format(matches: &ArgMatches) -> Format {
    match matches.get_one::<String>("output").map(String::as_str) {
        Some("json") => Format::Json,
        _ => Format::Text,
    }
}

/// Was JSON asked for? Not every verb has the option.
pub fn is_json(matches: &ArgMatches) -> bool {
    matches.try_get_one::<String>("output").ok().flatten().is_some_and(|it| it == "json")
}

/// # Errors
/// Standard output cannot be written.
pub fn json(value: &impl Serialize) -> Result<()> {
    text(&(serde_json::to_string_pretty(value).context("writing JSON")? + "\n"))
}

/// # Errors
/// Standard output cannot be written. A reader that has gone (`| head`) is no error.
pub fn text(text: &str) -> Result<()> {
    match stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("writing to standard output"),
    }
}

/// People see colours on a terminal that has not asked for none (<https://no-color.org>).
pub fn colour() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}

/// As many columns as `COLUMNS` says, else what fits the screens people have.
pub fn width() -> usize {
    const WIDTH: usize = 100;
    const NARROWEST: usize = 60;
    let said = std::env::var("COLUMNS").ok().and_then(|it| it.parse::<usize>().ok());
    said.map_or(WIDTH, |it| it.max(NARROWEST))
}

pub fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// As many rows as the terminal has, and `LINES` where that is not known; one is for the prompt.
pub fn height() -> usize {
    const HEIGHT: usize = 24;
    const LOWEST: usize = 12;
    let size = rustix::termios::tcgetwinsize(stdout()).ok().map(|it| usize::from(it.ws_row)).filter(|it| *it > 0);
    let said = || std::env::var("LINES").ok().and_then(|it| it.parse::<usize>().ok());
    size.or_else(said).map_or(HEIGHT, |it| it.max(LOWEST)) - 1
}

/// Characters that do something to a terminal, or to the order in which it shows what stands beside them (Unicode's bidirectional
/// controls): what others wrote is shown without them.
pub fn steers_a_terminal(it: char) -> bool {
    const BIDIRECTIONAL: [char; 12] = [
        '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
        '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    it.is_control() || BIDIRECTIONAL.contains(&it)
}

pub fn now() -> Time {
    Time(jiff::Timestamp::now())
}
