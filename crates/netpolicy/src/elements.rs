//! What sets and maps hold, and how that differs from what the kernel was told.

use std::collections::BTreeMap;

use crate::rules::{Change, ElementKey, Set, Value};

type SetElement = (Set, ElementKey);

#[derive(Default)]
pub(crate) struct Elements {
    /// With how many say so: two Pods can seem to have one address, while one of them goes.
    held: BTreeMap<SetElement, (Value, usize)>,
    /// As it was at the end of the last step.
    before: BTreeMap<SetElement, Option<Value>>,
}

impl Elements {
    pub(crate) fn claim(&mut self, set: Set, key: ElementKey, value: Value) {
        let element = (set, key);
        self.remember(element);
        let entry = self.held.entry(element).or_insert((value.clone(), 0));
        entry.0 = value;
        entry.1 += 1;
    }

    pub(crate) fn release(&mut self, set: Set, key: ElementKey) {
        let element = (set, key);
        self.remember(element);
        if let Some(entry) = self.held.get_mut(&element) {
            entry.1 -= 1;
            if entry.1 == 0 {
                self.held.remove(&element);
            }
        }
    }

    fn remember(&mut self, element: SetElement) {
        let held = &self.held;
        self.before.entry(element).or_insert_with(|| held.get(&element).map(|it| it.0.clone()));
    }

    /// What goes and what comes since the last call. Of a set that goes as a whole nothing is said.
    pub(crate) fn difference(&mut self, goes: impl Fn(Set) -> bool) -> (Vec<Change>, Vec<Change>) {
        let (mut out, mut put) = (Vec::new(), Vec::new());
        for ((set, key), before) in std::mem::take(&mut self.before) {
            let now = self.held.get(&(set, key)).map(|it| &it.0);
            if now == before.as_ref() || goes(set) {
                continue;
            }
            out.extend(before.map(|_| Change::Remove(set, key)));
            put.extend(now.map(|it| Change::Add(set, key, it.clone())));
        }
        (out, put)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Change> {
        self.held.iter().map(|((set, key), (value, _))| Change::Add(*set, *key, value.clone()))
    }

    pub(crate) fn n_elements(&self) -> usize {
        self.held.len()
    }
}
