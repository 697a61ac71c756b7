//! Keeps the node of `corten up` running: by systemd where it is in charge of the machine, else by a small parent of its own.
//!
//! ```text
//!            fails                 pause is over
//!  running ─────────▶ waiting ─────────────────────▶ running
//!     │                  │ too often within too short a time
//!     │ told to end      ▼
//!     └────────▶ ended   given up, until `corten up` starts over
//! ```
//!
//! Both keep the same [`Record`], and [`back_off`] decides for both. Whoever looks after the node can be killed, too: the
//! node goes on, and the next `corten up` gives it a new one.

mod parent;
mod service;
mod systemd;

use std::{
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_meta::{MicroTime, Time};

use crate::{
    command_line::CommandLine,
    node_process::NodeProcess,
    node_record::{How, Record, back_off},
};
use corten_console::output;
use systemd::Unit;

pub use parent::watch;
pub use service::{note_end_of_service, start_as_service};

/// Ends whoever gives a node up: systemd is told by it not to start again (`EX_UNAVAILABLE` of `sysexits.h`).
pub const GAVE_UP: u8 = 69;

/// A start of the node, and what looks after it.
pub struct Started {
    keeper: Keeper,
    /// Of this start: the next one is noted at another time.
    noted: Option<MicroTime>,
}

enum Keeper {
    Unit { unit: Unit, looked: Instant },
    Parent(Child),
}

/// systemd is asked no more often.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

impl Started {
    /// Whatever the node has said since then is of this start.
    pub fn begun(&self) -> Option<Time> {
        self.noted.as_ref().map(|it| Time(it.0))
    }

    /// Is there still anything that would start the node?
    pub fn is_alive(&mut self) -> Result<bool> {
        match &mut self.keeper {
            Keeper::Unit { looked, .. } if looked.elapsed() < LOOK_PERIOD => Ok(true),
            Keeper::Unit { unit, looked } => {
                *looked = Instant::now();
                Ok(unit.is_alive())
            }
            Keeper::Parent(child) => Ok(child.try_wait().context("looking after the parent of the node")?.is_none()),
        }
    }

    /// Has another command started the node since then? What runs is not this start's any more.
    pub fn is_replaced(&self, node: &NodeProcess) -> bool {
        Record::find(&node.layout.data).is_some_and(|it| it.counted_since != self.noted)
    }
}

/// Starts the node with these arguments, and what looks after it. None where another start comes first.
pub fn start(node: &NodeProcess, args: &[String], options: Vec<String>) -> Result<Option<Started>> {
    let program = std::env::current_exe().context("finding this program")?;
    drop(node.open_log()?);
    let start_over = || {
        Record::change(&node.layout.data, |it| {
            it.note_unseen(&node.layout.data, output::now());
            it.start_over(&node.layout.run, options, output::now());
            it.counted_since
        })
    };
    if corten_machine::systemd_is_in_charge() {
        let noted = start_over();
        let unit = Unit::of(node);
        unit.start(node, &program, args)?;
        return Ok(Some(Started { keeper: Keeper::Unit { unit, looked: Instant::now() }, noted }));
    }
    let Some(lock) = node.supervision_lock()? else { return Ok(None) };
    let noted = start_over();
    node.start_parent(&program, lock, args).map(|it| Some(Started { keeper: Keeper::Parent(it), noted }))
}

/// Is a node about to be started that does not run yet? Not one that has failed and rests. What the record says of a process that
/// began does not count: a start is noted before it takes its lock, and an end after that lock is gone.
pub fn is_starting(node: &NodeProcess) -> Result<bool> {
    let record = Record::load(&node.layout.data);
    let rests = record.restart_at.is_some() || record.given_up.is_some();
    Ok(!rests && is_looked_after(node)?)
}

/// Would anybody start the node again?
pub fn is_looked_after(node: &NodeProcess) -> Result<bool> {
    let unit = Unit::of(node);
    Ok((unit.exists() && unit.is_alive()) || node.has_parent()?)
}

/// Gives a node that runs a parent where its own was killed. Was there need?
pub fn resume(node: &NodeProcess) -> Result<bool> {
    // One that is just ending may have lost its number: then there is nothing to look after.
    let Ok(Some((pid, _))) = node.process() else { return Ok(false) };
    if !node.is_started_by_up(pid) || node.has_parent()? {
        return Ok(false);
    }
    // Without its words it would be started again with none: it is ending, too.
    let Ok(running) = CommandLine::of(pid) else { return Ok(false) };
    let args = running.options();
    let Some(lock) = node.supervision_lock()? else { return Ok(false) };
    let program = std::env::current_exe().context("finding this program")?;
    node.start_parent(&program, lock, &args)?;
    Ok(true)
}

/// Ends first whoever would start the node again, and the node with it.
pub fn end(node: &NodeProcess, within: Duration) -> Result<()> {
    let unit = Unit::of(node);
    if unit.exists() {
        unit.stop()?;
        unit.remove()?;
    }
    node.end_parent(within)
}

fn how_of(status: ExitStatus) -> How {
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, Some(signal)) => How::Killed(signal),
        (None, None) => How::Unseen,
    }
}

fn last_failure(record: &Record) -> String {
    record.last_counted_failure().map_or_else(|| "failed".into(), |it| it.how.words())
}

fn will_restart(record: &Record, rest: Duration) -> String {
    let (n, seconds) = (record.failures().len(), (rest + Duration::from_millis(999)).as_secs());
    format!("corten {}; it starts again in {seconds} s (failure {n} since `corten up`)", last_failure(record))
}

fn gave_up(record: &Record) -> String {
    let minutes = back_off::WINDOW.as_secs() / 60;
    format!(
        "corten {}; it is given up, because it failed too often within {minutes} minutes. Containers go on. \
         `corten why` says more, `corten up` starts over",
        last_failure(record)
    )
}

/// In the form of the log's other lines.
fn log_line(level: &str, what: &str) -> String {
    let Time(now) = output::now();
    format!("{} {level:>5} corten_cli::supervision: {what}\n", now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use corten_machine::Layout;

    use super::*;

    #[test]
    fn a_start_is_under_way_from_its_note_to_its_lock() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
        for folder in [&node.layout.data, &node.layout.run] {
            std::fs::create_dir_all(folder).expect("made");
        }
        let is_starting = || is_starting(&node).expect("looked");
        let noted = |change: fn(&mut Record)| Record::change(&node.layout.data, change);
        let begin = |it: &mut Record| {
            it.start_over(Path::new("/run/corten"), Vec::new(), output::now());
            it.note_begin(std::process::id(), 0, output::now());
        };
        noted(begin);
        assert!(!is_starting(), "nobody would start it");
        let parent = node.supervision_lock().expect("locked").expect("free");
        assert!(is_starting(), "it is noted, and has no lock yet");
        noted(|it| it.restart_at = Some(output::now().micro()));
        assert!(!is_starting(), "it rests after a failure");
        noted(begin);
        drop(parent);
        assert!(!is_starting(), "its parent has ended");
    }
}
