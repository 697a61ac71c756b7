//! The rule that each view a controller is asked with is a state the store once was in, as a whole.
//!
//! ```text
//! store   pods      #0 ...... #a at 7 ................ #b at 12
//!         sets      #0 ................ #c at 9
//! view    pods #b, sets #c: as at 12. pods #a, sets #c: as at 9. pods #b, sets #0: never
//! ```
//! A state of a resource is known by one number, made of the keys and versions of all its objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_cacher::watch_cache::prefix_of;
use corten_kinds::by_path;
use corten_meta::{Key, ObjectMeta, Resource, Time, stable_hash, stable_hash_from};
use corten_reconcile::{Controller, Plan, View, Watch, Write};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The states each resource has been in, by its prefix in the store.
#[derive(Default)]
pub(crate) struct States {
    by_prefix: BTreeMap<String, History>,
    versions: BTreeMap<String, u64>,
}

#[derive(Default)]
struct History {
    state: u64,
    since: u64,
    /// From when and until before when the resource was in a state that it has left.
    past: BTreeMap<u64, Vec<(u64, u64)>>,
}

impl States {
    /// Notes that `key` was changed at `revision`, or deleted.
    pub(crate) fn note(&mut self, key: &str, revision: u64, is_deleted: bool) {
        let Some((prefix, name)) = split(key) else { return };
        let history = self.by_prefix.entry(prefix.to_owned()).or_default();
        // More than one key may be changed at once.
        if history.since < revision {
            history.past.entry(history.state).or_default().push((history.since, revision));
            history.since = revision;
        }
        if let Some(version) = self.versions.remove(key) {
            history.state ^= mark(name, version);
        }
        if !is_deleted {
            history.state ^= mark(name, revision);
            self.versions.insert(key.to_owned(), revision);
        }
    }

    /// The revisions, from and before, at which the resource was in this state.
    fn when(&self, prefix: &str, state: u64) -> Vec<(u64, u64)> {
        let Some(history) = self.by_prefix.get(prefix) else {
            return if state == 0 { vec![(0, u64::MAX)] } else { Vec::new() };
        };
        let mut when = history.past.get(&state).cloned().unwrap_or_default();
        when.extend((history.state == state).then_some((history.since, u64::MAX)));
        when
    }
}

/// `/registry/services/specs/a/b` into `/registry/services/specs/` and `a/b`.
fn split(key: &str) -> Option<(&str, &str)> {
    let rest = key.strip_prefix("/registry/")?;
    let first = rest.split('/').next()?;
    let words = if first == "services" || first.contains('.') { 2 } else { 1 };
    let (at, _) = rest.match_indices('/').nth(words - 1)?;
    Some(key.split_at(key.len() - rest.len() + at + 1))
}

fn mark(name: &str, version: u64) -> u64 {
    stable_hash_from(stable_hash(name.as_bytes()), &version.to_le_bytes())
}

/// What a controller was shown.
struct Shown {
    at: Instant,
    to: &'static str,
    tables: Vec<(Arc<str>, u64)>,
}

/// What all controllers were shown and nobody has judged yet.
#[derive(Clone, Default)]
pub(crate) struct Views(Arc<Mutex<Vec<Shown>>>);

impl Views {
    /// Judges what was shown before this moment: of a commit of the same one the states may not tell yet.
    pub(crate) fn judge(&self, states: &States) -> Result<(), String> {
        let now = Instant::now();
        let mut views = self.0.lock();
        let n = views.partition_point(|it| it.at < now);
        views.drain(..n).try_for_each(|it| it.judge(states))
    }
}

impl Shown {
    fn judge(&self, states: &States) -> Result<(), String> {
        let mut possible = vec![(0, u64::MAX)];
        for (prefix, state) in &self.tables {
            let when = states.when(prefix, *state);
            let common = possible.iter().flat_map(|a| when.iter().map(|b| (a.0.max(b.0), a.1.min(b.1))));
            let common: Vec<_> = common.filter(|it| it.0 < it.1).collect();
            if common.is_empty() {
                return Err(format!(
                    "{} was shown a state that never was: {prefix} as at {when:?}, and all before it as at {possible:?}",
                    self.to
                ));
            }
            possible = common;
        }
        Ok(())
    }
}

