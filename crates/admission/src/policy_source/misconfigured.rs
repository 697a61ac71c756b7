//! Which policies could not be asked for what they are parametrized with: bindings whose parameters are not there.
//!
//! Where parameters are may depend on the request: one namespace has them, and another does not.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Resource, Time};
use corten_webhook::excerpt;
use parking_lot::Mutex;

use super::failing::{FailingPolicy, PolicyTrouble};

/// After the newest refusal it is told for so long: nobody asks again where nobody writes any more.
const TOLD_FOR: Duration = Duration::from_secs(10 * 60);

/// Kind and name of the policy, and the binding.
type Bound = (Resource, String, String);

#[derive(Default)]
pub(super) struct MisconfiguredBindings(Mutex<BTreeMap<Bound, Misconfiguration>>);

struct Misconfiguration {
    /// Of the policy.
    edition: u64,
    /// Of the newest request.
    namespace: String,
    at: Time,
    failing: FailingPolicy,
}

/// What could not be asked, and about a request in which namespace.
pub(super) struct Misconfigured<'a> {
    pub(super) resource: Resource,
    pub(super) policy: &'a str,
    pub(super) edition: u64,
    pub(super) binding: &'a str,
    pub(super) namespace: &'a str,
}

impl MisconfiguredBindings {
    pub(super) fn failed(&self, asked: &Misconfigured<'_>, message: &str, may_fail: bool, now: Time) {
        let id = (asked.resource.clone(), asked.policy.to_owned(), asked.binding.to_owned());
        let mut all = self.0.lock();
        let before = all.get(&id).filter(|it| it.edition == asked.edition && !it.is_past(now)).map(|it| &it.failing);
        let (since, n) = before.map_or((now, 0), |it| (it.since, it.n_in_a_row));
        let failing = FailingPolicy {
            trouble: PolicyTrouble::Misconfigured,
            operation: "",
            binding: asked.binding.to_owned(),
            since,
            message: excerpt(message).into_owned(),
            parameter: String::new(),
            n_in_a_row: n.saturating_add(1),
            now_and_then: None,
            may_fail,
        };
        let namespace = asked.namespace.to_owned();
        all.insert(id, Misconfiguration { edition: asked.edition, namespace, at: now, failing });
    }

    /// The parameters were found. That those of another namespace are there says nothing.
    pub(super) fn worked(&self, asked: &Misconfigured<'_>) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let id = (asked.resource.clone(), asked.policy.to_owned(), asked.binding.to_owned());
        if all.get(&id).is_some_and(|it| it.namespace == asked.namespace) {
            all.remove(&id);
        }
    }

    /// Forgets those of policies that are no longer what they were, and of bindings that are gone.
    pub(super) fn retain(&self, is_current: impl Fn(&Resource, &str, u64, &str) -> bool) {
        self.0.lock().retain(|(resource, policy, binding), it| is_current(resource, policy, it.edition, binding));
    }

    pub(super) fn all(&self, now: Time) -> Vec<(Resource, String, FailingPolicy)> {
        let all = self.0.lock();
        let told = all.iter().filter(|it| !it.1.is_past(now));
        told.map(|((resource, policy, _), it)| (resource.clone(), policy.clone(), it.failing.clone())).collect()
    }
}

impl Misconfiguration {
    fn is_past(&self, now: Time) -> bool {
        now.since(self.at) > TOLD_FOR
    }
}

#[cfg(test)]
mod tests {
    use corten_api::resources::VALIDATING_ADMISSION_POLICIES;

    use super::*;

    #[test]
    fn a_missing_parameter_is_told_until_it_is_there_or_nobody_asks_any_more() {
        let (all, at) = (MisconfiguredBindings::default(), Time::from_unix_seconds);
        let asked = |namespace| Misconfigured {
            resource: VALIDATING_ADMISSION_POLICIES,
            policy: "p",
            edition: 1,
            binding: "b",
            namespace,
        };
        let told = |now| all.all(now).into_iter().map(|it| (it.2.n_in_a_row, it.2.since)).collect::<Vec<_>>();
        all.failed(&asked("x"), "no", false, at(0));
        all.failed(&asked("x"), "no", false, at(1));
        assert_eq!(told(at(2)), [(2, at(0))]);
        all.worked(&asked("y"));
        assert_eq!(told(at(2)).len(), 1, "another namespace has its own");
        assert_eq!(told(at(601)).len(), 1);
        assert_eq!(told(at(602)).len(), 0);
        all.worked(&asked("x"));
        assert_eq!(told(at(2)).len(), 0);
        all.failed(&asked("x"), "no", false, at(3));
        all.retain(|_, _, edition, _| edition == 2);
        assert_eq!(told(at(3)).len(), 0);
    }
}
