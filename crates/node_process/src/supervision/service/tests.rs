use std::path::Path;

use corten_machine::Layout;

use super::*;

#[test]
fn systemd_says_how_it_ended() {
    for (code, status, said) in [
        ("exited", "0", How::Exited(0)),
        ("exited", "101", How::Exited(101)),
        ("killed", "KILL", How::Killed(9)),
        ("dumped", "ABRT", How::Killed(6)),
        ("killed", "RTMIN+3", How::Unseen),
        ("", "", How::Unseen),
    ] {
        assert_eq!(how(code, status), said, "{code} {status}");
    }
}

#[test]
fn a_failure_counts_though_the_record_was_lost() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
    std::fs::create_dir_all(&node.layout.data).expect("a folder");
    for _ in 0..2 {
        let next = note_end(&node, How::Killed(9), false);
        assert_eq!(next, Some(Next::RestartAfter(Duration::from_secs(1))));
        assert_eq!(note_end(&node, How::Killed(9), false), None, "it is noted");
        std::fs::write(node.layout.data.join("supervision.json"), "{ torn").expect("written");
    }
}

#[test]
fn gives_up_once_and_starts_over_when_it_is_started_after_that() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
    let mut record = Record::default();
    assert_eq!(before(&mut record, &node), Before::Rest(Duration::ZERO), "nothing has failed");
    record.start_over(Path::new("/run/corten"), vec!["--port=1".into()], output::now());
    while record.given_up.is_none() {
        record.note_begin(7, 0, output::now());
        record.note_end(How::Exited(1), Vec::new(), output::now());
        if record.given_up.is_none() {
            assert!(matches!(before(&mut record, &node), Before::Rest(it) if it > Duration::ZERO), "{record:?}");
        }
    }
    assert_eq!(before(&mut record, &node), Before::GiveUp);
    assert_eq!(before(&mut record, &node), Before::Rest(Duration::ZERO), "somebody started the unit");
    assert!(record.given_up.is_none() && record.options == ["--port=1"]);
}
