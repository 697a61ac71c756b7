//! Numbers for what many share: who names the same is given the same number, and one that nobody names is given again.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Numbers<K> {
    held: BTreeMap<K, (u32, usize)>,
    free: BTreeSet<u32>,
    /// Nobody's since the last [`Numbers::settle`]: not yet given again, since the kernel still holds what they stand for.
    gone: BTreeMap<u32, K>,
    next: u32,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        // 0 is for what needs no number.
        Self { held: BTreeMap::new(), free: BTreeSet::new(), gone: BTreeMap::new(), next: 1 }
    }
}

impl<K: Clone + Ord> Numbers<K> {
    /// The number, and whether it is new.
    pub(crate) fn acquire(&mut self, key: &K) -> (u32, bool) {
        if let Some((number, count)) = self.held.get_mut(key) {
            *count += 1;
            return (*number, false);
        }
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.held.insert(key.clone(), (number, 1));
        (number, true)
    }

    pub(crate) fn release(&mut self, key: &K) {
        let Some((number, count)) = self.held.get_mut(key) else { return };
        *count -= 1;
        if *count == 0 {
            self.gone.insert(*number, key.clone());
            self.held.remove(key);
        }
    }

    pub(crate) fn number(&self, key: &K) -> Option<u32> {
        self.held.get(key).map(|it| it.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u32)> {
        self.held.iter().map(|(key, (number, _))| (key, *number))
    }

    /// The numbers that are nobody's any more, with what they stood for.
    pub(crate) fn settle(&mut self) -> BTreeMap<u32, K> {
        let gone = std::mem::take(&mut self.gone);
        self.free.extend(gone.keys());
        gone
    }
}
