//! A kernel that takes only what the real one would: nothing named that is not there, nothing taken away that is named.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Existing, Proxy,
    rules::{Change, Element, Map, Rule, Term, Value},
};

#[derive(Debug, Default, PartialEq, Clone)]
pub(super) struct Kernel {
    has_table: bool,
    chains: BTreeMap<String, Vec<Rule>>,
    sets: BTreeSet<String>,
    elements: BTreeMap<Element, Value>,
}

impl Kernel {
    pub(super) fn existing(&self) -> Existing {
        Existing { chains: self.chains.keys().cloned().collect(), sets: self.sets.iter().cloned().collect() }
    }

    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            self.change(change);
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::DropTable => *self = Self::default(),
            Change::Table => self.has_table = true,
            Change::Map(map) => drop(self.sets.insert(map.name())),
            Change::Clients(clients) => drop(self.sets.insert(clients.name.clone())),
            Change::Empty(name) => self.elements.retain(|it, _| it.map.name() != *name),
            Change::DropSet(name) => {
                assert!(!self.chains.values().flatten().flatten().any(|it| names_set(it, name)), "{name} is in use");
                assert!(self.sets.remove(name), "{name} is not there");
            }
            Change::Base(name, _) | Change::Chain(name) => drop(self.chains.insert(name.clone(), Vec::new())),
            Change::Rule(chain, rule) => {
                for term in rule {
                    let (chains, sets) = (&self.chains, &self.sets);
                    assert!(named_chain(term).is_none_or(|it| chains.contains_key(it)), "{change}");
                    assert!(named_set(term).is_none_or(|it| sets.contains(it)), "{change}");
                }
                self.chains.get_mut(chain).expect("a chain").push(rule.clone());
            }
            Change::DropChain(name) => {
                assert!(!self.elements.values().any(|it| *it == Value::Goto(name.clone())), "{name} is in a map");
                let rules = self.chains.values().flatten().flatten();
                assert!(!rules.into_iter().any(|it| named_chain(it) == Some(name)), "{name} is in use");
                assert!(self.chains.remove(name).expect("a chain").is_empty(), "{name} is not empty");
            }
            Change::Add(element, value) => {
                if let Value::Goto(chain) = value {
                    assert!(self.chains.contains_key(chain), "{change}");
                }
                assert!(self.elements.insert(*element, value.clone()).is_none(), "{change}: there is one");
            }
            Change::Remove(element) => assert!(self.elements.remove(element).is_some(), "{change}: there is none"),
        }
    }

    /// Does it lead packets as one does that starts from nothing? Numbers may differ.
    pub(super) fn is_like(&self, proxy: &Proxy) {
        let mut fresh = Self::default();
        fresh.apply(&proxy.whole(&Existing::default()));
        assert_eq!(*self, fresh);
        self.rows_are_whole();
    }

    /// Every number that a chain draws has somebody behind it, and nobody stands in two rows.
    fn rows_are_whole(&self) {
        let mut drawn = BTreeSet::new();
        for term in self.chains.values().flatten().flatten() {
            let (Term::DrawDnat { count, first, map, .. } | Term::DrawVmap { count, first, map }) = term else {
                continue;
            };
            assert!(*count > 0);
            drawn.extend((*first..first + count).map(|it| (map.clone(), it)));
        }
        let held: BTreeSet<_> = self
            .elements
            .keys()
            .filter(|it| matches!(it.map, Map::Endpoints(..) | Map::Spread(..)))
            .map(|it| match it.key {
                crate::rules::ElementKey::Number(number) => (it.map.name(), number),
                other => panic!("{other} is no number"),
            })
            .collect();
        assert_eq!(drawn, held);
    }
}

fn named_chain(term: &Term) -> Option<&String> {
    match term {
        Term::Goto(chain) | Term::Jump(chain) => Some(chain),
        _ => None,
    }
}

fn named_set(term: &Term) -> Option<&String> {
    match term {
        Term::In(_, _, set) | Term::Remember(_, set) | Term::Vmap(_, _, set) => Some(set),
        Term::DrawVmap { map, .. } | Term::DrawDnat { map, .. } => Some(map),
        _ => None,
    }
}

fn names_set(term: &Term, name: &str) -> bool {
    named_set(term).is_some_and(|it| it == name)
}