/// A controller whose views are looked at.
pub(crate) struct ObservedController {
    controller: Arc<dyn Controller>,
    /// Of these it sees a part.
    partial: BTreeSet<Resource>,
    /// Of these it may see nothing.
    optional: BTreeSet<Resource>,
    /// In the store, of all.
    prefixes: BTreeMap<Resource, Arc<str>>,
    views: Views,
}

impl ObservedController {
    pub(crate) fn new(controller: Arc<dyn Controller>, views: Views) -> Self {
        let watches = controller.watches();
        let those = |is: fn(&Watch) -> bool| watches.iter().filter(|it| is(it)).map(|it| it.resource.clone()).collect();
        let partial = those(|it| !it.field_selector.is_empty());
        let optional = those(|it| it.needed.is_some());
        let prefixes = watches.iter().map(|it| (it.resource.clone(), prefix(&it.resource).into())).collect();
        Self { controller, partial, optional, prefixes, views }
    }

    fn note(&self, view: &View) {
        let mut tables = Vec::new();
        // Of what cannot be listed the controller knows that it is not of the same revision.
        let is_judged = |it: &&Resource| !self.partial.contains(it) && !view.cannot_be_listed().contains(it);
        for resource in view.resources().filter(is_judged) {
            let table = view.table(resource).into_iter().flat_map(|it| it.iter());
            let marks = table.map(|it| mark_of(it.meta()));
            let state = marks.fold(0, |state, it| state ^ it);
            if state != 0 || !self.optional.contains(resource) {
                let known = self.prefixes.get(resource).cloned();
                tables.push((known.unwrap_or_else(|| prefix(resource).into()), state));
            }
        }
        self.views.0.lock().push(Shown { at: Instant::now(), to: self.controller.name(), tables });
    }
}

fn mark_of(meta: &ObjectMeta) -> u64 {
    let name = if meta.namespace.is_empty() { meta.name.clone() } else { format!("{}/{}", meta.namespace, meta.name) };
    mark(&name, meta.resource_version.parse().unwrap_or(0))
}

fn prefix(resource: &Resource) -> String {
    let row = by_path(&resource.group, &resource.version, &resource.plural);
    prefix_of(row.and_then(|it| it.view_of.as_ref()).map_or(resource, |it| &it.stored))
}

impl Controller for ObservedController {
    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn component(&self) -> String {
        self.controller.component()
    }

    fn watches(&self) -> Vec<Watch> {
        self.controller.watches()
    }

    fn writes(&self) -> &'static [Write] {
        self.controller.writes()
    }

    fn about(&self) -> Option<Resource> {
        self.controller.about()
    }

    fn subject(&self, view: &View, key: &Key) -> Option<(Resource, Key)> {
        self.controller.subject(view, key)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        self.note(view);
        self.controller.reconcile(view, key, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(tables: &[(&str, u64)]) -> Shown {
        let tables = tables.iter().map(|(it, state)| (format!("/registry/{it}/").into(), *state)).collect();
        Shown { at: Instant::now(), to: "a loop", tables }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_together_may_be_shown_together() {
        let mut states = States::default();
        states.note("/registry/replicasets/d/s", 3, false);
        states.note("/registry/pods/d/p", 5, false);
        states.note("/registry/replicasets/d/s", 7, true);
        states.note("/registry/pods/d/p", 9, true);
        let (set, pod) = (mark("d/s", 3), mark("d/p", 5));
        for (pods, sets, has_been) in
            [(0, 0, true), (0, set, true), (pod, set, true), (pod, 0, true), (1, 0, false), (pod, 1, false)]
        {
            assert_eq!(shown(&[("pods", pods), ("replicasets", sets)]).judge(&states).is_ok(), has_been);
        }
        // From here on pods without the set are one thing, and the set without pods is none that comes again.
        states.note("/registry/pods/d/q", 11, false);
        let judged = shown(&[("pods", mark("d/q", 11)), ("replicasets", set)]).judge(&states);
        assert!(judged.is_err_and(|it| it.contains("never was")));
    }
}
