//! `leaderElection`: component-base's `LeaderElectionConfiguration`. It is about a scheduler that is a process of its own.

use std::time::Duration;

use corten_meta::{
    field::{dns1123_label, dns1123_subdomain},
    shortened,
};

use super::reader::{At, Reader};

/// client-go's `JitterFactor`: a retry may come so much later.
const JITTER: f64 = 1.2;
const LOCK: &str = "leases";

/// The Lease whose holder schedules, and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    pub namespace: String,
    pub name: String,
    /// How long after the last renewal others wait.
    pub lease_duration: Duration,
    /// How long after the last renewal the holder goes on.
    pub renew_deadline: Duration,
    /// How often the lease is tried for, or renewed.
    pub retry_period: Duration,
}

/// None where `leaderElect` is not true. Upstream elects where nothing is said; here one who wants that says so, because the scheduler of an
/// API server needs no lease.
pub(super) fn election(root: &At<'_>, reader: &mut Reader) -> Option<LeaderElection> {
    let fields = [
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
    ];
    let at = reader.child(root, "leaderElection", &fields);
    let is_elected = reader.truth(&at, "leaderElect");
    let mut text = |field, default| match reader.text(&at, field) {
        "" => default,
        other => other,
    };
    let (lock, name) = (text("resourceLock", LOCK), text("resourceName", "kube-scheduler").to_owned());
    let namespace = text("resourceNamespace", "kube-system").to_owned();
    let mut seconds = |field, default| reader.duration(&at, field, Duration::from_secs(default));
    let election = LeaderElection {
        namespace,
        name,
        lease_duration: seconds("leaseDuration", 15),
        renew_deadline: seconds("renewDeadline", 10),
        retry_period: seconds("retryPeriod", 2),
    };
    if !is_elected {
        return None;
    }
    if lock != LOCK {
        let what = format!("Invalid value: {:?}: resourceLock value must be \"leases\"", shortened(lock));
        reader.problem(&at.path("resourceLock"), &what);
    }
    let (name, namespace) = (&election.name, &election.namespace);
    for (field, text, wrong) in
        [("resourceName", name, dns1123_subdomain(name)), ("resourceNamespace", namespace, dns1123_label(namespace))]
    {
        for why in wrong {
            reader.problem(&at.path(field), &format!("Invalid value: {:?}: {why}", shortened(text)));
        }
    }
    for (field, what) in wrong_times(&election) {
        reader.problem(&at.path(field), &format!("Invalid value: {what}"));
    }
    Some(election)
}

/// `ValidateLeaderElectionConfiguration` and `NewLeaderElector`; a Lease counts whole seconds.
fn wrong_times(it: &LeaderElection) -> Vec<(&'static str, &'static str)> {
    let mut wrong = Vec::new();
    if it.lease_duration < Duration::from_secs(1) {
        wrong.push(("leaseDuration", "must be at least 1 second"));
    }
    if it.retry_period.is_zero() {
        wrong.push(("retryPeriod", "must be greater than zero"));
    }
    if Duration::from_secs(it.lease_duration.as_secs()) <= it.renew_deadline {
        wrong.push(("leaseDuration", "LeaseDuration must be greater than RenewDeadline"));
    }
    if it.renew_deadline <= it.retry_period.mul_f64(JITTER) {
        wrong.push(("renewDeadline", "must be greater than 1.2 times retryPeriod"));
    }
    wrong
}
