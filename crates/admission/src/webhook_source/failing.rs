//! Which admission webhooks fail, or deny all they are asked, and since when: what whoever asks why is told.

use std::collections::BTreeMap;

use corten_meta::{Resource, Time};
use corten_webhook::excerpt;
use parking_lot::Mutex;

use super::compiled::Hook;

/// What is wrong with the answers of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// None came, or none that counts as one.
    NoAnswer,
    /// No, to each request.
    Denies,
}

/// What a webhook last did, time after time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingWebhook {
    pub webhook: String,
    pub trouble: Trouble,
    /// Of the first in an unbroken row.
    pub since: Time,
    /// Of the newest one.
    pub message: String,
    pub n_in_a_row: u64,
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
    failing: FailingWebhook,
}

impl FailingWebhooks {
    pub(super) fn failed(&self, of: &Resource, hook: &Hook, trouble: Trouble, message: &str, now: Time) {
        let mut all = self.0.lock();
        let id = (of.clone(), hook.id.clone());
        let before =
            all.get(&id).filter(|it| it.failing.trouble == trouble && it.resource_version == hook.resource_version);
        let (since, n) = before.map_or((now, 0), |it| (it.failing.since, it.failing.n_in_a_row));
        let failing = FailingWebhook {
            webhook: hook.name.clone(),
            trouble,
            since,
            message: excerpt(message).into_owned(),
            n_in_a_row: n.saturating_add(1),
            may_fail: hook.may_fail,
        };
        let known = FailureRecord {
            configuration: hook.configuration.clone(),
            resource_version: hook.resource_version.clone(),
            failing,
        };
        all.insert(id, known);
    }

    pub(super) fn answered(&self, of: &Resource, hook: &Hook) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            all.remove(&(of.clone(), hook.id.clone()));
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
    pub(super) fn all(&self) -> Vec<(Resource, String, FailingWebhook)> {
        let all = self.0.lock();
        let told = all
            .iter()
            .filter(|(_, it)| it.failing.trouble == Trouble::NoAnswer || it.failing.n_in_a_row >= DENIALS_MIN);
        told.map(|((resource, _), it)| (resource.clone(), it.configuration.clone(), it.failing.clone())).collect()
    }
}
