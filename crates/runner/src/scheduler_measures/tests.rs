use corten_meta::{Cause, Status};
use corten_scheduler::{Change, Subject};

use super::*;

/// The rows of one metric: its labels, how many there are, and their sum.
fn rows(measures: &SchedulerMeasures, name: &str) -> Vec<(String, u64, f64)> {
    let all = measures.all();
    let metric = all.iter().find(|it| it.metric.name == name).expect("there is one of this name");
    metric.rows.iter().map(|(labels, it)| (labels.join(" "), it.n, it.seconds)).collect()
}

#[test]
fn what_is_told_is_counted_under_its_labels() {
    let measures = SchedulerMeasures::new(&[Profile::default()]);
    let profile = "default-scheduler";
    let span = Span { from: Moment(1_000_000), to: Moment(4_000_000) };
    let (point, status) = (ExtensionPoint::Filter, PointStatus::Success);
    let event = QueueEvent::Of(Subject::Node, Change::Add);
    let two = PluginSet::from_iter([0, 7]);
    for fact in [
        Fact::Ran { point, status, profile, span },
        Fact::Ran { point, status, profile: "of nobody", span },
        Fact::Searched(span),
        Fact::Tried { result: TryResult::Unschedulable, profile, span },
        Fact::Scheduled { n_tries: 2, waited: Duration::from_millis(20) },
        Fact::Scheduled { n_tries: 40, waited: Duration::from_secs(60) },
        Fact::Queued { queue: PodQueue::Backoff, event },
        Fact::SoughtVictims,
        Fact::ChoseVictims { n_pods: 3 },
        Fact::Evaluated { point, plugins: two, profile },
        Fact::Evaluated { point: ExtensionPoint::Score, plugins: two, profile },
        Fact::Evaluated { point, plugins: two, profile },
        Fact::PluginRan { plugin: 0, point, status, span },
        Fact::Refused { plugins: two, profile },
        Fact::Refused { plugins: two, profile },
        Fact::RefusedNoMore { plugins: two, profile },
        Fact::RefusedNoMore { plugins: two, profile: "of nobody" },
    ] {
        measures.tell(&fact);
    }
    measures.set_pending(Pending { active: 1, backoff: 2, unschedulable: 3, gated: 4 });
    let row = |labels: &str, n: u64, sum: f64| (labels.to_owned(), n, sum);
    for (name, expected) in [
        ("framework_extension_point_duration_seconds", vec![row("Filter default-scheduler Success", 1, 0.003)]),
        ("scheduling_algorithm_duration_seconds", vec![row("", 1, 0.003)]),
        ("schedule_attempts_total", vec![row("default-scheduler unschedulable", 1, 1.0)]),
        ("scheduling_attempt_duration_seconds", vec![row("default-scheduler unschedulable", 1, 0.003)]),
        ("pod_scheduling_attempts", vec![row("", 2, 42.0)]),
        ("pod_scheduling_sli_duration_seconds", vec![row("2", 1, 0.02), row("15+", 1, 60.0)]),
        ("queue_incoming_pods_total", vec![row("NodeAdd backoff", 1, 1.0)]),
        ("preemption_attempts_total", vec![row("", 1, 1.0)]),
        ("preemption_victims", vec![row("", 1, 3.0)]),
        (
            "plugin_evaluation_total",
            vec![
                row("Filter SchedulingGates default-scheduler", 2, 2.0),
                row("Filter NodeResourcesFit default-scheduler", 2, 2.0),
                row("Score SchedulingGates default-scheduler", 1, 1.0),
                row("Score NodeResourcesFit default-scheduler", 1, 1.0),
            ],
        ),
        ("plugin_execution_duration_seconds", vec![row("Filter SchedulingGates Success", 1, 0.003)]),
        (
            "unschedulable_pods",
            vec![row("SchedulingGates default-scheduler", 1, 1.0), row("NodeResourcesFit default-scheduler", 1, 1.0)],
        ),
        (
            "pending_pods",
            vec![row("active", 1, 1.0), row("backoff", 2, 2.0), row("unschedulable", 3, 3.0), row("gated", 4, 4.0)],
        ),
    ] {
        assert_eq!(rows(&measures, &format!("scheduler_{name}")), expected, "{name}");
    }
}

