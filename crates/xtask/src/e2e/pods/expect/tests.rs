use super::*;

#[test]
fn dots_stand_for_anything() {
    for (pattern, text, fine) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("…b", "ab", true),
        ("a…b…c", "a b b c", true),
        ("a…b", "ba", false),
        ("ab…bc", "abc", false),
        ("…", "", true),
    ] {
        assert_eq!(fits(pattern, text), fine, "{pattern} {text}");
    }
}

#[test]
fn values_fit_by_their_parts() {
    let seen = json!({"a": {"b": "x y", "n": 3, "on": true}, "list": [{"name": "p", "v": 1}, {"name": "q", "v": 2}]});
    for (wanted, fine) in [
        (json!({"a": {"b": "x…"}}), true),
        (json!({"a": {"b": "y"}}), false),
        (json!({"a": {"n": "3", "on": "True"}}), true),
        (json!({"list": [{"name": "q", "v": 2}]}), true),
        (json!({"list": [{"name": "q", "v": 1}]}), false),
        (json!({"missing": null}), true),
        (json!({"a": null}), false),
        (json!({"missing": {"x": 1}}), false),
    ] {
        assert_eq!(value("", &wanted, &seen).is_ok(), fine, "{wanted}");
    }
}

fn pod() -> Value {
    json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
        "containerStatuses": [{"name": "c", "ready": false, "restartCount": 2,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}}}],
    }})
}

#[test]
fn a_glimpse_sees_right_and_wrong() {
    let events = [json!({"type": "Warning", "reason": "BackOff", "message": "Back-off restarting"})];
    for (wanted, fine) in [
        ("{phase: Running}", true),
        ("{phase: Failed}", false),
        ("{conditions: {Ready: False}}", true),
        ("{conditions: {Ready: False ContainersNotReady}}", true),
        ("{conditions: {Ready: True}}", false),
        ("{conditions: {Initialized: True}}", false),
        ("{containers: {i: exited 0 Completed}}", true),
        ("{containers: {c: 'waiting CrashLoopBackOff, last exited 3 Error, restarts 2, not ready'}}", true),
        ("{containers: {c: 'restarts 2+'}}", true),
        ("{containers: {c: 'restarts 3+'}}", false),
        ("{containers: {c: running}}", false),
        ("{containers: {c: sleeping}}", false),
        ("{containers: {other: running}}", false),
        ("{containers: {c: {state: {waiting: {message: back-off…}}}}}", true),
        ("{events: [Warning BackOff …]}", true),
        ("{events: [Normal BackOff …]}", false),
        ("{pod: {status: {phase: Running}}}", true),
    ] {
        let expected: Glimpse = serde_saphyr::from_str(wanted).expect("a glimpse");
        assert_eq!(glimpse(&expected, &pod(), &events).is_ok(), fine, "{wanted}");
    }
}

#[test]
fn order_is_of_events() {
    let event = |reason: &str, name: &str| json!({"reason": reason, "involvedObject": {"fieldPath": format!("spec.containers{{{name}}}")}});
    let events = [event("Started", "a"), event("Started", "b"), event("Killing", "a")];
    let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert!(order(&list(&["Started a", "Killing a"]), &events).is_ok());
    assert!(order(&list(&["Started b", "Started a"]), &events).is_err());
}
