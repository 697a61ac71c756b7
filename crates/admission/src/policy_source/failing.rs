//! Which policies fail whenever they are asked, or deny all that they are asked about, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::{Resource, Time};
use corten_webhook::excerpt;
use parking_lot::Mutex;

use crate::{
    failure_row::{Failure, FailureRow},
    webhook_source::DENIALS_MIN,
};

/// What is wrong with the answers of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyTrouble {
    Fails,
    /// What it made of the object is another one, which is refused, whatever its `failurePolicy`.
    Moves,
    /// No, to each request.
    Denies,
    /// A binding of it cannot give it its parameters.
    Misconfigured,
}

/// What a policy last did, time after time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingPolicy {
    pub trouble: PolicyTrouble,
    /// Of a validating policy, which may allow one and deny another: what it was asked about. Of others it is empty.
    pub operation: &'static str,
    /// Of one that could not be asked for what this binding names; else it is empty.
    pub binding: String,
    /// Of the first in an unbroken row, or of the first that is remembered of those that failed now and then.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
    /// With which of its parameters the newest one was evaluated; empty where it was with none.
    pub parameter: String,
    /// None where the newest answer was a good one.
    pub n_in_a_row: u64,
    /// How many of the last so many failed, where some were answered between them.
    pub now_and_then: Option<(u32, u32)>,
    /// `failurePolicy: Ignore`.
    pub may_fail: bool,
}

/// What is wrong with one answer.
pub(crate) struct PolicyFault {
    pub(crate) trouble: PolicyTrouble,
    pub(crate) message: String,
    /// As [`FailingPolicy::parameter`].
    pub(crate) parameter: String,
}

impl PolicyFault {
    /// It fails whatever its parameters are.
    pub(crate) fn fails(message: impl Into<String>) -> Self {
        Self { trouble: PolicyTrouble::Fails, message: message.into(), parameter: String::new() }
    }
}

/// Whose answers are counted in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PolicyOperation {
    pub(super) resource: Resource,
    pub(super) policy: String,
    pub(super) operation: &'static str,
}

/// With the edition of the policy: what another one did is nobody's concern.
#[derive(Default)]
pub(super) struct FailingPolicies(Mutex<BTreeMap<PolicyOperation, FailureRecord>>);

#[derive(Default)]
struct FailureRecord {
    edition: u64,
    row: FailureRow<FailingPolicy>,
}

impl Failure for FailingPolicy {
    fn is_denial(&self) -> bool {
        self.trouble == PolicyTrouble::Denies
    }

    /// A loop asks for the same new object again and again: that it is denied is told of the object, with the policy's words.
    fn is_told(&self) -> bool {
        !self.is_denial() || self.n_in_a_row >= DENIALS_MIN && self.operation != "CREATE"
    }

    fn since(&self) -> Time {
        self.since
    }

    fn now_and_then(self, failed_of: (u32, u32), since: Time, goes_on: bool) -> Self {
        let n_in_a_row = if goes_on { self.n_in_a_row } else { 0 };
        Self { now_and_then: Some(failed_of), since, n_in_a_row, ..self }
    }
}

impl FailingPolicies {
    pub(super) fn failed(&self, asked: PolicyOperation, edition: u64, fault: &PolicyFault, may_fail: bool, now: Time) {
        let mut all = self.0.lock();
        let (operation, trouble) = (asked.operation, fault.trouble);
        let record = all.entry(asked).or_default();
        if record.edition != edition {
            *record = FailureRecord { edition, ..FailureRecord::default() };
        }
        let before = record.row.goes_on().filter(|it| it.trouble == trouble);
        let (since, n) = before.map_or((now, 0), |it| (it.since, it.n_in_a_row));
        let failing = FailingPolicy {
            trouble,
            operation,
            binding: String::new(),
            since,
            message: excerpt(&fault.message).into_owned(),
            parameter: fault.parameter.clone(),
            n_in_a_row: n.saturating_add(1),
            now_and_then: None,
            may_fail: may_fail && trouble != PolicyTrouble::Moves,
        };
        record.row.note(failing, now);
    }

