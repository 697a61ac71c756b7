//! When drivers are asked how much is left of each class, and which objects that say so go again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use corten_api::storage::v1::StorageClass;
use corten_meta::Time;

use super::Provisioner;
use crate::{
    capacity,
    words::{DriverFacts, Effect, Published},
};

/// How often what is left is told, beside after every change.
const PERIOD: Duration = Duration::from_secs(60);
/// Changes that follow each other closer are told together: drivers look at all of their volumes for it.
const PAUSE: Duration = Duration::from_secs(1);
/// So long a driver may take to be there again, until what an earlier run has told of it goes.
const DRIVER_PATIENCE: Duration = Duration::from_secs(60);

/// What is asked, and what was told, by the objects' names.
#[derive(Debug, Default)]
pub(super) struct Capacities {
    pub(super) next: Option<Time>,
    told_at: Option<Time>,
    /// Something has changed since the last telling: it is not told for its time's sake alone.
    is_news: bool,
    published: BTreeSet<String>,
    /// Drivers that have not answered yet are not asked again, and what they are to be asked after that.
    asked: BTreeMap<String, Option<Published>>,
    /// Objects of this node that an earlier run has left, each with its driver.
    earlier: BTreeMap<String, String>,
    earlier_since: Option<Time>,
}

impl Capacities {
    /// All is told anew.
    pub(super) fn tell_at(&mut self, at: Time) {
        (self.next, self.is_news) = (Some(at), true);
    }

    /// The same, with what follows soon.
    pub(super) fn tell_soon(&mut self, now: Time) {
        let soon = self.told_at.map_or(now, |it| it.after(PAUSE));
        self.tell_at(self.next.map_or(soon, |it| it.min(soon)));
    }

    pub(super) fn found_earlier(&mut self, found: BTreeMap<String, String>) {
        self.earlier.extend(found.into_iter().filter(|it| !self.published.contains(&it.0)));
    }
}

impl Provisioner {
    pub(super) fn tell_capacity(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.capacity.next.is_some_and(|it| it > now) {
            return;
        }
        let of = |class: &Arc<StorageClass>| {
            let driver = self.drivers.get(&class.provisioner).filter(|it| it.tells_capacity)?;
            let of = capacity::of(class, driver);
            Some((capacity::object_name(&of.driver, &of.class, &self.config), of))
        };
        let told: BTreeMap<String, Published> = self.classes.values().filter_map(of).collect();
        let names: BTreeSet<String> = told.keys().cloned().collect();
        let mut gone = self.left_earlier(&names, now);
        let capacity = &mut self.capacity;
        let is_news = std::mem::take(&mut capacity.is_news);
        (capacity.next, capacity.told_at) = (Some(now.after(PERIOD)), Some(now));
        // What is being told goes after that.
        gone.extend(capacity.published.difference(&names).filter(|it| !capacity.asked.contains_key(*it)).cloned());
        effects.extend(gone.into_iter().map(|name| Effect::WithdrawCapacity { name }));
        for (name, of) in told {
            match capacity.asked.get_mut(&name) {
                Some(again) if is_news => *again = Some(of),
                Some(_) => {}
                None => {
                    capacity.asked.insert(name, None);
                    effects.push(Effect::PublishCapacity(of));
                }
            }
        }
        capacity.published = names;
    }

    /// A driver was asked, and what it said is told, if it said something.
    pub(super) fn capacity_told(&mut self, name: String, effects: &mut Vec<Effect>) {
        let again = self.capacity.asked.remove(&name).flatten();
        if !self.capacity.published.contains(&name) {
            effects.push(Effect::WithdrawCapacity { name });
        } else if let Some(of) = again {
            self.capacity.asked.insert(name, None);
            effects.push(Effect::PublishCapacity(of));
        }
    }

    /// Of the objects of an earlier run those that nobody tells, once their drivers had time to be there.
    fn left_earlier(&mut self, names: &BTreeSet<String>, now: Time) -> Vec<String> {
        let capacity = &mut self.capacity;
        capacity.earlier.retain(|name, _| !names.contains(name));
        if self.registered.is_empty() || capacity.earlier.is_empty() {
            return Vec::new();
        }
        let since = *capacity.earlier_since.get_or_insert(now);
        if since.after(DRIVER_PATIENCE) > now {
            return Vec::new();
        }
        // Whether a sidecar tells it is not known before its Pods are.
        let may_come = |it: &DriverFacts| !it.is_built_in() && !self.knows_pods;
        let is_left = |driver: &String| !self.registered.get(driver).is_some_and(may_come);
        let (left, kept) = std::mem::take(&mut capacity.earlier).into_iter().partition(|it| is_left(&it.1));
        capacity.earlier = kept;
        BTreeMap::into_keys(left).collect()
    }
}