#[test]
fn of_a_scheduler_that_has_ended_no_pod_waits() {
    let measures = SchedulerMeasures::new(&[Profile::default()]);
    let (plugins, profile) = (PluginSet::from_iter([3]), "default-scheduler");
    measures.tell(&Fact::Refused { plugins, profile });
    measures.ended();
    // What it says while it ends counts for nothing.
    measures.tell(&Fact::RefusedNoMore { plugins, profile });
    assert_eq!(rows(&measures, REFUSED.name), []);
}

#[test]
fn a_tenth_of_tries_is_timed_and_no_two_in_a_moment() {
    let measures = SchedulerMeasures::new(&[]);
    assert!(measures.times_plugins(), "the first");
    let n_timed = (0..1_000).filter(|_| measures.times_plugins()).count();
    assert!(n_timed <= 100, "{n_timed}");
    measures.timed_at.store(0, Relaxed);
    let n_timed = (0..10).filter(|_| measures.times_plugins()).count();
    assert_eq!(n_timed, 1);
}

#[test]
fn who_was_too_late_is_counted() {
    let measures = SchedulerMeasures::new(&[]);
    let refused = |cause: &str| {
        let mut status = Status::failure(409, "Conflict", "no");
        let cause = Cause { reason: cause.into(), ..Cause::default() };
        status.details.get_or_insert_default().causes.push(cause);
        Err(status.into())
    };
    for bound in [
        Ok(Binder::This),
        Ok(Binder::Another("n2".to_owned())),
        refused(NODE_HAS_NO_ROOM),
        refused(NODE_HAS_NO_ROOM),
        refused("Other"),
        Err(Status::failure(409, "Conflict", "no details").into()),
    ] {
        BindingConflict::of(&bound).into_iter().for_each(|it| measures.conflicted(it));
    }
    let expected = [("no_room".to_owned(), 2, 2.0), ("bound_elsewhere".to_owned(), 1, 1.0)];
    assert_eq!(rows(&measures, CONFLICTS.name), expected);
}

/// As upstream's `ExponentialBuckets` makes them.
#[test]
fn bounds_are_upstreams() {
    let measures = SchedulerMeasures::new(&[Profile::default()]);
    let of = |name: &str| {
        let kind = measures.all().iter().find(|it| it.metric.name.ends_with(name)).map(|it| it.metric.kind);
        let Some(MetricKind::Histogram(bounds)) = kind else { panic!("{name} is a histogram") };
        (bounds.len(), bounds[0], bounds[bounds.len() - 1])
    };
    assert_eq!(of("point_duration_seconds"), (12, 0.0001, 0.2048));
    assert_eq!(of("attempt_duration_seconds"), (15, 0.001, 16.384));
    assert_eq!(of("algorithm_duration_seconds"), (15, 0.001, 16.384));
    assert_eq!(of("sli_duration_seconds"), (20, 0.01, 5242.88));
    assert_eq!(of("scheduling_attempts"), (5, 1.0, 16.0));
    assert_eq!(of("preemption_victims"), (7, 1.0, 64.0));
    let (n_bounds, first, last) = of("plugin_execution_duration_seconds");
    assert_eq!((n_bounds, first, (last * 1e6).round()), (20, 0.00001, 22168.0));
}

#[test]
fn a_value_is_counted_up_to_the_first_bound_that_holds_it() {
    let histogram = Histogram::new(&VICTIMS);
    [1.0, 2.0, 3.0, 65.0].iter().for_each(|it| histogram.observe(*it));
    let up_to: Vec<u64> = histogram.counted().up_to.iter().map(|it| it.1).collect();
    assert_eq!((up_to, histogram.counted().n), (vec![1, 2, 3, 3, 3, 3, 3], 4));
}
