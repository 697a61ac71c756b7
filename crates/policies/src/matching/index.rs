//! Finds the few webhooks or policies that could be about a request, by its resource and operation.

use std::collections::BTreeMap;

use super::{
    criteria::Criteria,
    request::{Operation, Request},
};

/// Numbers of webhooks or policies, each in the order in which they were added.
#[derive(Debug, Default)]
pub struct Index {
    by_plural: BTreeMap<String, ByOperation>,
    /// What names no resource is about all of them.
    any: ByOperation,
}

type ByOperation = [Vec<usize>; 4];

impl Index {
    pub fn add(&mut self, number: usize, criteria: &Criteria) {
        for (operations, plural) in criteria.interests() {
            let lists = match plural {
                Some(plural) => self.by_plural.entry(plural.to_owned()).or_default(),
                None => &mut self.any,
            };
            for operation in operations {
                let list = &mut lists[*operation as usize];
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
    }

    /// The numbers of all that could be about the request, in order, each once.
    pub fn candidates(&self, request: &Request<'_>) -> Vec<usize> {
        let mut found = self.any[request.operation as usize].clone();
        let mut extend = |plural: &str| {
            if let Some(lists) = self.by_plural.get(plural) {
                found.extend(&lists[request.operation as usize]);
            }
        };
        extend(request.place.plural);
        let others = request.equivalents.iter().filter(|it| it.plural != request.place.plural);
        others.for_each(|it| extend(it.plural));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Could anything be about this? Costs one lookup, and nothing is allocated.
    pub fn has(&self, operation: Operation, plural: &str) -> bool {
        let at = operation as usize;
        !self.any[at].is_empty() || self.by_plural.get(plural).is_some_and(|it| !it[at].is_empty())
    }
}
