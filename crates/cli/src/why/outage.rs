//! What can be said of a cluster that does not run, or has just failed: by what was noted of its life, on its own machine.

use std::path::{Path, PathBuf};

use corten_host::Layout;
use corten_meta::{MicroTime, Time};
use corten_reconcile::Actor;
use serde::Serialize;

use super::{account::one_line, command::quoted, render::duration};
use crate::{
    node_process::{DATA_DIR, NodeProcess, RUN_DIR},
    supervision::{
        self, Record, back_off,
        record::{End, How},
    },
};

/// A cluster that does not run; with `-o json` it is printed as it stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outage {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// One line: how it ended.
    pub(crate) summary: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) actor: Actor,
    pub(crate) since: MicroTime,
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
pub(crate) struct Life {
    data: PathBuf,
    record: Record,
}

impl Life {
    /// None where nothing was noted, or may not be read.
    pub(crate) fn find(folders: &[PathBuf]) -> Option<Self> {
        folders.iter().find_map(|data| Some(Self { data: data.clone(), record: Record::find(data)? }))
    }

    /// None where it runs, is being started, or where that cannot be told.
    pub(crate) fn outage(&self) -> Option<Outage> {
        let run = if self.record.run_dir.as_os_str().is_empty() { Path::new(RUN_DIR) } else { &self.record.run_dir };
        let node = NodeProcess { layout: Layout::new(&self.data, run) };
        if node.runs().ok()? {
            return None;
        }
        let is_looked_after = supervision::is_looked_after(&node).ok()?;
        let has_just_ended = is_looked_after && self.record.begun.is_some();
        if is_looked_after && !has_just_ended && self.record.restart_at.is_none() {
            return None;
        }
        let mut record = self.record.clone();
        record.note_unseen(&node.log_path());
        outage(&record, &node.layout, has_just_ended)
    }

    /// What is worth knowing of a cluster that runs.
    pub(crate) fn notice(&self, now: Time) -> Option<String> {
        notice(&self.record, now)
    }
}

fn outage(record: &Record, layout: &Layout, has_just_ended: bool) -> Option<Outage> {
    let end = record.ends.last()?;
    let failures = record.failures().len();
    let (reason, message, actor) = if has_just_ended { just_ended() } else { verdict(record, end) };
    Some(Outage {
        api_version: super::API_VERSION,
        kind: "Outage",
        summary: format!("corten {}", end.how.words()),
        reason,
        message,
        actor,
        since: end.at,
        failures,
        restart_at: record.restart_at,
        log: end.words.clone(),
        next: next(record, layout),
    })
}

/// Whoever looks after it has not said yet what follows.
fn just_ended() -> (&'static str, String, Actor) {
    ("Ended", "it has just ended, and is started again".into(), Actor::Cluster)
}

fn verdict(record: &Record, end: &End) -> (&'static str, String, Actor) {
    const CONTAINERS: &str = "Containers go on meanwhile";
    let n = times(record.failures().len());
    if record.given_up.is_some() {
        let minutes = back_off::WINDOW.as_secs() / 60;
        let message = format!(
            "it failed {n} since `corten up`, too often within {minutes} minutes: it is not started again. {CONTAINERS}"
        );
        return ("GivenUp", message, Actor::Operator);
    }
    if record.restart_at.is_some() {
        return (
            "BackOff",
            format!("it failed {n} since `corten up`, and is started again. {CONTAINERS}"),
            Actor::Cluster,
        );
    }
    match &end.how {
        How::Unseen => {
            ("Ended", "it was killed with what would start it again, or the machine went down".into(), Actor::Operator)
        }
        how if how.is_failure() => ("Ended", format!("nothing starts it again. {CONTAINERS}"), Actor::Operator),
        _ => ("Stopped", "by `corten down`, or by a signal".into(), Actor::Operator),
    }
}

