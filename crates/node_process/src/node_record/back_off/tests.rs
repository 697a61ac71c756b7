use super::*;

/// When it failed, in seconds before now, and what follows.
const CASES: &[(&str, &[i64], Next)] = &[
    ("the first", &[0], Next::RestartAfter(PAUSE)),
    ("the second within the window", &[599, 0], Next::RestartAfter(Duration::from_secs(2))),
    ("the one before is long over", &[600, 0], Next::RestartAfter(PAUSE)),
    ("many, and all are long over", &[9_000; 40], Next::RestartAfter(PAUSE)),
    ("a loop", &[7, 6, 4, 0], Next::RestartAfter(Duration::from_secs(8))),
    ("pauses have an end", &[61, 60, 58, 54, 46, 30, 0], Next::RestartAfter(PAUSE_MAX)),
    ("the last attempt", &[200, 190, 180, 170, 160, 150, 140, 130, 0], Next::RestartAfter(PAUSE_MAX)),
    ("one more than that", &[200, 190, 180, 170, 160, 150, 140, 130, 120, 0], Next::GiveUp),
    ("one of them is over", &[600, 190, 180, 170, 160, 150, 140, 130, 120, 0], Next::RestartAfter(PAUSE_MAX)),
    ("the clock was set back", &[-3_600, -3_599, 0], Next::RestartAfter(Duration::from_secs(4))),
    ("the clock was set back in a loop", &[-3_600; 10], Next::GiveUp),
    ("none", &[], Next::RestartAfter(PAUSE)),
];

#[test]
fn pauses_grow_and_end() {
    let now = Time::from_unix_seconds(1_800_000_000);
    for (name, before, follows) in CASES {
        let failures: Vec<Time> = before.iter().map(|it| Time::from_unix_seconds(1_800_000_000 - it)).collect();
        assert_eq!(next(&failures, now), *follows, "{name}");
    }
}

#[test]
fn a_loop_that_fails_at_once_is_given_up_within_minutes() {
    let (mut now, mut failures) = (Time::from_unix_seconds(1_800_000_000), Vec::new());
    let begin = now;
    loop {
        failures.push(now);
        match next(&failures, now) {
            Next::RestartAfter(pause) => now = now.after(pause),
            Next::GiveUp => break,
        }
    }
    assert_eq!((failures.len(), now.since(begin)), (FAILURES_MAX, Duration::from_secs(151)));
    assert!(now.since(begin) < WINDOW, "or it would never be given up");
}
