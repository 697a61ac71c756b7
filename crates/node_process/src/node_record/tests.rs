use super::*;

fn at(seconds: i64) -> Time {
    Time::from_unix_seconds(1_800_000_000 + seconds)
}

#[test]
fn a_life_is_noted_and_read_back() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path();
    assert!(Record::find(data).is_none());
    Record::change(data, |it| it.start_over(Path::new("/run/corten"), vec!["--port=7443".into()], at(0)));
    Record::change(data, |it| it.note_begin(7, 0, at(0)));
    let next = Record::change(data, |it| it.note_end(How::Killed(9), vec!["INFO up".into()], at(5)));
    assert_eq!(next, Some(Next::RestartAfter(Duration::from_secs(1))));
    let record = Record::load(data);
    assert_eq!(record.rest(at(5)), Duration::from_secs(1));
    assert_eq!(record.rest(at(-90_000)), back_off::PAUSE_MAX, "the clock was set back");
    assert_eq!(record.recent(at(6)).map(|(n, end)| (n, end.pid, end.words.len())), Some((1, 7, 1)));
    assert_eq!(record.recent(at(4000)), None);
    assert!(record.begun.is_none() && record.options == ["--port=7443"]);

    fs::write(Record::path(data), "{ \"ends\": [").expect("written");
    assert_eq!(Record::load(data), Record::default(), "a torn one keeps nothing from starting");
}

#[test]
fn an_orderly_end_is_no_failure_and_is_noted_once() {
    let mut record = Record::default();
    record.note_begin(7, 0, at(0));
    assert_eq!(record.note_end(How::Exited(0), Vec::new(), at(1)), None);
    assert_eq!(record.note_end(How::Unseen, Vec::new(), at(2)), None, "the node itself said so before");
    assert_eq!((record.ends.len(), record.failures().len()), (1, 0));
    assert!(record.given_up.is_none() && record.restart_at.is_none());
}

#[test]
fn an_end_counts_though_the_file_was_lost_and_only_once() {
    let begun = || NodeStart { pid: 7, boot_id: String::new(), at: at(0).micro(), log_from: 0, serves_since: None };
    let mut lost = Record::default();
    let next = lost.note_end_of(begun(), How::Killed(9), Vec::new(), at(1));
    assert_eq!(next, Some(Next::RestartAfter(Duration::from_secs(1))));
    assert_eq!(lost.note_end_of(begun(), How::Killed(9), Vec::new(), at(2)), None, "it is known");
    let mut told = Record::default();
    told.note_begin(7, 0, at(0));
    told.note_end(How::Exited(0), Vec::new(), at(1));
    assert_eq!(told.note_end_of(begun(), How::Killed(9), Vec::new(), at(2)), None, "the node itself said so before");
    assert_eq!((lost.ends.len(), told.ends.len()), (1, 1));
}

#[test]
fn a_cluster_that_is_taken_down_waits_for_nothing() {
    let mut record = Record::default();
    record.note_begin(7, 0, at(0));
    record.note_end(How::Killed(9), Vec::new(), at(1));
    record.note_stop(at(2));
    record.note_stop(at(3));
    assert!(record.restart_at.is_none() && record.ends.len() == 2);
    assert_eq!(record.ends[1].how, How::Exited(0));
    assert_eq!(record.failures(), [at(1)], "what failed before has failed");
}

#[test]
fn is_given_up_in_the_end_and_starts_over_with_up() {
    let mut record = Record::default();
    for second in 0..100 {
        record.note_begin(7, 0, at(second));
        let next = record.note_end(How::Exited(1), Vec::new(), at(second));
        assert_eq!(next == Some(Next::GiveUp), second >= 9, "{second}");
    }
    assert!(record.given_up.is_some() && record.ends.len() == ENDS_MAX);
    record.start_over(Path::new("/run/corten"), Vec::new(), at(101));
    assert!(record.given_up.is_none() && record.failures().is_empty());
    assert!(record.recent(at(101)).is_some(), "and yet nothing is forgotten");
    record.note_begin(8, 0, at(102));
    assert_eq!(record.note_end(How::Exited(1), Vec::new(), at(103)), Some(Next::RestartAfter(Duration::from_secs(1))));
}

#[test]
fn an_end_that_nobody_saw_has_the_time_of_the_last_sign_of_life() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (log, store) = (log_in(dir.path()), dir.path().join("store/00000000000000000001.log"));
    for file in [&log, &store] {
        fs::create_dir_all(file.parent().expect("it has one")).expect("made");
        fs::write(file, "INFO the node is up\n").expect("written");
    }
    let set = |file: &Path, second: u64| {
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + second);
        fs::File::options().write(true).open(file).and_then(|it| it.set_modified(time)).expect("set");
    };
    let mut record = Record::default();
    record.note_unseen(dir.path(), at(1_000_000));
    assert!(record.ends.is_empty(), "nothing had begun");
    for (of_log, of_store, expected) in [(20, 50, 50), (50, 20, 50), (1, 2, 10)] {
        set(&log, of_log);
        set(&store, of_store);
        record.note_begin(7, 0, at(10));
        record.note_unseen(dir.path(), at(1_000_000));
        let end = record.ends.last().expect("noted");
        assert_eq!((&end.how, end.words.len(), end.at), (&How::Unseen, 1, at(expected).micro()));
        assert!(record.begun.is_none());
    }
    // The clock was set back meanwhile: what starts now starts after it all the same.
    record.note_begin(7, 0, at(10));
    record.note_unseen(dir.path(), at(-500));
    record.start_over(Path::new("/run/corten"), Vec::new(), at(-500));
    assert!(!record.has_ended_since_start(), "{record:?}");
}

