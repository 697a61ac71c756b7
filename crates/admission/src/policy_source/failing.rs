//! Which mutating policies fail whenever they are asked, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::Time;
use corten_webhook::excerpt;
use parking_lot::Mutex;

/// What a policy last did, time after time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingPolicy {
    /// Of the first failure in an unbroken row.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
    pub n_in_a_row: u64,
    /// `failurePolicy: Ignore`.
    pub may_fail: bool,
}

/// By their names, with the revision of the policy: what another one did is nobody's concern.
#[derive(Default)]
pub(super) struct FailingPolicies(Mutex<BTreeMap<String, (u64, FailingPolicy)>>);

impl FailingPolicies {
    pub(super) fn failed(&self, policy: &str, revision: u64, message: &str, may_fail: bool, now: Time) {
        let mut all = self.0.lock();
        let before = all.get(policy).filter(|it| it.0 == revision).map(|it| &it.1);
        let (since, n) = before.map_or((now, 0), |it| (it.since, it.n_in_a_row));
        let message = excerpt(message).into_owned();
        let failing = FailingPolicy { since, message, n_in_a_row: n.saturating_add(1), may_fail };
        all.insert(policy.to_owned(), (revision, failing));
    }

    pub(super) fn worked(&self, policy: &str) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            all.remove(policy);
        }
    }

    /// Forgets those that are no longer what they were.
    pub(super) fn retain(&self, is_current: impl Fn(&str, u64) -> bool) {
        self.0.lock().retain(|name, it| is_current(name, it.0));
    }

    /// All, by their names.
    pub(super) fn all(&self) -> Vec<(String, FailingPolicy)> {
        let all = self.0.lock();
        all.iter().map(|(name, it)| (name.clone(), it.1.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_failures_is_counted_until_it_works_or_is_another() {
        let (failing, at) = (FailingPolicies::default(), Time::from_unix_seconds);
        for second in 0..3 {
            failing.failed("a", 1, &format!("no {second}"), false, at(second));
        }
        let told = |it: &FailingPolicies| -> Vec<(String, u64, i64, String)> {
            let all = it.all().into_iter();
            all.map(|(name, it)| (name, it.n_in_a_row, it.since.unix_millis() / 1000, it.message)).collect()
        };
        assert_eq!(told(&failing), [("a".to_owned(), 3, 0, "no 2".to_owned())]);
        failing.failed("a", 2, "changed", false, at(9));
        assert_eq!(told(&failing), [("a".to_owned(), 1, 9, "changed".to_owned())], "another policy, another row");
        failing.failed("b", 1, "no", true, at(9));
        failing.worked("a");
        assert_eq!(told(&failing), [("b".to_owned(), 1, 9, "no".to_owned())]);
        failing.retain(|name, revision| (name, revision) != ("b", 1));
        assert!(told(&failing).is_empty());
    }
}
