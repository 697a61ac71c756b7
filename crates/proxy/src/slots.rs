//! Rows of numbers in a shared map: a chain draws a number from its row, and the map says who that is.
//!
//! ```text
//! row of a chain:  first=8, room 4     8: 10.244.0.2   9: 10.244.0.7   10: 10.244.0.3   11: -
//! one leaves (9):                      8: 10.244.0.2   9: 10.244.0.3                           the last fills the gap
//! ```
//! Whoever stays keeps his number, so one endpoint's change moves at most one other.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row<T> {
    pub(crate) first: u32,
    room: u32,
    pub(crate) held: Vec<T>,
}

/// Which numbers are free.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    next: u32,
    /// By room.
    free: BTreeMap<u32, BTreeSet<u32>>,
}

impl Slots {
    /// The row that holds `desired`, as like to the old one as can be.
    pub(crate) fn arrange<T: Clone + Ord>(&mut self, old: Option<&Row<T>>, desired: &BTreeSet<T>) -> Row<T> {
        let held = arranged(old.map_or(&[], |it| &it.held), desired);
        let needed = u32::try_from(held.len()).unwrap_or(u32::MAX);
        let (first, room) = match old {
            Some(old) if needed <= old.room => (old.first, old.room),
            _ => self.take(needed),
        };
        Row { first, room, held }
    }

    fn take(&mut self, needed: u32) -> (u32, u32) {
        let room = needed.next_power_of_two();
        let first = self.free.get_mut(&room).and_then(BTreeSet::pop_first).unwrap_or_else(|| {
            let first = self.next;
            self.next += room;
            first
        });
        (first, room)
    }

    pub(crate) fn give_back<T>(&mut self, row: &Row<T>) {
        if row.room > 0 {
            self.free.entry(row.room).or_default().insert(row.first);
        }
    }
}

fn arranged<T: Clone + Ord>(old: &[T], desired: &BTreeSet<T>) -> Vec<T> {
    let mut places: Vec<Option<T>> = old.iter().map(|it| desired.contains(it).then(|| it.clone())).collect();
    let stays: BTreeSet<&T> = old.iter().filter(|it| desired.contains(*it)).collect();
    let mut new = desired.iter().filter(|it| !stays.contains(it)).cloned();
    let mut gaps = Vec::new();
    for (at, place) in places.iter_mut().enumerate() {
        if place.is_none() {
            *place = new.next();
            if place.is_none() {
                gaps.push(at);
            }
        }
    }
    places.extend(new.map(Some));
    for gap in gaps {
        while places.last().is_some_and(Option::is_none) {
            places.pop();
        }
        if gap < places.len() {
            places[gap] = places.pop().flatten();
        }
    }
    places.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stays_keeps_his_number() {
        for (old, desired, expected) in [
            ("", "cab", "abc"),
            ("abc", "abc", "abc"),
            ("abc", "abcd", "abcd"),
            ("abc", "bc", "cb"),
            ("abc", "ab", "ab"),
            ("abcd", "cd", "dc"),
            ("abcd", "ad", "ad"),
            ("abc", "acx", "axc"),
            ("abc", "", ""),
        ] {
            let arranged = arranged(&old.chars().collect::<Vec<_>>(), &desired.chars().collect());
            assert_eq!(arranged.into_iter().collect::<String>(), expected, "{old} -> {desired}");
        }
    }

    #[test]
    fn rows_do_not_meet_and_come_back() {
        let mut slots = Slots::default();
        let of = |text: &str| text.chars().collect::<BTreeSet<char>>();
        let a = slots.arrange(None, &of("abc"));
        let b = slots.arrange(None, &of("x"));
        assert_eq!((a.first, a.room, b.first), (0, 4, 4));
        assert_eq!(slots.arrange(Some(&a), &of("abcd")).first, 0, "there is room");
        let wider = slots.arrange(Some(&a), &of("abcde"));
        slots.give_back(&a);
        assert_eq!((wider.first, slots.arrange(None, &of("klmn")).first), (5, 0));
    }
}
