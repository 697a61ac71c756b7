//! What is made of the objects of some resources, and made anew when one of them has changed: once for all who ask at the same time.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::{
    apart::apart,
    watch_cache::{Snapshot, Stored},
};

/// `N` sources, whose revisions say whether what was made is still right.
pub struct Derived<T, const N: usize> {
    newest: ArcSwap<Made<T, N>>,
    turn: Mutex<()>,
}

/// What was made, of what.
pub struct Made<T, const N: usize> {
    revisions: [u64; N],
    value: T,
}

impl<T, const N: usize> Deref for Made<T, N> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T, const N: usize> Derived<T, N> {
    /// What holds before anything is made of sources: no source is ever at revision 0.
    pub fn new(value: T) -> Self {
        Self { newest: ArcSwap::from_pointee(Made { revisions: [0; N], value }), turn: Mutex::default() }
    }

    /// What was made last, whatever its sources are by now.
    pub fn last(&self) -> Arc<Made<T, N>> {
        self.newest.load_full()
    }

    /// What the sources make now. `look` is asked for their revisions and for themselves, `make` is shown what there was before, and
    /// `after` what there was and what took its place. Nobody else makes anything meanwhile.
    pub fn get<S>(
        &self,
        look: impl Fn() -> ([u64; N], S),
        make: impl FnOnce(&T, S) -> T,
        after: impl FnOnce(&T, &T),
    ) -> Arc<Made<T, N>> {
        let newest = self.newest.load();
        if newest.revisions == look().0 {
            return newest.clone();
        }
        drop(newest);
        // To make it may take a while, and so may the turn: those who look at something else do not wait for it.
        apart(|| self.make(look, make, after))
    }

    fn make<S>(
        &self,
        look: impl Fn() -> ([u64; N], S),
        make: impl FnOnce(&T, S) -> T,
        after: impl FnOnce(&T, &T),
    ) -> Arc<Made<T, N>> {
        let _turn = self.turn.lock();
        // Looked at again: who waited for the turn could have seen less than who had it, and would put back what was before.
        let (revisions, sources) = look();
        let before = self.newest.load_full();
        if before.revisions == revisions {
            return before;
        }
        let made = Arc::new(Made { revisions, value: make(&before.value, sources) });
        self.newest.store(made.clone());
        after(&before.value, &made.value);
        made
    }
}

/// What was made of each object of a resource, by its name, with the revision it was made of.
pub type ByName<T> = BTreeMap<String, (u64, Arc<T>)>;

/// What has not changed is kept, and the rest is made: of thousands of objects one is read when one has changed.
pub fn by_name<T>(before: &ByName<T>, objects: &Snapshot, make: impl Fn(&Stored) -> T) -> ByName<T> {
    by_name_or_same(before, objects, |it, _| Arc::new(make(it)))
}

/// As [`by_name`], where `make` is also shown what it made of the object before: it stays where nothing that matters has changed.
pub fn by_name_or_same<T>(
    before: &ByName<T>,
    objects: &Snapshot,
    make: impl Fn(&Stored, Option<&Arc<T>>) -> Arc<T>,
) -> ByName<T> {
    let one = |stored: &Arc<Stored>| {
        let known = before.get(stored.name());
        let same = known.filter(|it| it.0 == stored.revision()).cloned();
        let made = same.unwrap_or_else(|| (stored.revision(), make(stored, known.map(|it| &it.1))));
        (stored.name().to_owned(), made)
    };
    objects.iter().map(one).collect()
}
