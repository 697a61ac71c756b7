//! The node as a service of systemd: what comes before it, in its own process, and what comes after it.

use std::{
    env,
    os::unix::process::CommandExt as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_machine::notify_service_manager;

use super::GAVE_UP;
use crate::{
    node_process::NodeProcess,
    node_record::{How, Record, back_off::Next, last_words, signal_number},
};
use corten_console::output;

/// What is to be done before the node.
#[derive(Debug, PartialEq, Eq)]
enum Before {
    GiveUp,
    Rest(Duration),
}

/// Rests as long as the failures before demand, and becomes the node. Where it is given up, systemd is told once: whoever
/// starts the unit after that starts over.
pub fn start_as_service(node: &NodeProcess, args: &[String]) -> Result<ExitCode> {
    let data = &node.layout.data;
    match Record::change(data, |it| before(it, node)) {
        Before::GiveUp => {
            notify_service_manager("STATUS=given up: it failed too often; `corten why` says more");
            return Ok(ExitCode::from(GAVE_UP));
        }
        Before::Rest(Duration::ZERO) => {}
        Before::Rest(rest) => {
            let said = super::will_restart(&Record::load(data), rest);
            notify_service_manager(&format!("STATUS={said}"));
            eprint!("{}", super::log_line("WARN", &said));
            // SIGTERM ends this process: then nothing is started.
            let end = Instant::now() + rest;
            while let Some(left) = end.checked_duration_since(Instant::now()).filter(|it| !it.is_zero()) {
                std::thread::park_timeout(left);
            }
        }
    }
    notify_service_manager("STATUS=starting");
    let log_from = last_words::end_of(&node.log_path());
    Record::change(data, |it| it.note_begin(std::process::id(), log_from, output::now()));
    let program = env::current_exe().context("finding this program")?;
    let error = node.command(&program, args).exec();
    Err(error).with_context(|| format!("starting {}", program.display()))
}

fn before(record: &mut Record, node: &NodeProcess) -> Before {
    // Where systemd could not tell of it.
    record.note_unseen(&node.layout.data, output::now());
    match &mut record.given_up {
        Some(given_up) if !given_up.told => {
            given_up.told = true;
            Before::GiveUp
        }
        Some(_) => {
            record.start_over(&node.layout.run, record.options.clone(), output::now());
            Before::Rest(Duration::ZERO)
        }
        None => Before::Rest(record.rest(output::now())),
    }
}

/// Notes how the node ended, by what systemd says of it in the environment (`ExecStopPost` in `systemd.exec(5)`).
pub fn note_end_of_service(node: &NodeProcess) -> Result<ExitCode> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let how = how(&variable("EXIT_CODE"), &variable("EXIT_STATUS"));
    if how == How::Exited(i32::from(GAVE_UP)) {
        return Ok(ExitCode::SUCCESS);
    }
    // Of signals that the unit has it start again after, systemd says so, too.
    let is_success = variable("SERVICE_RESULT") == "success" && !how.is_failure();
    let next = note_end(node, how, is_success);
    if next == Some(Next::GiveUp) {
        eprint!("{}", super::log_line("ERROR", &super::gave_up(&Record::load(&node.layout.data))));
    }
    // A log that has grown large is put aside before the next start.
    drop(node.open_log()?);
    Ok(ExitCode::SUCCESS)
}

/// What follows; none where it ended in good order.
fn note_end(node: &NodeProcess, how: How, is_success: bool) -> Option<Next> {
    let (data, log) = (&node.layout.data, node.log_path());
    let is_lost = Record::find(data).is_none();
    Record::change(data, |it| {
        if is_lost {
            // A failure counts though nothing is left of when it began.
            it.note_begin(0, 0, output::now());
        }
        let words = it.begun.as_ref().map(|it| last_words::of(&log, it.log_from)).unwrap_or_default();
        let next = it.note_end(how, words, output::now());
        // Then it starts no more by itself.
        if is_success {
            it.restart_at = None;
        }
        next
    })
}

fn how(code: &str, status: &str) -> How {
    match code {
        "exited" => status.parse().map_or(How::Unseen, How::Exited),
        "killed" | "dumped" => signal_number(status).map_or(How::Unseen, How::Killed),
        _ => How::Unseen,
    }
}

#[cfg(test)]
mod tests;
