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
    remedy::{self, Remedy},
    survey::Group,
};
use crate::{
    NodeName,
    failure::Failure,
    node_folders::RUN_DIR,
    node_process::{NodeProcess, command_for, is_held},
    node_record::{End, How, Record, back_off},
    output,
    shell::quoted,
    supervision,
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
    let not_started = match &end.how {
        How::NotStarted(error) => Some(&**error),
        _ => None,
    };
    let words = end.words.iter().map(String::as_str).chain(not_started);
    let remedy = if end.is_failure() && !has_just_ended { remedy::of(words, layout) } else { None };
    let next = remedy.as_ref().map_or_else(|| next(record, layout), |it| it.next.clone());
    if let Some(remedy) = remedy {
        message = format!("{}; {message}", remedy.message);
        actor = Actor::Operator;
    }
    Some(Outage {
        api_version: super::explain::API_VERSION,
        kind: "Outage",
        summary: format!("corten {}", end.how.words()),
        reason,
        message,
        actor,
        since: record.silent_since().unwrap_or(end.at),
        failures,
        restart_at: record.restart_at,
        log: end.words.clone(),
        next,
    })
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
fn next(record: &Record, layout: &Layout) -> String {
    record.options.iter().fold(command_for(layout, "up"), |command, option| command + " " + &quoted(option))
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn notice(record: &Record, now: Time) -> Option<String> {
    let (n, end) = record.recent(now)?;
    Some(format!(
        "corten failed {times} in the last hour and was started again, last {ago} ago: it {how}{last}",
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
    Some(format!("corten began anew {times} in the last hour, last {ago} ago{why}"))
}

/// Lines of the log begin with their time, what a process says when it ends does not.
fn last_word(end: &End) -> Option<String> {
    let last = end.words.last().filter(|it| !it.starts_with(|it: char| it.is_ascii_digit()))?;
    Some(one_line(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        node_folders::DATA_DIR,
        why::{PageStyle, render_outage},
    };

    const LOOK: PageStyle = PageStyle { width: 100, colour: false };

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
            record.note_serving(7, at(second - 1));
            let words =
                vec!["INFO the node is up".to_owned(), "fatal runtime error: stack overflow, aborting".to_owned()];
            record.note_end(how.clone(), words, at(*second));
        }
        record
    }

    fn screen(record: &Record, layout: &Layout) -> String {
        render_outage(&outage(record, layout, false, 1).expect("it has ended"), at(100), LOOK)
    }

    #[test]
    fn where_nothing_was_noted_it_says_what_to_run() {
        let data = tempfile::tempdir().expect("a folder");
        for noted in [None, Some("{ torn")] {
            if let Some(text) = noted {
                std::fs::write(data.path().join("supervision.json"), text).expect("written");
            }
            assert!(ClusterRecord::find(&[data.path().to_owned()]).is_none());
            let failure = unanswered(data.path(), None, "no answer");
            assert!(failure.message.contains("nothing runs"), "{}", failure.message);
            assert_eq!(failure.next, Some(format!("corten up --data-dir={}", data.path().display())));
        }
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
        unseen.note_unseen(Path::new("/absent"), at(1_000_000));
        for (record, reason, actor) in [
            (record(&loops), "GivenUp", Actor::Operator),
            (record(&loops[..9]), "BackOff", Actor::Cluster),
            (record(&[(40, How::Exited(0))]), "Stopped", Actor::Operator),
            (record(&[(40, How::Exited(1)), (50, How::Exited(0))]), "Stopped", Actor::Operator),
            (unseen, "Ended", Actor::Operator),
            (record(&[(40, How::MachineEnded)]), "MachineEnded", Actor::Operator),
        ] {
            let outage = outage(&record, &usual(), false, 0).expect("it has ended");
            assert_eq!((outage.reason, outage.actor), (reason, actor), "{outage:?}");
        }
        let mut killed = record(&[]);
        killed.note_begin(7, 0, at(0));
        killed.note_unseen(Path::new("/absent"), at(1_000_000));
        let mut starts = record(&loops[..3]);
        starts.note_begin(7, 0, at(20));
        let starting = outage(&starts, &usual(), false, 0).expect("others have ended");
        assert_eq!((starting.reason, starting.failures, starting.restart_at), ("BackOff", 3, None));
        assert!(starting.message.ends_with("3 times since `corten up`, and is starting again now"), "{starting:?}");
        assert_eq!(
            outage(&killed, &usual(), true, 0).map(|it| it.actor),
            Some(Actor::Cluster),
            "its parent sees to it"
        );
        assert!(outage(&record(&[]), &usual(), false, 0).is_none(), "it has never run");
    }

    #[test]
    fn a_start_that_failed_is_told_with_its_cause_and_since_nothing_answers() {
        let mut record = record(&[(40, How::Exited(0))]);
        record.start_over(Path::new(RUN_DIR), Vec::new(), at(60));
        record.note_begin(8, 0, at(60));
        let words = vec!["error: listening on 127.0.0.1:6443: Address already in use (os error 98)".to_owned()];
        record.note_end(How::Exited(1), words, at(61));
        record.restart_at = None;
        let outage = outage(&record, &usual(), false, 0).expect("it has ended");
        assert_eq!((outage.since, outage.actor), (at(40).micro(), Actor::Operator));
        assert_eq!(
            render_outage(&outage, at(100), LOOK),
            "\
the cluster is not running, for 60s: corten ended with exit code 1
   │ error: listening on 127.0.0.1:6443: Address already in use (os error 98)
why:           Ended: another process listens at 127.0.0.1:6443: end it, or choose another port;
               nothing starts it again (since 2027-01-15T08:00:40Z)
who must act:  whoever runs the cluster
run next:      ss -ltunp 'sport = :6443'
"
        );
    }

    #[test]
    fn containers_go_on_where_there_are_some() {
        for how in [How::Exited(1), How::Unseen, How::Exited(0)] {
            let record = record(&[(40, how.clone())]);
            let said = |n| outage(&record, &usual(), false, n).expect("it has ended").message;
            assert!(said(1).ends_with("Containers go on meanwhile") && !said(0).contains("ontainers"), "{how:?}");
        }
    }

    /// Of every entry below a folder, all that a look could change.
    fn state(dir: &Path) -> Vec<(PathBuf, u32, u64, i64, i64)> {
        use std::os::unix::fs::MetadataExt as _;
        let mut found = Vec::new();
        let mut left = vec![dir.to_owned()];
        while let Some(path) = left.pop() {
            let it = std::fs::symlink_metadata(&path).expect("there");
            if it.is_dir() {
                left.extend(std::fs::read_dir(&path).expect("a folder").map(|it| it.expect("an entry").path()));
            }
            found.push((path, it.mode(), it.ino(), it.mtime_nsec(), it.ctime_nsec()));
        }
        found.sort();
        found
    }

    #[test]
    fn who_looks_changes_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (data, run) = (dir.path().join("data"), dir.path().join("run"));
        for folder in [&data, &run, &data.join("pki"), &data.join("log")] {
            std::fs::create_dir_all(folder).expect("made");
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).expect("set");
        }
        for file in ["node.lock", "supervisor.lock", "node.pid"] {
            std::fs::write(run.join(file), "1").expect("written");
        }
        let mut record = record(&[(40, How::Killed(9))]);
        record.run_dir.clone_from(&run);
        record.note_begin(7, 0, at(50));
        record.save(&data).expect("saved");
        let before = state(dir.path());
        let life = ClusterRecord::find(std::slice::from_ref(&data)).expect("noted");
        assert_eq!(life.outage().map(|it| it.reason), Some("Ended"));
        let _ = (life.concerns(at(100)), life.notices(at(100)), life.remedy("x"));
        assert_eq!(state(dir.path()), before);
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
    fn who_began_anew_says_what_it_mended_by_it() {
        let mut record = record(&[(40, How::Exited(75)), (60, How::Exited(75))]);
        record.ends[1].words.push("error: the store's disk takes writes again: Corten begins anew".into());
        let said = notice_anew(&record, at(100)).expect("recent");
        assert_eq!(
            said,
            "corten began anew 2 times in the last hour, last 40s ago: the store's disk takes writes again: Corten begins anew"
        );
        assert_eq!((notice(&record, at(100)), notice_anew(&record, at(4_000))), (None, None), "it did not fail");
    }

    #[test]
    fn a_cluster_that_runs_again_tells_of_it_for_an_hour() {
        let record = record(&[(10, How::Killed(9)), (40, How::Exited(101))]);
        let said = notice(&record, at(100)).expect("recent");
        assert!(said.starts_with("corten failed 2 times in the last hour") && said.contains("last 60s ago"), "{said}");
        assert!(said.ends_with("it panicked: fatal runtime error: stack overflow, aborting"), "{said}");
        assert_eq!(notice(&record, at(4_000)), None);
        assert_eq!(notice(&self::record(&[(40, How::MachineEnded)]), at(100)), None, "power was cut");
    }
}
