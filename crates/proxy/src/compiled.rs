//! A Service's wants as rules: its rows of numbers are given out, and what differs from before is found.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    desired::{Body, Desired, Spread},
    rules::{Backend, Clients, Element, ElementKey, Family, Map, Rule, SHARDS, Term, Value},
    slots::{Row, Slots},
};

/// Rows of both families and of both maps.
#[derive(Debug, Default)]
pub(crate) struct Rows(BTreeMap<Map, Slots>);

/// What stands in the kernel for one Service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) chains: BTreeMap<String, Vec<Rule>>,
    pub(crate) clients: BTreeMap<String, Clients>,
    pub(crate) elements: BTreeMap<Element, Value>,
    rows: BTreeMap<String, (Map, Row<Backend>)>,
}

impl Clients {
    /// The name includes the timeout, because nftables cannot change a set's timeout.
    fn of(spread: &Spread, seconds: u32, backend: Backend) -> Self {
        let name = format!("aff{}/{}/{}/{seconds}", spread.family.digit(), spread.path, in_name(backend));
        Self { name, family: spread.family, seconds }
    }
}

/// An address as the name of a chain may have it.
fn in_name(backend: Backend) -> String {
    format!("{}/{}", backend.address.to_string().replace(':', "."), backend.port)
}

fn endpoint_chain(spread: &Spread, backend: Backend) -> String {
    format!("ep{}/{}/{}", spread.family.digit(), spread.path, in_name(backend))
}

impl Rows {
    /// Lays out what is wanted, as like to what is there as can be.
    pub(crate) fn lay(&mut self, desired: &Desired, old: &Compiled) -> Compiled {
        let mut compiled = Compiled { elements: desired.elements.clone(), ..Compiled::default() };
        for (name, body) in &desired.chains {
            let rules = match body {
                Body::Fixed(rules) => rules.clone(),
                Body::Spread(spread) => self.spread(name, spread, old, &mut compiled),
            };
            compiled.chains.insert(name.clone(), rules);
        }
        // Numbers are free for others only once all that stays has its own.
        for (name, (map, row)) in &old.rows {
            let stays = compiled.rows.get(name).is_some_and(|it| it.0 == *map && it.1.first == row.first);
            if !stays {
                self.0.entry(*map).or_default().give_back(row);
            }
        }
        compiled
    }

    fn spread(&mut self, name: &str, spread: &Spread, old: &Compiled, compiled: &mut Compiled) -> Vec<Rule> {
        let family = spread.family;
        let shard = shard(name);
        let map = if spread.seconds.is_some() { Map::Spread(family, shard) } else { Map::Endpoints(family, shard) };
        let before = old.rows.get(name).filter(|it| it.0 == map).map(|it| &it.1);
        let row = self.0.entry(map).or_default().arrange(before, &spread.backends);
        let numbered = (row.first..).zip(&row.held);
        compiled.elements.extend(numbered.map(|(number, backend)| {
            let value = match spread.seconds {
                Some(_) => Value::Goto(endpoint_chain(spread, *backend)),
                None => Value::To(*backend),
            };
            (Element { map, key: ElementKey::Number(number) }, value)
        }));
        let (count, first, map_name) = (u32::try_from(row.held.len()).unwrap_or(u32::MAX), row.first, map.name());
        compiled.rows.insert(name.to_owned(), (map, row));
        let Some(seconds) = spread.seconds else {
            let dnat = Term::DrawDnat { family, count, first, map: map_name };
            return vec![vec![Term::Protocol(spread.protocol), dnat]];
        };
        let mut rules: Vec<Rule> = sticky(spread, seconds, &spread.backends, compiled);
        rules.push(vec![Term::DrawVmap { count, first, map: map_name }]);
        rules
    }
}

/// Always the same for a chain.
fn shard(chain: &str) -> u8 {
    let hash = chain.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    u8::try_from(hash % u32::from(SHARDS)).expect("there are fewer shards")
}

/// Makes a chain for each endpoint, which remembers its clients; gives the rules that send them there again.
fn sticky(spread: &Spread, seconds: u32, backends: &BTreeSet<Backend>, compiled: &mut Compiled) -> Vec<Rule> {
    let mut rules = Vec::new();
    for backend in backends {
        let (clients, chain) = (Clients::of(spread, seconds, *backend), endpoint_chain(spread, *backend));
        let known = Term::In(crate::rules::Lookup::Source, spread.family, clients.name.clone());
        rules.push(vec![known, Term::Goto(chain.clone())]);
        let own = vec![
            vec![Term::Remember(spread.family, clients.name.clone())],
            vec![Term::Protocol(spread.protocol), Term::Dnat(*backend)],
        ];
        compiled.chains.insert(chain, own);
        compiled.clients.insert(clients.name.clone(), clients);
    }
    rules
}

impl Family {
    /// Both, as the order of tables has them.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];
}
