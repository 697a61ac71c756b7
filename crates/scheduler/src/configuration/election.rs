//! `leaderElection`: component-base's `LeaderElectionConfiguration`. It is about a scheduler that is a process of its own.

use corten_api::lease_times::{LeaseTimes, WrongTimes};
use corten_meta::{
    field::{dns1123_label, dns1123_subdomain},
    shortened,
};

use super::reader::{At, Reader};
use crate::LeaderElection;

const LOCK: &str = "leases";

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
    let usual = LeaseTimes::default();
    let times = LeaseTimes {
        duration: reader.duration(&at, "leaseDuration", usual.duration),
        renew_deadline: reader.duration(&at, "renewDeadline", usual.renew_deadline),
        retry_period: reader.duration(&at, "retryPeriod", usual.retry_period),
    };
    let election = LeaderElection { namespace, name, times };
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
    for (field, what) in times.wrong().into_iter().map(said) {
        reader.problem(&at.path(field), &format!("Invalid value: {what}"));
    }
    Some(election)
}

/// Of which field, in the words of `ValidateLeaderElectionConfiguration` and `NewLeaderElector`.
fn said(wrong: WrongTimes) -> (&'static str, &'static str) {
    match wrong {
        WrongTimes::DurationTooShort => ("leaseDuration", "must be at least 1 second"),
        WrongTimes::NoRetryPeriod => ("retryPeriod", "must be greater than zero"),
        WrongTimes::DurationWithinRenewal => ("leaseDuration", "LeaseDuration must be greater than RenewDeadline"),
        WrongTimes::RenewalWithinRetry => ("renewDeadline", "must be greater than 1.2 times retryPeriod"),
    }
}
