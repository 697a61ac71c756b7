//! Whether the plugins are asked once more, because others have changed the object after some of them saw it.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::Value;

/// Of one request. Plugins only read the request, so that this is behind a lock.
#[derive(Default)]
pub struct Reinvocation(Mutex<State>);

#[derive(Default)]
struct State {
    is_reinvoked: bool,
    is_wanted: bool,
    has_changed: bool,
    plugins: BTreeMap<&'static str, Plugin>,
}

/// What one of the plugins that ask others remembers between the rounds.
#[derive(Default)]
struct Plugin {
    /// What it left behind.
    output: Option<Value>,
    /// Those that were called and may be called again.
    called: BTreeSet<String>,
    /// Those that are to be called again.
    due: BTreeSet<String>,
}

impl Plugin {
    fn call_all_again(&mut self) {
        let called = std::mem::take(&mut self.called);
        self.due.extend(called);
    }
}

impl Reinvocation {
    /// Is this the second round?
    pub fn is_reinvoked(&self) -> bool {
        self.0.lock().is_reinvoked
    }

    /// Begins the second round, where one is wanted.
    pub fn begin_again(&self) -> bool {
        let mut state = self.0.lock();
        let begins = state.is_wanted && !state.is_reinvoked;
        state.is_reinvoked |= begins;
        begins
    }

    /// Has anybody but the plugins compiled in changed the object?
    pub fn has_changed(&self) -> bool {
        self.0.lock().has_changed
    }

    /// The plugin begins its round: whatever changed since its last one is a reason to call again.
    pub(crate) fn begin(&self, plugin: &'static str, object: &Value) {
        let mut state = self.0.lock();
        let is_reinvoked = state.is_reinvoked;
        let of = state.plugins.entry(plugin).or_default();
        if is_reinvoked && of.output.as_ref() != Some(object) {
            of.call_all_again();
        }
    }

    /// In the second round, only who was called before and is due is called.
    pub(crate) fn is_due(&self, plugin: &'static str, who: &str) -> bool {
        let state = self.0.lock();
        !state.is_reinvoked || state.plugins.get(plugin).is_some_and(|it| it.due.contains(who))
    }

    /// One of the plugin's has changed the object.
    pub(crate) fn changed(&self, plugin: &'static str) {
        let mut state = self.0.lock();
        state.has_changed = true;
        state.is_wanted = true;
        state.plugins.entry(plugin).or_default().call_all_again();
    }

    /// It may be called again.
    pub(crate) fn called(&self, plugin: &'static str, who: &str) {
        self.0.lock().plugins.entry(plugin).or_default().called.insert(who.to_owned());
    }

    /// The plugin ends its round.
    pub(crate) fn end(&self, plugin: &'static str, object: &Value) {
        let mut state = self.0.lock();
        let of = state.plugins.entry(plugin).or_default();
        // Who will never be called again need not be compared with.
        of.output = (!of.called.is_empty() || !of.due.is_empty()).then(|| object.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_saw_it_before_somebody_changed_it_is_asked_once_more() {
        let (first, changed) = (json!(1), json!(2));
        let it = Reinvocation::default();
        it.begin("webhooks", &first);
        assert!(it.is_due("webhooks", "a") && it.is_due("webhooks", "b") && !it.is_reinvoked());
        it.called("webhooks", "a");
        it.changed("webhooks");
        it.called("webhooks", "b");
        it.end("webhooks", &changed);
        assert!(it.has_changed() && it.begin_again());
        it.begin("webhooks", &changed);
        assert!(it.is_due("webhooks", "a"), "b has changed what it saw");
        assert!(!it.is_due("webhooks", "b"), "nobody has changed what it left");
        assert!(!it.is_due("webhooks", "c"), "who was not asked in the first round is not in the second");
        assert!(!it.begin_again(), "there is no third");
    }

    #[test]
    fn what_another_plugin_changed_is_a_reason_to_ask_all_again() {
        let it = Reinvocation::default();
        it.begin("policies", &json!(1));
        it.called("policies", "a");
        it.end("policies", &json!(1));
        it.begin("webhooks", &json!(1));
        it.changed("webhooks");
        it.end("webhooks", &json!(2));
        assert!(it.begin_again());
        it.begin("policies", &json!(2));
        assert!(it.is_due("policies", "a"));
    }

    #[test]
    fn nobody_is_asked_again_where_nothing_has_changed() {
        let it = Reinvocation::default();
        it.begin("webhooks", &json!(1));
        it.called("webhooks", "a");
        it.end("webhooks", &json!(1));
        assert!(!it.has_changed() && !it.begin_again());
    }
}
