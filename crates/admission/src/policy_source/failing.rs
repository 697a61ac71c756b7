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

    /// Those that are still what they were, by their names.
    pub(super) fn all(&self, is_current: impl Fn(&str, u64) -> bool) -> Vec<(String, FailingPolicy)> {
        let mut all = self.0.lock();
        all.retain(|name, it| is_current(name, it.0));
        all.iter().map(|(name, it)| (name.clone(), it.1.clone())).collect()
    }
}
