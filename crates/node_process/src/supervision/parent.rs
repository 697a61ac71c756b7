//! A small process that keeps the node running where no systemd does: it starts it, waits for its end, and starts it again.
//!
//! It is told to end with SIGTERM, and then ends the node first. The node goes on without it: `corten up` gives it a new one.

use std::{
    cell::{Cell, RefCell},
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Child, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result};
use corten_machine::Process;
use rustix::{fs::Mode, process::Signal};
use tokio::signal::unix::{self, SignalKind, signal};

use super::{GAVE_UP, how_of};
use crate::{
    node_process::NodeProcess,
    node_record::{How, NodeStart, Record, back_off::Next, last_words},
};
use corten_console::output;

/// Less likely than any container to be killed for want of memory, as a kubelet.
const OOM_SCORE: &str = "-999";

/// Keeps the node running until it ends in good order, is told to end, or fails too often.
pub fn watch(node: &NodeProcess, args: &[String]) -> Result<ExitCode> {
    // The node inherits both. Without CAP_SYS_RESOURCE the kernel refuses the first.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let _lock = node.claim_supervision()?;
    // Asked for now: later the program may have been replaced, and another file has its name.
    let program = std::env::current_exe().context("finding this program")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(async {
        let signals = Signals::listen()?;
        Parent { node, args, program, signals, memory: RefCell::default(), is_unsaved: Cell::default() }.run().await
    })
}

struct Parent<'a> {
    node: &'a NodeProcess,
    args: &'a [String],
    program: PathBuf,
    signals: Signals,
    /// What was last noted: a file that is lost or torn shall not keep the node from being started again.
    memory: RefCell<Record>,
    /// The disk had no room for it: a node that fails there shall not be started for ever.
    is_unsaved: Cell<bool>,
}

/// The node that is waited for.
struct WatchedNode {
    process: Process,
    begun: NodeStart,
    /// None for one that an earlier parent started.
    child: Option<Child>,
}

impl Parent<'_> {
    async fn run(mut self) -> Result<ExitCode> {
        loop {
            let next = match self.begin() {
                Ok(Some(watched)) => {
                    let was_told = self.wait(&watched).await?;
                    let next = self.note_end(watched);
                    if was_told { None } else { next }
                }
                Ok(None) => {
                    self.say("WARN", "a node runs that was started in the foreground: it is not looked after");
                    return Ok(ExitCode::SUCCESS);
                }
                Err(error) => Some(self.change(|it| it.note_no_start(format!("{error:#}"), output::now()))),
            };
            let rest = match next {
                None => return Ok(self.end()),
                Some(Next::GiveUp) => {
                    self.say("ERROR", &super::gave_up(&self.record()));
                    return Ok(ExitCode::from(GAVE_UP));
                }
                Some(Next::RestartAfter(rest)) => rest,
            };
            self.say("WARN", &super::will_restart(&self.record(), rest));
            if self.told_within(rest).await {
                return Ok(self.end());
            }
        }
    }

    /// Takes over the node that runs, or starts one. None where it is not ours.
    fn begin(&self) -> Result<Option<WatchedNode>> {
        if let Some((pid, process)) = self.node.process()? {
            if !self.node.is_started_by_up(pid) {
                return Ok(None);
            }
            let log_from = last_words::end_of(&self.node.log_path());
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let begun = match self.record().begun.filter(|it| it.is_process(pid)) {
                Some(begun) => {
                    self.change(|_| ());
                    begun
                }
                None => self.note_begin(pid, log_from),
            };
            return Ok(Some(WatchedNode { process, begun, child: None }));
        }
        let log_from = last_words::end_of(&self.node.log_path());
        let Some(child) = self.node.start(&self.program, self.args)? else { return Ok(None) };
        let begun = self.note_begin(child.id(), log_from);
        let process = Process::find(rustix::process::Pid::from_child(&child)).context("looking after the node")?;
        Ok(Some(WatchedNode { process, begun, child: Some(child) }))
    }

    fn note_begin(&self, pid: u32, log_from: u64) -> NodeStart {
        let now = output::now();
        self.change(|it| it.note_begin(pid, log_from, now))
    }

    /// Waits for its end, and passes on what this process is told. Was it told to end?
    async fn wait(&mut self, watched: &WatchedNode) -> Result<bool> {
        let mut was_told = false;
        let ended = watched.process.ended();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                ended = &mut ended => {
                    ended.context("waiting for the node")?;
                    return Ok(was_told);
                }
                told = self.signals.told() => {
                    was_told |= told == Signal::TERM;
                    watched.process.signal(told);
                }
            }
        }
    }

    /// What follows; none where it ended in good order.
    fn note_end(&self, watched: WatchedNode) -> Option<Next> {
        let status = watched.child.map(|mut it| it.wait());
        let how = match status {
            Some(Ok(status)) => how_of(status),
            Some(Err(_)) | None => How::Unseen,
        };
        let words = last_words::of(&self.node.log_path(), watched.begun.log_from);
        self.change(|it| it.note_end_of(watched.begun, how, words, output::now()))
    }

    async fn told_within(&mut self, rest: Duration) -> bool {
        let told = async {
            // Without a node there is nothing to drain.
            while self.signals.told().await != Signal::TERM {}
        };
        tokio::time::timeout(rest, told).await.is_ok()
    }

    fn end(&self) -> ExitCode {
        self.change(|it| it.restart_at = None);
        self.node.forget_supervision();
        ExitCode::SUCCESS
    }

    fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let mut record = self.record();
        let answer = change(&mut record);
        let saved = record.save(&self.node.layout.data);
        self.is_unsaved.set(saved.is_err());
        self.memory.replace(record);
        answer
    }

    fn record(&self) -> Record {
        let saved = if self.is_unsaved.get() { None } else { Record::find(&self.node.layout.data) };
        saved.unwrap_or_else(|| self.memory.borrow().clone())
    }

    /// Into the node's log, in the form of its lines. Opened each time: it may have been put aside.
    fn say(&self, level: &str, what: &str) {
        let line = super::log_line(level, what);
        let _ = corten_machine::open_log(&self.node.log_path()).and_then(|mut it| it.write_all(line.as_bytes()));
    }
}

/// What this process is told, as what the node is to be told.
struct Signals {
    term: unix::Signal,
    int: unix::Signal,
    hangup: unix::Signal,
    drain: unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("listening for signals");
        Ok(Self {
            term: listen(SignalKind::terminate())?,
            int: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            drain: listen(SignalKind::user_defined1())?,
        })
    }

    async fn told(&mut self) -> Signal {
        tokio::select! {
            _ = self.term.recv() => Signal::TERM,
            _ = self.int.recv() => Signal::TERM,
            _ = self.hangup.recv() => Signal::TERM,
            _ = self.drain.recv() => Signal::USR1,
        }
    }
}

#[cfg(test)]
mod tests;
