//! What can be said of a cluster that does not run, or has just failed: by what was noted of its life, on its own machine.

use std::path::{Path, PathBuf};

use corten_machine::Layout;
use corten_meta::{MicroTime, Time};
use corten_reconcile::Actor;
use serde::Serialize;

use super::{
    certificates,
    duration::duration,
    fields::one_line,
    machine_part::MachinePart,
    remedy::{self, Remedy},
    survey::Group,
};
use corten_console::{failure::Failure, output, shell::quoted};
use corten_node_process::{
    node_folders::RUN_DIR,
    node_name::NodeName,
    node_process::{NodeProcess, command_for, is_held},
    node_record::{End, How, Record, back_off, last_words},
    supervision,
};

/// A cluster that does not run; with `-o json` it is printed as it stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outage {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// What does not run.
    pub(crate) part: MachinePart,
    /// One line: how it ended.
    pub(crate) summary: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) actor: Actor,
    pub(crate) since: MicroTime,
    /// Nobody saw the end: it wrote last then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) since_last_write: bool,
    /// How often it failed since `corten up`.
    pub(crate) failures: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restart_at: Option<MicroTime>,
    /// The last lines of its log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
    /// The command to run.
    pub(crate) next: String,
}

/// What was noted of the cluster whose data are in one of these folders.
pub(crate) struct ClusterRecord {
    data: PathBuf,
    record: Record,
}

impl ClusterRecord {
    /// None where nothing was noted, or may not be read.
    pub(crate) fn find(folders: &[PathBuf]) -> Option<Self> {
        folders.iter().find_map(|data| Some(Self { data: data.clone(), record: Record::find(data)? }))
    }

    /// None where it runs, is being started, or where that cannot be told.
    pub(crate) fn outage(&self) -> Option<Outage> {
        let node = self.node();
        if node.runs().ok()? {
            return None;
        }
        let is_looked_after = supervision::is_looked_after(&node).ok()?;
        let has_just_ended = is_looked_after && self.record.begun.is_some();
        if is_looked_after && !has_just_ended && self.record.restart_at.is_none() {
            return None;
        }
        let mut record = self.record.clone();
        record.note_unseen(&self.data, output::now());
        let n_sandboxes = corten_host::n_sandboxes(&node.layout);
        outage(&record, &node.layout, has_just_ended, n_sandboxes)
    }

    /// Its process runs and has served nothing yet, after others that failed: for whoever got no answer of it.
    pub(crate) fn outage_of_start(&self) -> Option<Outage> {
        let node = self.node();
        let is_starting = node.runs().ok()? && self.record.begun.as_ref()?.serves_since.is_none();
        self.record.ends.last().filter(|it| is_starting && it.is_failure())?;
        outage(&self.record, &node.layout, false, corten_host::n_sandboxes(&node.layout))
    }

    /// What somebody must see to though the cluster runs.
    pub(crate) fn concerns(&self, now: Time) -> Vec<Group> {
        let node = self.node();
        let mut concerns: Vec<Group> = unsupervised(&node).into_iter().collect();
        concerns.extend(certificates::of_cluster(&node.layout, &node.log_path(), now));
        concerns
    }

    /// What helps where its server says that it is not ready.
    pub(crate) fn remedy(&self, words: &str) -> Option<Remedy> {
        remedy::of([words].into_iter(), &self.node().layout)
    }

    /// The administrator's kubeconfig, which is renewed.
    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.data.join("admin.kubeconfig")
    }

    fn node(&self) -> NodeProcess {
        let run = if self.record.run_dir.as_os_str().is_empty() { Path::new(RUN_DIR) } else { &self.record.run_dir };
        NodeProcess { layout: Layout::new(&self.data, run) }
    }

    /// What is worth knowing of a cluster that runs.
    pub(crate) fn notices(&self, now: Time) -> Vec<String> {
        let noted = [notice(&self.record, now), notice_anew(&self.record, now)];
        noted.into_iter().flatten().chain(self.name_kept()).collect()
    }

    /// What this machine's node is called.
    pub(crate) fn node_name(&self) -> Option<String> {
        NodeName::unasked(&self.data).ok().map(|it| it.name)
    }

    /// The machine has another name by now than the node that was called after it.
    fn name_kept(&self) -> Option<String> {
        let node = self.node();
        let (pid, _) = node.process().ok().flatten()?;
        let is_asked_for = self.record.options.iter().any(|it| it.starts_with("--node-name="));
        if is_asked_for || !node.is_started_by_up(pid) {
            return None;
        }
        NodeName::unasked(&self.data).ok()?.remark()
    }
}

