//! What a loop waits for before it decides about anything: a resource that it looks at, and that the server does not give.
//!
//! It is told where people ask: of the definition of the resource, where it has one, and of objects that wait for the loop.

use std::{collections::BTreeSet, time::Duration};

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::Failing;
use corten_meta::{Key, Resource};
use corten_reconcile::{Actor, Decision, Wait};
use tokio::time::Instant;

use super::LoopState;

/// For how long a loop waits before anybody is told.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the objects that wait, at most so many are told.
const TOLD_MAX: usize = 20;
const REASON: &str = "ListFailing";

#[derive(Default)]
pub(super) struct Unlisted {
    /// When it is looked at next, while there is no whole view.
    next_look: Option<Instant>,
    /// Whose journals tell of it.
    told: BTreeSet<(Resource, Key)>,
}

impl Unlisted {
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.next_look
    }
}

impl LoopState {
    /// There is no whole view.
    pub(super) fn tell_unlisted(&mut self) {
        let now = Instant::now();
        let Some(next_look) = self.unlisted.next_look else {
            self.unlisted.next_look = Some(now + PATIENCE);
            return;
        };
        if now < next_look {
            return;
        }
        self.unlisted.next_look = Some(now + PATIENCE);
        let failing = self.feeds.failing();
        let Some((first, _)) = failing.first() else { return self.retract_unlisted() };
        let definition = |resource: &Resource| {
            let key = Key::cluster(resource.qualified());
            self.feeds.view.meta(&CUSTOM_RESOURCE_DEFINITIONS, &key).is_some().then_some(key)
        };
        let mut told = BTreeSet::new();
        let waits: Vec<Wait> = failing.iter().take(TOLD_MAX).map(|it| self.wait(it, now)).collect();
        for ((resource, _), wait) in failing.iter().zip(&waits) {
            if let Some(key) = definition(resource) {
                self.tell_of(&CUSTOM_RESOURCE_DEFINITIONS, &key, wait.clone());
                told.insert((CUSTOM_RESOURCE_DEFINITIONS, key));
            }
        }
        let wait = match (&waits[0], definition(first)) {
            (wait, Some(key)) => wait.clone().on(&CUSTOM_RESOURCE_DEFINITIONS.kind, &key.name),
            (wait, None) => wait.clone(),
        };
        for (resource, key) in self.waiting() {
            if told.insert((resource.clone(), key.clone())) {
                self.tell_of(&resource, &key, wait.clone());
            }
        }
        let before = std::mem::replace(&mut self.unlisted.told, told);
        before.difference(&self.unlisted.told).for_each(|it| self.retract(it));
    }

    /// The view is whole.
    pub(super) fn take_unlisted_back(&mut self) {
        if self.unlisted.next_look.take().is_some() {
            self.retract_unlisted();
        }
    }

    fn retract_unlisted(&mut self) {
        std::mem::take(&mut self.unlisted.told).iter().for_each(|it| self.retract(it));
    }

    /// What the loop has decided since stays.
    fn retract(&self, (resource, key): &(Resource, Key)) {
        let name = self.controller.name();
        let decisions = self.journal.decisions(resource, key);
        let said = decisions.iter().find(|it| it.by == name);
        if said.is_some_and(|it| it.waits.iter().any(|it| it.reason == REASON)) {
            self.journal.retract(resource, key, name);
        }
    }

    fn wait(&self, (resource, failing): &(Resource, Failing), now: Instant) -> Wait {
        let name = self.controller.name();
        let message = format!("the loop {name} decides about nothing before it sees {resource}: {}", failing.said);
        let since = (self.clock)().before(now.duration_since(failing.since));
        Wait { since: Some(since), ..Wait::new(REASON, message, Actor::Operator) }
    }

    fn tell_of(&self, resource: &Resource, key: &Key, wait: Wait) {
        let (by, at) = (self.controller.name().into(), Some((self.clock)()));
        self.journal.record(resource, key, Decision { by, at, waits: vec![wait], ..Decision::default() });
    }

    /// Objects that the loop is to decide about: first those that are being deleted, which others wait for.
    fn waiting(&self) -> Vec<(Resource, Key)> {
        let view = &self.feeds.view;
        let subjects = self.queue.waiting().filter_map(|it| self.controller.subject(view, it));
        let found = subjects.filter_map(|it| Some((!view.meta(&it.0, &it.1)?.is_deleting(), it)));
        let (mut others, mut going): (Vec<_>, Vec<_>) = found.partition(|it| it.0);
        going.append(&mut others);
        going.into_iter().take(TOLD_MAX).map(|it| it.1).collect()
    }
}
