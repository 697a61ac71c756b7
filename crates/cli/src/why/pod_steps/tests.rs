use super::*;

fn done(name: &str, started: i64, finished: i64) -> Step {
    let at = |it| Some(Time::from_unix_seconds(it));
    Step { started: at(started), finished: at(finished), ..step(name, StepState::Done) }
}

#[test]
fn no_part_of_a_start_is_longer_than_the_whole() {
    let first = |volumes: (i64, i64), message: &str| {
        let container = Step { message: message.into(), ..done("container app", 14, 15) };
        let volumes = done("volumes", volumes.0, volumes.1);
        how_it_started(&[done("scheduled", 0, 1), done("network", 12, 14), volumes, container, done("ready", 15, 35)])
    };
    for (volumes, message, said) in [
        ((1, 12), "running", "35s after it began; the longest step was ready, 20s"),
        // Its node came back, and looked at its volumes anew.
        ((130, 131), "running", "35s after it began; the longest step was ready, 20s"),
        ((1, 12), "running; 1 restart", "after 1 restart of container app"),
        ((1, 12), "running; 12 restarts", "after 12 restarts of container app"),
    ] {
        let found = first(volumes, message).expect("it is ready");
        assert!(found.ends_with(said), "{found}");
    }
}
