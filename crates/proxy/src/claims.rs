//! Who has which place in the maps: of two Services that want the same one, the older has it; but a Service's own address is
//! never another's, however old, that calls it external.

use std::{collections::BTreeMap, net::IpAddr};

use corten_meta::{Key, Time};

use crate::rules::{Change, Element, ElementKey, Value};

/// The older goes first; of the same age, the first by name.
type Rank = (Option<Time>, Key);
/// First those whose own address it is.
type Precedence = (bool, Rank);

#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<Element, Vec<(Precedence, Value)>>);

/// What elements held before a batch of changes.
pub(crate) type Before = BTreeMap<Element, Option<Value>>;

impl Claims {
    /// Puts one Service's claims in place of its old ones.
    pub(crate) fn change(
        &mut self,
        rank: &Rank,
        own: &[IpAddr],
        old: &BTreeMap<Element, Value>,
        new: &BTreeMap<Element, Value>,
        before: &mut Before,
    ) {
        for element in old.keys().filter(|it| !new.contains_key(*it)) {
            before.entry(*element).or_insert_with(|| self.held(element));
            let claims = self.0.entry(*element).or_default();
            claims.retain(|it| it.0.1.1 != rank.1);
            if claims.is_empty() {
                self.0.remove(element);
            }
        }
        for (element, value) in new.iter().filter(|(element, value)| old.get(element) != Some(value)) {
            before.entry(*element).or_insert_with(|| self.held(element));
            let claims = self.0.entry(*element).or_default();
            claims.retain(|it| it.0.1.1 != rank.1);
            let is_guest = matches!(element.key, ElementKey::Frontend { address, .. } if !own.contains(&address));
            claims.push(((is_guest, rank.clone()), value.clone()));
            claims.sort();
        }
    }

    fn held(&self, element: &Element) -> Option<Value> {
        self.0.get(element)?.first().map(|it| it.1.clone())
    }

    /// Who has it, if that is another.
    pub(crate) fn taken(&self, element: &Element, by: &Key) -> Option<&Key> {
        let ((_, rank), value) = self.0.get(element)?.first()?;
        (rank.1 != *by && *value != Value::Nothing).then_some(&rank.1)
    }

    /// Everybody who wants it.
    pub(crate) fn rivals(&self, element: &Element) -> impl Iterator<Item = &Key> {
        let claims = self.0.get(element).filter(|it| it[0].1 != Value::Nothing);
        claims.into_iter().flatten().map(|it| &it.0.1.1)
    }

    /// What must be taken out of the maps, and what be put in, after a batch.
    pub(crate) fn difference(&self, before: &Before) -> (Vec<Change>, Vec<Change>) {
        let (mut out, mut put) = (Vec::new(), Vec::new());
        for (element, old) in before {
            let new = self.held(element);
            if new == *old {
                continue;
            }
            if old.is_some() {
                out.push(Change::Remove(*element));
            }
            put.extend(new.map(|it| Change::Add(*element, it)));
        }
        (out, put)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Change> {
        self.0.iter().filter_map(|(element, claims)| Some(Change::Add(*element, claims.first()?.1.clone())))
    }
}
