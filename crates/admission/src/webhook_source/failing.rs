//! Which admission webhooks fail, or deny all they are asked, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::{Resource, Time};
use corten_webhook::excerpt;
use parking_lot::Mutex;

use super::compiled::Hook;
use crate::failure_row::{Failure, FailureRow};

/// What is wrong with the answers of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// None came, or none that counts as one.
    NoAnswer,
    /// Whether it is to be asked cannot be found out: one of its `matchConditions` fails.
    Condition,
    /// What it made of the object is another one, which is refused, whatever its `failurePolicy`.
    Moves,
    /// No, to each request.
    Denies,
}

/// What a webhook last did, time after time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingWebhook {
    pub webhook: String,
    pub trouble: Trouble,
    /// Of the first in an unbroken row, or of the first that is remembered of those that failed now and then.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
    /// None where the newest answer was a good one.
    pub n_in_a_row: u64,
    /// How many of the last so many failed, where some were answered between them.
    pub now_and_then: Option<(u32, u32)>,
    /// `failurePolicy: Ignore`.
    pub may_fail: bool,
}

/// Who denies now and then does what it is there for.
pub(crate) const DENIALS_MIN: u64 = 5;

/// By the kind of their configuration, and there by what names them among all: configuration, name and place.
#[derive(Default)]
pub(super) struct FailingWebhooks(Mutex<BTreeMap<(Resource, String), FailureRecord>>);

struct FailureRecord {
    configuration: String,
    /// Of its configuration: what another one did is nobody's concern.
    resource_version: String,
    row: FailureRow<FailingWebhook>,
}

impl FailureRecord {
    fn of(hook: &Hook) -> Self {
        let (configuration, resource_version) = (hook.configuration.clone(), hook.resource_version.clone());
        Self { configuration, resource_version, row: FailureRow::default() }
    }
}

impl Failure for FailingWebhook {
    fn is_denial(&self) -> bool {
        self.trouble == Trouble::Denies
    }

    fn is_told(&self) -> bool {
        !self.is_denial() || self.n_in_a_row >= DENIALS_MIN
    }

    fn since(&self) -> Time {
        self.since
    }

    fn now_and_then(self, failed_of: (u32, u32), since: Time, goes_on: bool) -> Self {
        let n_in_a_row = if goes_on { self.n_in_a_row } else { 0 };
        Self { now_and_then: Some(failed_of), since, n_in_a_row, ..self }
    }
}

impl FailingWebhooks {
    pub(super) fn failed(&self, of: &Resource, hook: &Hook, trouble: Trouble, message: &str, now: Time) {
        let mut all = self.0.lock();
        let record = all.entry((of.clone(), hook.id.clone())).or_insert_with(|| FailureRecord::of(hook));
        if record.resource_version != hook.resource_version {
            *record = FailureRecord::of(hook);
        }
        let before = record.row.goes_on().filter(|it| it.trouble == trouble);
        let (since, n) = before.map_or((now, 0), |it| (it.since, it.n_in_a_row));
        let failing = FailingWebhook {
            webhook: hook.name.clone(),
            trouble,
            since,
            message: excerpt(message).into_owned(),
            n_in_a_row: n.saturating_add(1),
            now_and_then: None,
            may_fail: hook.may_fail && trouble != Trouble::Moves,
        };
        record.row.note(failing, now);
    }

    pub(super) fn answered(&self, of: &Resource, hook: &Hook, now: Time) {
        self.worked(of, hook, now, |_| true);
    }

    /// Its conditions leave a request out: they do not fail, and it was not asked.
    pub(super) fn excluded(&self, of: &Resource, hook: &Hook, now: Time) {
        self.worked(of, hook, now, |it| it == Some(Trouble::Condition));
    }

    fn worked(&self, of: &Resource, hook: &Hook, now: Time, ends: impl Fn(Option<Trouble>) -> bool) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let id = (of.clone(), hook.id.clone());
        let record = all.get_mut(&id).filter(|it| ends(it.row.goes_on().map(|it| it.trouble)));
        if record.is_some_and(|it| it.row.worked(now)) {
            all.remove(&id);
        }
    }

    /// Forgets those that are configured otherwise now, or not at all.
    pub(super) fn retain<'h>(&self, of: &Resource, hooks: impl Iterator<Item = &'h Hook>) {
        let mut all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let versions: BTreeMap<&str, &str> = hooks.map(|it| (&*it.id, &*it.resource_version)).collect();
        all.retain(|(resource, id), it| resource != of || versions.get(&**id) == Some(&&*it.resource_version));
    }

    /// What is to be told, with kind and name of the configuration, in order.
    pub(super) fn all(&self, now: Time) -> Vec<(Resource, String, FailingWebhook)> {
        let all = self.0.lock();
        let told = all.iter().filter_map(|((resource, _), it)| Some((resource, &it.configuration, it.row.told(now)?)));
        told.map(|(resource, configuration, it)| (resource.clone(), configuration.clone(), it)).collect()
    }
}
