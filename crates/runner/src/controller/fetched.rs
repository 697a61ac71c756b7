//! What plans fetched and what they remembered, as the controller's view keeps it.

use corten_meta::{Key, Resource};
use corten_reconcile::{ApiPath, Effect, Fetched};
use serde_json::Value;

use super::LoopState;

/// The last note of a plan that does nothing else than to tell and to remember.
pub(super) fn last_note(effects: Vec<Effect>) -> Option<Value> {
    let note = |it| if let Effect::Remember { note } = it { Some(note) } else { None };
    effects.into_iter().rev().find_map(note)
}

impl LoopState {
    /// Of an object that is gone nothing more is kept.
    pub(super) fn take_fetched(&mut self, key: &Key, fetched: Vec<(ApiPath, Fetched)>, note: Option<Value>) {
        if note == Some(Value::Null) {
            return self.forget_note(key);
        }
        if fetched.is_empty() && note.is_none() || !self.is_there(key) {
            return;
        }
        let view = self.feeds.view_mut();
        for (path, fetched) in fetched {
            view.record_fetched(key, path, fetched);
        }
        if let Some(note) = note {
            view.record_note(key, note);
        }
    }

    pub(super) fn take_fetched_for_all(&mut self, key: &Key, fetched: Vec<(ApiPath, Fetched)>) {
        if fetched.is_empty() || !self.is_there(key) {
            return;
        }
        let now = (self.clock)();
        let view = self.feeds.view_mut();
        for (path, fetched) in fetched {
            view.record_fetched_for_all(key, path, fetched, now);
        }
    }

    fn is_there(&self, key: &Key) -> bool {
        let is_object = |about: &Resource| self.feeds.view.meta(about, key).is_some();
        self.controller.is_made_up(key) || self.about.as_ref().is_some_and(is_object)
    }

    pub(super) fn forget_fetched(&mut self, key: &Key) {
        let now = (self.clock)();
        if self.feeds.view.has_old_fetched(now) {
            self.feeds.view_mut().forget_old_fetched(now);
        }
        if self.feeds.view.has_fetched(key) {
            self.feeds.view_mut().forget_fetched(key);
        }
    }

    /// The controller may want to be shown its note once more.
    pub(super) fn forget_what_is_gone(&mut self, key: &Key) {
        self.forget_fetched(key);
        if !self.controller.remembers_what_is_gone() {
            self.forget_note(key);
        }
    }

    fn forget_note(&mut self, key: &Key) {
        if self.feeds.view.note(key).is_some() {
            self.feeds.view_mut().forget_note(key);
        }
    }
}
