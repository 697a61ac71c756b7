//! The life of a node, kept in the data folder: when it began, how it ended, and what it last said.
//!
//! Whoever looks after the node writes here, and `corten why` reads here what no API server can tell any more.

pub mod back_off;
pub mod last_words;
mod signs_of_life;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use corten_meta::{MicroTime, Time};
use serde::{Deserialize, Serialize};

use crate::node_folders::log_in;
use back_off::Next;

/// More ends than these are not kept.
const ENDS_MAX: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Where the lock is that tells whether the node runs.
    pub run_dir: PathBuf,
    /// What `corten up` was given.
    pub options: Vec<String>,
    /// Ends before this do not count any more: `corten up` starts over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_since: Option<MicroTime>,
    /// The process that runs; also one that ended, and nobody saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<NodeStart>,
    /// The oldest first.
    pub ends: Vec<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_at: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<GivenUp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStart {
    pub pid: u32,
    /// The machine's run it belongs to; empty where that was not noted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    pub at: MicroTime,
    /// Where its log begins in the file.
    pub log_from: u64,
    /// It serves the API since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves_since: Option<MicroTime>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    pub pid: u32,
    pub begun: MicroTime,
    pub at: MicroTime,
    pub how: How,
    /// It served the API before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_served: bool,
    /// The last lines of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// With this code; 0 where it was told to end.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    NotStarted(String),
    /// Whoever looked after it ended, too.
    Unseen,
    /// The machine went down under it: power was cut, or its kernel failed.
    MachineEnded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenUp {
    pub at: MicroTime,
    /// systemd has been told, and starts it no more by itself.
    pub told: bool,
}

impl NodeStart {
    /// Is it the process that has this number now? Numbers come again, after a boot above all.
    pub fn is_process(&self, pid: u32) -> bool {
        self.pid == pid && !self.is_of_earlier_boot()
    }

    fn is_of_earlier_boot(&self) -> bool {
        !self.boot_id.is_empty() && corten_machine::boot_id().is_ok_and(|it| it != self.boot_id)
    }

    fn ended(self, at: MicroTime, how: How, words: Vec<String>) -> End {
        End { pid: self.pid, begun: self.at, at, how, has_served: self.serves_since.is_some(), words }
    }
}

impl End {
    /// What happened while no process ran.
    fn without_process(at: MicroTime, how: How) -> Self {
        Self { pid: 0, begun: at, at, how, has_served: false, words: Vec::new() }
    }

    pub fn is_failure(&self) -> bool {
        self.how.is_failure()
    }
}

/// How a node ends that a new process mends: the disk of its store is back, or the machine has another address (`EX_TEMPFAIL` of
/// `sysexits.h`). It counts towards giving up, as a failure does.
pub const BEGINS_ANEW: i32 = 75;

impl How {
    /// Who ends by one of these signals was told to, before it could listen. A terminal that goes, or a reader, tells nobody to
    /// end a node: the unit says so to systemd, which counts both as told. Of the end of the machine nobody here is to blame.
    pub fn is_failure(&self) -> bool {
        const INT: i32 = 2;
        const TERM: i32 = 15;
        !matches!(self, Self::Exited(0) | Self::Killed(INT | TERM) | Self::MachineEnded)
    }

    /// As what follows "corten".
    pub fn words(&self) -> String {
        const PANIC: i32 = 101;
        match self {
            Self::Exited(0) => "was told to end".into(),
            Self::Exited(PANIC) => format!("ended with exit code {PANIC}: it panicked"),
            Self::Exited(BEGINS_ANEW) => "ended to begin anew".into(),
            Self::Exited(code) => format!("ended with exit code {code}"),
            Self::Killed(9) => "was killed by SIGKILL: by somebody, or by the kernel for want of memory".into(),
            Self::Killed(6) => "aborted (SIGABRT)".into(),
            Self::Killed(signal) => format!("was ended by {}", signal_name(*signal)),
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Unseen => "ended, and nobody saw how".into(),
            Self::MachineEnded => "ended with the machine, which went down".into(),
        }
    }
}

const SIGNALS: [(i32, &str); 16] = [
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (5, "TRAP"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (9, "KILL"),
    (10, "USR1"),
    (11, "SEGV"),
    (12, "USR2"),
    (13, "PIPE"),
    (15, "TERM"),
    (24, "XCPU"),
    (31, "SYS"),
];

fn signal_name(number: i32) -> String {
    let known = SIGNALS.iter().find(|it| it.0 == number);
    known.map_or_else(|| format!("signal {number}"), |it| format!("SIG{}", it.1))
}

/// The number of `KILL`, or of `9`.
pub fn signal_number(name: &str) -> Option<i32> {
    let known = SIGNALS.iter().find(|it| it.1 == name.trim_start_matches("SIG"));
    known.map(|it| it.0).or_else(|| name.parse().ok())
}

impl Record {
    fn path(data: &Path) -> PathBuf {
        data.join("supervision.json")
    }

    /// None where nothing was ever noted, or it may not be read.
    pub fn find(data: &Path) -> Option<Self> {
        let bytes = fs::read(Self::path(data)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// A record that is torn is begun anew: a node is not kept from starting by it.
    pub fn load(data: &Path) -> Self {
        Self::find(data).unwrap_or_default()
    }

    /// Readers see the record of before or this one, whole.
    pub fn save(&self, data: &Path) -> io::Result<()> {
        corten_machine::write_whole(&Self::path(data), 0o600, &serde_json::to_vec_pretty(self)?)
    }

    /// Loads, changes and saves. An error is no reason to stop a node, and is told in its log.
    pub fn change<T>(data: &Path, change: impl FnOnce(&mut Self) -> T) -> T {
        let mut this = Self::load(data);
        let answer = change(&mut this);
        if let Err(error) = this.save(data) {
            eprintln!("{} cannot be written: {error}", Self::path(data).display());
        }
        answer
    }

    /// `corten up`: what was is not held against the new start.
    pub fn start_over(&mut self, run_dir: &Path, options: Vec<String>, now: Time) {
        run_dir.clone_into(&mut self.run_dir);
        self.options = options;
        self.counted_since = Some(now.micro());
        (self.restart_at, self.given_up) = (None, None);
    }

    pub fn note_begin(&mut self, pid: u32, log_from: u64, now: Time) -> NodeStart {
        let boot_id = corten_machine::boot_id().unwrap_or_default();
        (self.restart_at, self.given_up) = (None, None);
        self.begun.insert(NodeStart { pid, boot_id, at: now.micro(), log_from, serves_since: None }).clone()
    }

    /// The process itself says that it serves the API.
    pub fn note_serving(&mut self, pid: u32, now: Time) {
        if let Some(begun) = self.begun.as_mut().filter(|it| it.is_process(pid)) {
            begun.serves_since = Some(now.micro());
        }
    }

    /// Notes the end of what runs; none follows where it was told to end, or this end is known.
    pub fn note_end(&mut self, how: How, words: Vec<String>, now: Time) -> Option<Next> {
        let begun = self.begun.take()?;
        let end = begun.ended(now.micro(), how, words);
        let is_failure = end.is_failure();
        self.push(end);
        is_failure.then(|| self.judge(now))
    }

    /// Notes the end of a process that was seen to begin, whatever has become of the file meanwhile.
    pub fn note_end_of(&mut self, begun: NodeStart, how: How, words: Vec<String>, now: Time) -> Option<Next> {
        let is_known = |it: &End| it.pid == begun.pid && it.begun == begun.at;
        if self.begun.is_none() && self.ends.last().is_some_and(is_known) {
            return None;
        }
        // What is noted may know more: whether it served.
        if self.begun.as_ref().is_none_or(|it| it.pid != begun.pid || it.at != begun.at) {
            self.begun = Some(begun);
        }
        self.note_end(how, words, now)
    }

    /// `corten down`: whatever ran or was to run is over.
    pub fn note_stop(&mut self, now: Time) {
        (self.begun, self.restart_at, self.given_up) = (None, None, None);
        if self.ends.last().is_none_or(|it| it.is_failure() || it.how == How::MachineEnded) {
            let now = now.micro();
            self.push(End::without_process(now, How::Exited(0)));
        }
    }

    /// What did not even begin.
    pub fn note_no_start(&mut self, error: String, now: Time) -> Next {
        self.push(End::without_process(now.micro(), How::NotStarted(error)));
        self.judge(now)
    }

    /// Nothing runs: what is noted as begun has ended, and nobody saw it. The data folder tells when it lived last; a clock that
    /// was set back does not make that later than what follows.
    pub fn note_unseen(&mut self, data: &Path, now: Time) {
        const MOMENT: Duration = Duration::from_micros(1);
        let Some(begun) = self.begun.take() else { return };
        let before_now = MicroTime(now.micro().0.saturating_sub(MOMENT).unwrap_or(now.0));
        let log = log_in(data);
        let at = signs_of_life::last(data, &log).unwrap_or(begun.at).max(begun.at).min(before_now);
        let words = last_words::of(&log, begun.log_from);
        let how = if begun.is_of_earlier_boot() { How::MachineEnded } else { How::Unseen };
        self.push(begun.ended(at, how, words));
    }

    fn push(&mut self, end: End) {
        self.ends.push(end);
        let n_old = self.ends.len().saturating_sub(ENDS_MAX);
        self.ends.drain(..n_old);
    }

    fn judge(&mut self, now: Time) -> Next {
        let next = back_off::next(&self.failures(), now);
        match next {
            Next::RestartAfter(pause) => self.restart_at = Some(now.after(pause).micro()),
            Next::GiveUp => self.given_up = Some(GivenUp { at: now.micro(), told: false }),
        }
        next
    }

    /// Since when nothing serves the API, where nothing runs: starts that failed do not count, and neither does what was told
    /// to end after the failure.
    pub fn silent_since(&self) -> Option<MicroTime> {
        let served = self.ends.iter().rev().find(|it| it.has_served).map(|it| it.at);
        served.or_else(|| self.ends.first().map(|it| it.begun))
    }

    /// Was that end seen by nobody, so that its time is when the process wrote last?
    pub fn is_silence_unseen(&self) -> bool {
        let served = self.ends.iter().rev().find(|it| it.has_served);
        served.is_some_and(|it| matches!(it.how, How::Unseen | How::MachineEnded))
    }

    /// Those that count.
    pub fn failures(&self) -> Vec<Time> {
        let counted = self.counted_since;
        let failures = self.ends.iter().filter(|it| it.is_failure() && counted.is_none_or(|since| it.at >= since));
        failures.map(|it| Time(it.at.0)).collect()
    }

    pub fn has_ended_since_start(&self) -> bool {
        self.ends.last().is_some_and(|it| self.counted_since.is_none_or(|since| it.at >= since))
    }

    /// Since the last `corten up`.
    pub fn last_counted_failure(&self) -> Option<&End> {
        let counted = self.counted_since;
        self.ends.iter().rev().find(|it| it.is_failure() && counted.is_none_or(|since| it.at >= since))
    }

    /// The failures of the last hour, and the newest of them. Who began anew has mended something, and did not fail.
    pub fn recent(&self, now: Time) -> Option<(usize, &End)> {
        self.of_last_hour(now, |it| it.is_failure() && it.how != How::Exited(BEGINS_ANEW))
    }

    /// How often the node began anew of itself in the last hour, and the last time.
    pub fn recently_anew(&self, now: Time) -> Option<(usize, &End)> {
        self.of_last_hour(now, |it| it.how == How::Exited(BEGINS_ANEW))
    }

    fn of_last_hour(&self, now: Time, counts: impl Fn(&End) -> bool) -> Option<(usize, &End)> {
        const HOUR: Duration = Duration::from_secs(3600);
        let recent = || self.ends.iter().filter(|it| counts(it) && now.since(Time(it.at.0)) < HOUR);
        Some((recent().count(), recent().next_back()?))
    }

    /// How long until the next start; bounded, because the clock may have been set.
    pub fn rest(&self, now: Time) -> Duration {
        self.restart_at.map_or(Duration::ZERO, |it| Time(it.0).since(now).min(back_off::PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests;
