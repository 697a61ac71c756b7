use super::*;
use crate::why::{PageStyle, render_outage};
use corten_node_process::node_folders::DATA_DIR;

const LOOK: PageStyle = PageStyle { width: 100, height: 24, colour: false };

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
        let words = vec!["INFO the node is up".to_owned(), "fatal runtime error: stack overflow, aborting".to_owned()];
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
    assert_eq!(outage(&killed, &usual(), true, 0).map(|it| it.actor), Some(Actor::Cluster), "its parent sees to it");
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
fn what_nobody_saw_end_is_told_with_its_last_write() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for folder in ["store", "log"] {
        std::fs::create_dir(dir.path().join(folder)).expect("made");
    }
    // The log has been silent for long.
    for (file, second) in [("log/corten.log", 10), ("store/1.log", 96)] {
        let file = std::fs::File::create(dir.path().join(file)).expect("made");
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000 + second)).expect("set");
    }
    let mut record = record(&[]);
    record.note_begin(7, 0, at(0));
    record.note_serving(7, at(1));
    record.note_unseen(dir.path(), at(1_000));
    assert_eq!(
        screen(&record, &usual()),
        "\
the cluster is not running; it wrote last 4.0s ago: corten ended, and nobody saw how
why:           Ended: it was killed with what would start it again, or the machine went down.
               Containers go on meanwhile (it wrote last at 2027-01-15T08:01:36Z)
who must act:  whoever runs the cluster
run next:      corten up
"
    );
    record.note_begin(8, 0, at(97));
    record.note_serving(8, at(97));
    record.note_end(How::Killed(9), Vec::new(), at(98));
    assert!(screen(&record, &usual()).starts_with("the cluster is not running, for 2.0s: "), "this one was seen");
}

const TOLD: &str = "corten reset && corten up --ha --join … # as `corten token create --control-plane` prints it";

#[test]
fn what_the_failure_says_to_run_is_offered_whole() {
    let of_log = "2026-11-20T10:00:00.000000Z  INFO corten: the node begins";
    let error = "error: the member of etcd on this machine was removed from its cluster, and comes back only as a new one, by \
                 the line that another machine prints";
    let next = format!("run next:      {TOLD}");
    let mut record = record(&[(40, How::Exited(1))]);
    record.restart_at = None;
    record.ends[0].words = [of_log, error, &next].map(str::to_owned).to_vec();
    assert_eq!(
        screen(&record, &usual()),
        format!(
            "\
the cluster is not running, for 60s: corten ended with exit code 1
   │ {of_log}
   │ error: the member of etcd on this machine was removed from its cluster, and comes back only as
      a new one, by the line that another machine prints
why:           Ended: nothing starts it again. Containers go on meanwhile (since
               2027-01-15T08:00:40Z)
who must act:  whoever runs the cluster
run next:      corten reset && corten up --ha --join … # as `corten token create --control-plane`
               # prints it
"
        )
    );
    for (words, expected) in [
        (vec![error, &*next, "not known:     what others say"], TOLD),
        (vec!["error: No space left on device", &*next], TOLD),
        // It has gone on since.
        (vec![&*next, of_log], "corten up"),
        (vec!["run next:"], "corten up"),
    ] {
        record.ends[0].words = words.into_iter().map(str::to_owned).collect();
        assert_eq!(outage(&record, &usual(), false, 0).expect("it has ended").next, expected, "{record:?}");
    }
    record.ends[0].words = vec![error.to_owned(), next];
    let said = notice(&record, at(100)).expect("recent");
    assert!(said.ends_with("by the line that another machine prints"), "{said}");
    record.note_no_start(format!("it is not there\nrun next:      {TOLD}"), at(50));
    assert_eq!(outage(&record, &usual(), false, 0).expect("it has ended").next, TOLD);
}

#[test]
fn where_others_may_serve_only_this_machines_part_is_down() {
    let record = record(&[(40, How::Exited(0))]);
    for (folder, file, begin, others, next) in [
        ("pki", "", "the cluster is not running", "Containers go on meanwhile (", "corten up --data-dir="),
        (
            "pki",
            "control-plane.json",
            "this machine's part of the cluster is not running, for 60s: corten was told to end",
            "other machines may serve the cluster meanwhile, which is in an etcd (",
            "corten up --data-dir=",
        ),
        (
            "kubelet",
            "node.kubeconfig",
            "this machine's node is not running, for 60s: corten was told to end",
            "the cluster is on other machines, and may go on meanwhile (",
            "corten join --data-dir=",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join(folder)).expect("made");
        if !file.is_empty() {
            std::fs::write(dir.path().join(folder).join(file), "{}").expect("written");
        }
        let outage = outage(&record, &Layout::new(dir.path(), RUN_DIR), false, 1).expect("it has ended");
        let said = render_outage(&outage, at(100), PageStyle::WHOLE);
        assert!(said.starts_with(begin) && said.contains(others) && said.contains(next), "{said}");
    }
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
        next(&record, &other, MachinePart::Cluster),
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
        "corten began anew 2 times on this machine in the last hour, last 40s ago: the store's disk takes writes again: Corten begins anew"
    );
    assert_eq!((notice(&record, at(100)), notice_anew(&record, at(4_000))), (None, None), "it did not fail");
}

#[test]
fn a_cluster_that_runs_again_tells_of_it_for_an_hour() {
    let record = record(&[(10, How::Killed(9)), (40, How::Exited(101))]);
    let said = notice(&record, at(100)).expect("recent");
    assert!(
        said.starts_with("corten failed 2 times on this machine in the last hour") && said.contains("last 60s ago"),
        "{said}"
    );
    assert!(said.ends_with("it panicked: fatal runtime error: stack overflow, aborting"), "{said}");
    assert_eq!(notice(&record, at(4_000)), None);
    assert_eq!(notice(&self::record(&[(40, How::MachineEnded)]), at(100)), None, "power was cut");
}