/// The cluster with these data does not answer, and nothing noted says why: it may run all the same.
pub(crate) fn unanswered(data: &Path, life: Option<&ClusterRecord>, error: &str) -> Failure {
    let node = life.map_or_else(|| NodeProcess { layout: Layout::new(data, RUN_DIR) }, ClusterRecord::node);
    // `corten server` has no lock but the store's.
    let has_store = || is_held(&data.join("store/lock"));
    if node.runs().unwrap_or(false) || has_store().unwrap_or(false) {
        // Who is shown a certificate that is not valid hears no answer at all.
        if let Some(concern) =
            certificates::of_cluster(&node.layout, &node.log_path(), output::now()).into_iter().next()
        {
            let subject = concern.subjects.first().map(|it| it.subject.clone()).unwrap_or_default();
            return Failure::new(format!("{error}: {subject}: {}", concern.summary)).next(concern.next);
        }
        let (log, lock) = (node.log_path(), data.join("store/lock"));
        let next = if log.exists() {
            format!("tail -n 40 {}", quoted(&log.to_string_lossy()))
        } else {
            format!("lslocks --notruncate -o COMMAND,PID,PATH | grep {}", quoted(&lock.to_string_lossy()))
        };
        return Failure::new(format!("{error}; its process runs")).next(next);
    }
    let place = data.display();
    let message = format!("{error}; its data are in {place}, nothing runs, and nothing is noted of how that ended");
    Failure::new(message).next(command_for(&node.layout, "up"))
}

/// Was it started by `corten up`, and whatever was to start it again has ended?
fn unsupervised(node: &NodeProcess) -> Option<Group> {
    let (pid, _) = node.process().ok().flatten()?;
    if !node.is_started_by_up(pid) || supervision::is_looked_after(node).ok()? {
        return None;
    }
    let summary = "NotSupervised: what starts Corten again has ended: the next failure ends the cluster".to_owned();
    Some(Group::of_cluster("corten", summary, command_for(&node.layout, "up")))
}

fn outage(record: &Record, layout: &Layout, has_just_ended: bool, n_sandboxes: usize) -> Option<Outage> {
    let end = record.ends.last()?;
    let failures = record.failures().len();
    let (reason, mut message, mut actor) =
        if has_just_ended { just_ended() } else { verdict(record, end, n_sandboxes) };
    let part = MachinePart::of(&layout.data);
    let is_to_be_mended = end.is_failure() && !has_just_ended;
    let told = told_next(end).filter(|_| is_to_be_mended);
    let remedy = remedy::of(last_words_of(end), layout).filter(|_| is_to_be_mended && told.is_none());
    if let Some(remedy) = &remedy {
        message = format!("{}; {message}", remedy.message);
    }
    if told.is_some() || remedy.is_some() {
        actor = Actor::Operator;
    }
    if let Some(others) = part.others() {
        message = format!("{message}; {others}");
    }
    let log = end.words.iter().filter(|it| told.is_none() || !it.starts_with(last_words::NEXT));
    let log = log.cloned().collect();
    let next = told.or(remedy.map(|it| it.next)).unwrap_or_else(|| next(record, layout, part));
    Some(Outage {
        api_version: super::explain::API_VERSION,
        kind: "Outage",
        part,
        summary: format!("corten {}", end.how.words()),
        reason,
        message,
        actor,
        since: record.silent_since().unwrap_or(end.at),
        since_last_write: record.is_silence_unseen(),
        failures,
        restart_at: record.restart_at,
        log,
        next,
    })
}

