//! What the Pods of a machine must be like after a boot.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::machine::not_ready;

/// How a Pod has to be after a cut, where it shall not run.
const AFTER: &str = "after-a-cut";
/// It runs until the machine ends, and must not start again.
const FAILS: &str = "FailsWithMachine";

/// How often each container had been started again, by its Pod's uid and its name.
pub(super) type Restarts = BTreeMap<(String, String), u64>;

fn text<'a>(of: &'a Value, path: &str) -> &'a str {
    of.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn containers(pod: &Value) -> &[Value] {
    pod.pointer("/status/containerStatuses").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What is still to come of it, in words.
pub(super) fn waits_for(pod: &Value, booted: &str) -> Option<String> {
    let (name, phase) = (text(pod, "/metadata/name"), text(pod, "/status/phase"));
    let wanted = match pod["metadata"]["labels"][AFTER].as_str() {
        // Times of this form are in order when their texts are.
        Some(FAILS) if text(pod, "/metadata/creationTimestamp") < booted => "Failed",
        Some(FAILS) | None => return not_ready(pod, booted).map(str::to_owned),
        Some(wanted) => wanted,
    };
    (phase != wanted).then(|| format!("{name} is {phase} and has to be {wanted}"))
}

/// As `kubectl rollout status` has it: a rollout that the cut came into goes on after the boot, and has its end, too.
pub(super) fn is_rolled_out(deployment: &Value) -> bool {
    let (status, wanted) = (&deployment["status"], &deployment["spec"]["replicas"]);
    let has_all = |count: &str| &status[count] == wanted;
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["updatedReplicas", "replicas", "availableReplicas"].into_iter().all(has_all)
}

pub(super) fn restarts(pods: &[Value]) -> Restarts {
    let of_pod = |pod: &Value| {
        let uid = text(pod, "/metadata/uid").to_owned();
        let counts = containers(pod).iter().map(move |it| {
            ((uid.clone(), text(it, "/name").to_owned()), it["restartCount"].as_u64().unwrap_or_default())
        });
        counts.collect::<Vec<_>>()
    };
    pods.iter().flat_map(of_pod).collect()
}

/// What does not fit of Pods that are as they should be: `before` is from before the first of `n_cuts`.
pub(super) fn wrong(pods: &[Value], before: &Restarts, n_cuts: u64, now: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for pod in pods {
        let name = text(pod, "/metadata/name");
        for container in containers(pod) {
            let of = format!("{name}/{}", text(container, "/name"));
            for state in ["state", "lastState"] {
                let ended = &container[state]["terminated"];
                if let Some(what) = wrong_end(ended, now) {
                    wrong.push(format!("{of}: {state}: {what}: {ended}"));
                }
            }
            let key = (text(pod, "/metadata/uid").to_owned(), text(container, "/name").to_owned());
            let Some(before) = before.get(&key) else { continue };
            let count = container["restartCount"].as_u64().unwrap_or_default();
            let is_running = !container["state"]["running"].is_null();
            // One that a cut caught between its making and its start may count once more.
            let allowed = if is_running { before + 1..=before + n_cuts + 1 } else { *before..=*before };
            if !allowed.contains(&count) {
                wrong.push(format!("{of} was started again {before} times before {n_cuts} cuts, and now {count}"));
            }
        }
        let exit = pod.pointer("/status/containerStatuses/0/state/terminated/exitCode").and_then(Value::as_i64);
        let fits = match pod["metadata"]["labels"][AFTER].as_str() {
            Some("Succeeded") => exit == Some(0),
            Some("Failed") => exit == Some(3),
            Some(FAILS) => exit.is_none_or(|it| it != 0),
            _ => true,
        };
        if !fits {
            wrong.push(format!("{name} ended with {exit:?}"));
        }
    }
    wrong
}

/// The objects that `corten why` names as not fine; None where it has no verdict.
pub(super) fn complaints(why: &str) -> Option<Vec<&str>> {
    let named = |line: &str| line.starts_with("   ") && line.contains("corten why ");
    let objects: Vec<&str> = why.lines().filter(|it| named(it)).filter_map(|it| it.split_whitespace().next()).collect();
    (why.contains("is fine") || !objects.is_empty()).then_some(objects)
}

/// None for one that has not ended.
fn wrong_end(ended: &Value, now: &str) -> Option<&'static str> {
    if ended.is_null() {
        return None;
    }
    let (started, finished) = (text(ended, "/startedAt"), text(ended, "/finishedAt"));
    if ended["exitCode"].as_i64().is_none() {
        Some("no exit code")
    } else if matches!(text(ended, "/reason"), "" | "OOMKilled" | "StartError" | "ContainerCannotRun") {
        Some("not the reason of a machine's end")
    } else if !finished.is_empty() && finished < started {
        Some("ended before it began")
    } else if finished > now {
        Some("ends in the future")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOOTED: &str = "2026-01-02T03:04:05Z";
    const NOW: &str = "2026-01-02T03:05:00Z";

    fn pod(count: u64, last: Value) -> Value {
        let running = json!({"running": {"startedAt": BOOTED}});
        let status =
            json!({"name": "main", "restartCount": count, "state": running, "lastState": {"terminated": last}});
        json!({"metadata": {"name": "a", "uid": "u"}, "status": {"phase": "Running", "containerStatuses": [status]}})
    }

    fn end(reason: &str, finished: &str) -> Value {
        json!({"exitCode": 255, "reason": reason, "startedAt": "2026-01-02T03:00:00Z", "finishedAt": finished})
    }

    fn wrong_of(pod: Value, before: u64) -> Vec<String> {
        wrong(&[pod], &Restarts::from([(("u".into(), "main".into()), before)]), 1, NOW)
    }

    #[test]
    fn why_complains_of_objects_or_says_that_all_is_fine() {
        let why = "2 objects of the cluster are not fine, for 1 cause:\n✖ PodFailed: container main ended with exit code 3\n   \
                   pod/failed in default, for 37s:  corten why pod/failed -n default\n";
        assert_eq!(complaints(why), Some(vec!["pod/failed"]));
        assert_eq!(complaints("the cluster is fine: nothing is waited for\n"), Some(vec![]));
        assert_eq!(complaints("error: not known"), None);
    }

    #[test]
    fn a_rollout_is_at_its_end_when_no_other_pods_are_left() {
        let deployment = |seen: u64, replicas: u64| {
            json!({"metadata": {"generation": 4}, "spec": {"replicas": 2}, "status": {
                "observedGeneration": seen, "replicas": replicas, "updatedReplicas": 2, "availableReplicas": 2}})
        };
        assert!(is_rolled_out(&deployment(4, 2)));
        assert!(!is_rolled_out(&deployment(3, 2)), "a change that nobody has looked at");
        assert!(!is_rolled_out(&deployment(4, 3)), "one of before still ends");
    }

    #[test]
    fn a_cut_is_one_restart_and_at_most_two() {
        let fine = || end("Unknown", "2026-01-02T03:04:00Z");
        assert!(wrong_of(pod(3, fine()), 3)[0].contains("3 times before 1 cuts, and now 3"), "none was counted");
        assert_eq!(wrong_of(pod(4, fine()), 3), Vec::<String>::new());
        assert_eq!(wrong_of(pod(5, fine()), 3), Vec::<String>::new());
        assert_eq!(wrong_of(pod(6, fine()), 3).len(), 1);
    }

    #[test]
    fn an_end_has_a_reason_and_its_time() {
        for (last, said) in [
            (end("", "2026-01-02T03:04:00Z"), "not the reason"),
            (end("OOMKilled", "2026-01-02T03:04:00Z"), "not the reason"),
            (end("Unknown", "2026-01-02T02:59:59Z"), "before it began"),
            (end("Unknown", "2026-01-02T03:05:01Z"), "in the future"),
            (json!({"reason": "Unknown"}), "no exit code"),
        ] {
            let wrong = wrong_of(pod(1, last), 0);
            assert!(wrong.len() == 1 && wrong[0].contains(said), "{wrong:?}");
        }
    }

    #[test]
    fn what_had_ended_stays_ended_and_what_must_not_start_again_has_failed() {
        let ended = |label: &str, phase: &str, exit: i64, made: &str| {
            json!({
                "metadata": {"name": "a", "uid": "u", "labels": {AFTER: label}, "creationTimestamp": made},
                "status": {"phase": phase, "containerStatuses": [
                    {"name": "main", "restartCount": 0, "state": {"terminated": {
                        "exitCode": exit, "reason": "Error", "startedAt": BOOTED, "finishedAt": BOOTED}}},
                ]},
            })
        };
        let old = "2026-01-02T03:00:00Z";
        assert_eq!(waits_for(&ended("Succeeded", "Succeeded", 0, old), BOOTED), None);
        assert!(waits_for(&ended("Succeeded", "Running", 0, old), BOOTED).is_some());
        assert_eq!(waits_for(&ended("FailsWithMachine", "Failed", 137, old), BOOTED), None);
        assert!(waits_for(&ended("FailsWithMachine", "Running", 137, old), BOOTED).is_some());
        assert!(waits_for(&ended("FailsWithMachine", "Failed", 137, BOOTED), BOOTED).is_some(), "made since: it runs");
        assert_eq!(wrong_of(ended("Succeeded", "Succeeded", 0, old), 0), Vec::<String>::new());
        assert_eq!(wrong_of(ended("Succeeded", "Succeeded", 1, old), 0), ["a ended with Some(1)"]);
        assert_eq!(wrong_of(ended("Failed", "Failed", 3, old), 0), Vec::<String>::new());
        assert_eq!(wrong_of(ended("FailsWithMachine", "Failed", 0, old), 0), ["a ended with Some(0)"]);
    }
}