#[test]
fn the_end_of_the_machine_is_no_failure_of_what_ran_on_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut record = Record::default();
    record.note_begin(7, 0, at(0));
    record.note_serving(7, at(1));
    let begun = record.begun.as_mut().expect("it runs");
    assert!(begun.is_process(7) && !begun.is_process(8));
    begun.boot_id = "of an earlier boot".into();
    assert!(!begun.is_process(7), "another has its number by now");
    record.note_unseen(dir.path(), at(1_000_000));
    let end = record.ends.last().expect("noted");
    assert!(end.how == How::MachineEnded && end.has_served, "{end:?}");
    assert!(record.failures().is_empty() && record.recent(at(5)).is_none());
    record.note_stop(at(6));
    assert_eq!(record.ends.last().map(|it| &it.how), Some(&How::Exited(0)), "whoever takes it down is noted");

    // A version that noted no boot.
    let old = serde_json::json!({"pid": 7, "at": at(0).micro(), "logFrom": 0});
    record.begun = Some(serde_json::from_value(old).expect("read"));
    record.note_unseen(dir.path(), at(1_000_000));
    assert_eq!(record.ends.last().map(|it| &it.how), Some(&How::Unseen));
}

#[test]
fn it_is_silent_since_what_served_last_has_ended() {
    let mut record = Record::default();
    assert_eq!(record.silent_since(), None, "it has never run");
    let run = |record: &mut Record, begin: i64, serves: bool, end: i64, how: How| {
        let begun = record.note_begin(7, 0, at(begin));
        record.note_serving(8, at(begin));
        if serves {
            record.note_serving(7, at(begin));
        }
        record.note_end_of(begun, how, Vec::new(), at(end));
    };
    run(&mut record, 1, false, 2, How::Exited(1));
    assert_eq!(record.silent_since(), Some(at(1).micro()), "it never answered");
    run(&mut record, 3, true, 50, How::Killed(9));
    assert_eq!(record.silent_since(), Some(at(50).micro()));
    run(&mut record, 51, false, 52, How::Exited(1));
    record.note_no_start("no such file".into(), at(60));
    record.note_stop(at(70));
    assert_eq!(record.silent_since(), Some(at(50).micro()), "what came after it did not answer");
}

#[test]
fn who_began_anew_of_itself_has_not_failed_in_the_last_hour() {
    let mut record = Record::default();
    let begun = record.note_begin(7, 0, at(0));
    assert!(record.note_end_of(begun, How::Exited(BEGINS_ANEW), Vec::new(), at(1)).is_some(), "it is started again");
    assert!(record.recent(at(2)).is_none());
    assert_eq!(record.recently_anew(at(2)).map(|it| it.0), Some(1));
    let begun = record.note_begin(8, 0, at(3));
    record.note_end_of(begun, How::Exited(1), Vec::new(), at(4));
    assert_eq!(record.recent(at(5)).map(|it| it.0), Some(1));
}

#[test]
fn only_what_is_told_to_end_has_not_failed() {
    for name in ["INT", "TERM"] {
        assert!(!How::Killed(signal_number(name).expect("known")).is_failure(), "{name}");
    }
    for name in ["HUP", "PIPE", "KILL", "USR1", "ABRT"] {
        assert!(How::Killed(signal_number(name).expect("known")).is_failure(), "{name}");
    }
    assert!(!How::Exited(0).is_failure() && How::Exited(1).is_failure() && How::Unseen.is_failure());
}

#[test]
fn every_way_to_end_can_be_said() {
    for (how, said) in [
        (How::Exited(0), "was told to end"),
        (How::Exited(101), "it panicked"),
        (How::Exited(1), "exit code 1"),
        (How::Killed(9), "want of memory"),
        (How::Killed(6), "SIGABRT"),
        (How::Killed(11), "SIGSEGV"),
        (How::Killed(40), "signal 40"),
        (How::NotStarted("no such file".into()), "no such file"),
        (How::Unseen, "nobody saw"),
        (How::MachineEnded, "the machine, which went down"),
    ] {
        assert!(how.words().contains(said), "{}", how.words());
    }
    assert_eq!((signal_number("KILL"), signal_number("SIGSEGV"), signal_number("40")), (Some(9), Some(11), Some(40)));
    assert_eq!(signal_number("NONSENSE"), None);
}