    pub(super) fn worked(&self, asked: impl FnOnce() -> PolicyOperation, now: Time) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let asked = asked();
        if all.get_mut(&asked).is_some_and(|it| it.row.worked(now)) {
            all.remove(&asked);
        }
    }

    /// Forgets those that are no longer what they were.
    pub(super) fn retain(&self, is_current: impl Fn(&Resource, &str, u64) -> bool) {
        self.0.lock().retain(|asked, it| is_current(&asked.resource, &asked.policy, it.edition));
    }

    /// What is to be told, with kind and name of the policy, in order.
    pub(super) fn all(&self, now: Time) -> Vec<(Resource, String, FailingPolicy)> {
        let all = self.0.lock();
        let told = all.iter().filter_map(|(asked, it)| Some((asked, it.row.told(now)?)));
        told.map(|(asked, it)| (asked.resource.clone(), asked.policy.clone(), it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use corten_api::resources::VALIDATING_ADMISSION_POLICIES;

    use super::*;

    fn asked(policy: &str, operation: &'static str) -> PolicyOperation {
        PolicyOperation { resource: VALIDATING_ADMISSION_POLICIES, policy: policy.to_owned(), operation }
    }

    fn denies(why: &str) -> PolicyFault {
        PolicyFault { trouble: PolicyTrouble::Denies, ..PolicyFault::fails(why) }
    }

    fn told(all: &FailingPolicies) -> Vec<(String, u64, i64, String)> {
        let all = all.all(Time::from_unix_seconds(10)).into_iter();
        all.map(|(_, name, it)| (name, it.n_in_a_row, it.since.unix_millis() / 1000, it.message)).collect()
    }

    #[test]
    fn a_row_of_failures_is_counted_until_it_works_or_is_another() {
        let (failing, at) = (FailingPolicies::default(), Time::from_unix_seconds);
        for second in 0..3 {
            failing.failed(asked("a", ""), 1, &PolicyFault::fails(format!("no {second}")), false, at(second));
        }
        assert_eq!(told(&failing), [("a".to_owned(), 3, 0, "no 2".to_owned())]);
        failing.failed(asked("a", ""), 2, &PolicyFault::fails("changed"), false, at(9));
        assert_eq!(told(&failing), [("a".to_owned(), 1, 9, "changed".to_owned())], "another policy, another row");
        failing.failed(asked("b", ""), 1, &PolicyFault::fails("no"), true, at(9));
        failing.worked(|| asked("a", ""), at(9));
        assert_eq!(told(&failing), [("b".to_owned(), 1, 9, "no".to_owned())]);
        failing.retain(|_, name, edition| (name, edition) != ("b", 1));
        assert!(told(&failing).is_empty());
    }

    #[test]
    fn one_that_fails_now_and_then_is_told_though_it_has_just_worked() {
        let (failing, at) = (FailingPolicies::default(), Time::from_unix_seconds);
        for second in 0..3 {
            failing.failed(asked("a", ""), 1, &PolicyFault::fails("no"), false, at(second));
            failing.worked(|| asked("a", ""), at(second));
        }
        let all = failing.all(at(10));
        let [(_, _, it)] = &all[..] else { panic!("it fails now and then") };
        assert_eq!((it.now_and_then, it.n_in_a_row, &*it.message), (Some((3, 6)), 0, "no"));
        assert!(failing.all(at(1000)).is_empty(), "that was long ago");
    }

    #[test]
    fn a_row_of_denials_is_told_when_it_is_long_and_for_each_operation() {
        let (failing, at) = (FailingPolicies::default(), Time::from_unix_seconds);
        for second in 0..5 {
            assert!(told(&failing).is_empty(), "now and then is what it is there for");
            failing.failed(asked("a", "DELETE"), 1, &denies("no"), false, at(second));
            failing.worked(|| asked("a", "CREATE"), at(second));
        }
        assert_eq!(told(&failing), [("a".to_owned(), 5, 0, "no".to_owned())]);
        (0..9).for_each(|it| failing.failed(asked("a", "CREATE"), 1, &denies("no"), false, at(it)));
        assert_eq!(told(&failing).len(), 1, "what a loop asks for again is no row of its own");
        failing.worked(|| asked("a", "DELETE"), at(9));
        assert!(told(&failing).is_empty());
    }
}