/// As it was started before.
fn next(record: &Record, layout: &Layout) -> String {
    let mut command = "corten up".to_owned();
    for (name, dir, usual) in [("data-dir", &layout.data, DATA_DIR), ("run-dir", &layout.run, RUN_DIR)] {
        if dir.as_path() != Path::new(usual) {
            command += &format!(" --{name}={}", quoted(&dir.to_string_lossy()));
        }
    }
    record.options.iter().fold(command, |command, option| command + " " + &quoted(option))
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn notice(record: &Record, now: Time) -> Option<String> {
    let (n, end) = record.recent(now)?;
    let times = times(n);
    let ago = duration(now.since(Time(end.at.0)));
    // Lines of the log begin with their time, what a process says when it breaks does not.
    let last = end.words.last().filter(|it| !it.starts_with(|it: char| it.is_ascii_digit()));
    let last = last.map(|it| format!(": {}", one_line(it))).unwrap_or_default();
    Some(format!(
        "corten failed {times} in the last hour and was started again, last {ago} ago: it {}{last}",
        end.how.words()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::{Look, render_outage};

    const LOOK: Look = Look { width: 100, colour: false };

    fn at(seconds: i64) -> Time {
        Time::from_unix_seconds(1_800_000_000 + seconds)
    }

    fn usual() -> Layout {
        Layout::new(DATA_DIR, RUN_DIR)
    }

    fn record(ends: &[(i64, How)]) -> Record {
        let mut record = Record::default();
        record.start_over(Path::new(RUN_DIR), Vec::new(), at(0));
        for (second, how) in ends {
            record.note_begin(7, 0, at(second - 1));
            let words =
                vec!["INFO the node is up".to_owned(), "fatal runtime error: stack overflow, aborting".to_owned()];
            record.note_end(how.clone(), words, at(*second));
        }
        record
    }

    fn screen(record: &Record, layout: &Layout) -> String {
        render_outage(&outage(record, layout, false).expect("it has ended"), at(100), LOOK)
    }

    #[test]
    fn says_how_it_ended_and_what_to_run() {
        let mut waits = record(&[(40, How::Killed(6))]);
        assert_eq!(
            screen(&waits, &usual()),
            "\
the cluster is not running, for 60s: corten aborted (SIGABRT)
   │ INFO the node is up
   │ fatal runtime error: stack overflow, aborting
why:           BackOff: it failed once since `corten up`, and is started again. Containers go on
               meanwhile (since 2027-01-15T08:00:40Z)
who must act:  nobody: it is started again at 2027-01-15T08:00:41Z
run next:      corten up
"
        );
        waits.restart_at = None;
        assert!(screen(&waits, &usual()).contains("why:           Ended: nothing starts it again."));
    }

    #[test]
    fn every_state_says_who_must_act() {
        let loops: Vec<_> = (1..=10).map(|it| (it, How::Exited(1))).collect();
        let mut unseen = record(&[]);
        unseen.note_begin(7, 0, at(0));
        unseen.note_unseen(Path::new("/absent"));
        for (record, reason, actor) in [
            (record(&loops), "GivenUp", Actor::Operator),
            (record(&loops[..9]), "BackOff", Actor::Cluster),
            (record(&[(40, How::Exited(0))]), "Stopped", Actor::Operator),
            (record(&[(40, How::Exited(1)), (50, How::Exited(0))]), "Stopped", Actor::Operator),
            (unseen, "Ended", Actor::Operator),
        ] {
            let outage = outage(&record, &usual(), false).expect("it has ended");
            assert_eq!((outage.reason, outage.actor), (reason, actor), "{outage:?}");
        }
        let mut killed = record(&[]);
        killed.note_begin(7, 0, at(0));
        killed.note_unseen(Path::new("/absent"));
        assert_eq!(outage(&killed, &usual(), true).map(|it| it.actor), Some(Actor::Cluster), "its parent sees to it");
        assert!(outage(&record(&[]), &usual(), false).is_none(), "it has never run");
    }

    #[test]
    fn the_command_has_what_up_was_given() {
        let mut record = record(&[(40, How::Exited(0))]);
        record.options = vec!["--port=7443".into(), "--eviction-hard=memory.available<5%".into()];
        let other = Layout::new("/srv/my data", "/run/other");
        assert_eq!(
            next(&record, &other),
            "corten up --data-dir='/srv/my data' --run-dir=/run/other --port=7443 '--eviction-hard=memory.available<5%'"
        );
    }

    #[test]
    fn an_ordinary_line_of_the_log_is_no_reason() {
        let mut record = record(&[(40, How::Killed(9))]);
        record.ends[0].words.push("2026-11-20T10:00:00.000000Z  INFO corten: the node is up".into());
        let said = notice(&record, at(100)).expect("recent");
        assert!(said.starts_with("corten failed once") && said.ends_with("for want of memory"), "{said}");
    }

    #[test]
    fn a_cluster_that_runs_again_tells_of_it_for_an_hour() {
        let record = record(&[(10, How::Killed(9)), (40, How::Exited(101))]);
        let said = notice(&record, at(100)).expect("recent");
        assert!(said.starts_with("corten failed 2 times in the last hour") && said.contains("last 60s ago"), "{said}");
        assert!(said.ends_with("it panicked: fatal runtime error: stack overflow, aborting"), "{said}");
        assert_eq!(notice(&record, at(4_000)), None);
    }
}
