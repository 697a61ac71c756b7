//! Finds the few webhooks or policies that could be about a request, by its group, resource and operation.

use std::collections::BTreeMap;

use super::{
    criteria::Criteria,
    request::{GroupVersionResource, Operation, Request},
};

/// Numbers of webhooks or policies, each in the order in which they were added.
#[derive(Debug, Default)]
pub struct Index {
    by_group: BTreeMap<String, ByResource>,
    /// What names no group is about all of them.
    any_group: ByResource,
}

#[derive(Debug, Default)]
struct ByResource {
    by_plural: BTreeMap<String, ByOperation>,
    /// What names no resource is about all of them.
    any: ByOperation,
}

type ByOperation = [Vec<usize>; 4];

impl Index {
    pub fn add(&mut self, number: usize, criteria: &Criteria) {
        for interest in criteria.interests() {
            let of_group = match interest.group {
                Some(group) => self.by_group.entry(group.to_owned()).or_default(),
                None => &mut self.any_group,
            };
            let lists = match interest.plural {
                Some(plural) => of_group.by_plural.entry(plural.to_owned()).or_default(),
                None => &mut of_group.any,
            };
            for operation in interest.operations {
                let list = &mut lists[*operation as usize];
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        let is_empty = |it: &ByResource| it.by_plural.is_empty() && it.any.iter().all(Vec::is_empty);
        self.by_group.is_empty() && is_empty(&self.any_group)
    }

    /// The numbers of all that could be about the request, in order, each once.
    pub fn candidates(&self, request: &Request<'_>) -> Vec<usize> {
        let others = request.equivalents.iter().filter(|it| **it != request.place);
        let places = std::iter::once(&request.place).chain(others);
        let lists = places.flat_map(|it| self.lists(it)).flat_map(|it| &it[request.operation as usize]);
        let mut found: Vec<usize> = lists.copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Could anything be about an operation at this place? Nothing is allocated.
    pub fn has(&self, operation: Operation, place: &GroupVersionResource<'_>) -> bool {
        self.lists(place).any(|it| !it[operation as usize].is_empty())
    }

    /// At most four: of the group and of any, of the resource and of any.
    fn lists<'i>(&'i self, place: &GroupVersionResource<'i>) -> impl Iterator<Item = &'i ByOperation> + use<'i> {
        let plural = place.plural;
        let groups = self.by_group.get(place.group).into_iter().chain([&self.any_group]);
        groups.flat_map(move |it| it.by_plural.get(plural).into_iter().chain([&it.any]))
    }
}