/// The lines that it ended with.
fn last_words_of(end: &End) -> impl DoubleEndedIterator<Item = &str> {
    let not_started = match &end.how {
        How::NotStarted(error) => &**error,
        _ => "",
    };
    end.words.iter().map(String::as_str).chain(not_started.lines())
}

/// The command that the failure itself says to run: it knows best.
fn told_next(end: &End) -> Option<String> {
    let mut last = last_words_of(end).rev().take_while(|it| !is_of_log(it));
    let next = last.find_map(|it| it.strip_prefix(last_words::NEXT))?.trim();
    Some(next.to_owned()).filter(|it| !it.is_empty())
}

/// Whoever looks after it has not said yet what follows.
fn just_ended() -> (&'static str, String, Actor) {
    ("Ended", "it has just ended, and is started again".into(), Actor::Cluster)
}

fn verdict(record: &Record, end: &End, n_sandboxes: usize) -> (&'static str, String, Actor) {
    let containers = if n_sandboxes > 0 { ". Containers go on meanwhile" } else { "" };
    let n = times(record.failures().len());
    if record.given_up.is_some() {
        let minutes = back_off::WINDOW.as_secs() / 60;
        let message = format!(
            "it failed {n} since `corten up`, too often within {minutes} minutes: it is not started again{containers}"
        );
        return ("GivenUp", message, Actor::Operator);
    }
    if record.restart_at.is_some() || (record.begun.is_some() && end.is_failure()) {
        let again = if record.restart_at.is_some() { "is started again" } else { "is starting again now" };
        let message = format!("it failed {n} since `corten up`, and {again}{containers}");
        return ("BackOff", message, Actor::Cluster);
    }
    match &end.how {
        How::Unseen => {
            let message = format!("it was killed with what would start it again, or the machine went down{containers}");
            ("Ended", message, Actor::Operator)
        }
        How::MachineEnded => {
            let message = "the machine went down, and nothing has started it again since".to_owned();
            ("MachineEnded", message, Actor::Operator)
        }
        how if how.is_failure() => ("Ended", format!("nothing starts it again{containers}"), Actor::Operator),
        _ => ("Stopped", format!("by `corten down`, or by a signal{containers}"), Actor::Operator),
    }
}

/// As it was started before.
fn next(record: &Record, layout: &Layout, part: MachinePart) -> String {
    record.options.iter().fold(command_for(layout, part.verb()), |command, option| command + " " + &quoted(option))
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn notice(record: &Record, now: Time) -> Option<String> {
    let (n, end) = record.recent(now)?;
    Some(format!(
        "corten failed {times} on this machine in the last hour and was started again, last {ago} ago: it {how}{last}",
        times = times(n),
        ago = duration(now.since(Time(end.at.0))),
        how = end.how.words(),
        last = last_word(end).map(|it| format!(": {it}")).unwrap_or_default(),
    ))
}

/// What it could not mend but by another process, which is running by now: no failure, and yet its answers stopped meanwhile.
fn notice_anew(record: &Record, now: Time) -> Option<String> {
    let (n, end) = record.recently_anew(now)?;
    let (times, ago) = (times(n), duration(now.since(Time(end.at.0))));
    let why = last_word(end).map(|it| format!(": {}", it.trim_start_matches("error: "))).unwrap_or_default();
    Some(format!("corten began anew {times} on this machine in the last hour, last {ago} ago{why}"))
}

/// Lines of the log begin with their time, what a process says when it ends does not.
pub(super) fn is_of_log(line: &str) -> bool {
    line.starts_with(|it: char| it.is_ascii_digit())
}

/// What it said last of why it ended; what to run then was for that time.
fn last_word(end: &End) -> Option<String> {
    let last = end.words.iter().rev().find(|it| !it.starts_with(last_words::NEXT)).filter(|it| !is_of_log(it))?;
    Some(one_line(last))
}

#[cfg(test)]
mod tests;
