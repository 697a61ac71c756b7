//! What every loop last decided about every object, kept in memory for whoever asks why.
//!
//! A wait keeps the time it was first seen for as long as plan after plan names it. Bounded: objects that wait for nothing
//! are forgotten first, and of those the ones that were decided about longest ago.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Count, Decision, Wait};
use corten_scheduler::Profile;
use parking_lot::Mutex;

use crate::{
    counted::{CountedMetric, LoopCounts},
    queue::QueueCounts,
    scheduler_measures::SchedulerMeasures,
};

const OBJECTS_MAX: usize = 50_000;

/// One book for all loops of a process.
#[derive(Default)]
pub struct JournalBook {
    pages: Mutex<Pages>,
    /// By the name of the loop.
    queues: Mutex<BTreeMap<String, Arc<QueueCounts>>>,
    counts: LoopCounts,
    scheduler: Mutex<Option<Arc<SchedulerMeasures>>>,
    of_node: LoopCounts,
}

#[derive(Default)]
struct Pages {
    /// By hashes: each change of an object is told here by several loops, and names are long to compare.
    objects: HashMap<Resource, HashMap<Key, Page>>,
    /// Who is forgotten first: what waits for nothing, then by the number of the last entry, the oldest first.
    order: BTreeMap<Precedence, (Resource, Key)>,
    n_entries: u64,
}

/// Does it wait for anything, and the number of its last entry.
type Precedence = (bool, u64);

struct Page {
    place: Precedence,
    /// One per loop, in name order. A list, as there are few: a map's nodes would take more than what is in them.
    decisions: Vec<Decision>,
}

impl JournalBook {
    /// Where the queue of a loop is counted; the same for a loop that starts again.
    pub(crate) fn queue(&self, name: &str) -> Arc<QueueCounts> {
        self.queues.lock().entry(name.to_owned()).or_default().clone()
    }

    /// How busy each loop is, in the order of their names.
    pub fn queues(&self) -> Vec<(String, Arc<QueueCounts>)> {
        self.queues.lock().iter().map(|(name, counts)| (name.clone(), counts.clone())).collect()
    }

    pub(crate) fn count(&self, count: &Count) {
        self.counts.count(count);
    }

    /// Where the scheduler with these profiles is measured; the same for one that starts again.
    pub(crate) fn scheduler(&self, profiles: &[Profile]) -> Arc<SchedulerMeasures> {
        let mut known = self.scheduler.lock();
        let old = known.take().filter(|it| it.is_of(profiles));
        Arc::clone(known.insert(old.unwrap_or_else(|| Arc::new(SchedulerMeasures::new(profiles)))))
    }

    /// What the loops have counted of what they do.
    pub fn counted(&self) -> Vec<CountedMetric> {
        let scheduler = self.scheduler.lock().clone();
        let mut all = self.counts.all();
        all.extend(scheduler.iter().flat_map(|it| it.all()));
        all
    }

    /// What those of a node have: the node tells it, and not the control plane that may be in the same process.
    pub fn of_node(&self) -> &LoopCounts {
        &self.of_node
    }

    /// Puts a loop's newest decision in place of its last one. `decision.at` says when; the `since` of its waits (and of
    /// its steps' waits) is filled in here. One that does nothing new keeps the effects of the last one that did.
    pub fn record(&self, resource: &Resource, key: &Key, mut decision: Decision) {
        decision.steps.shrink_to_fit();
        let mut pages = self.pages.lock();
        let pages = &mut *pages;
        pages.n_entries += 1;
        let entry = pages.n_entries;
        if let Some(page) = pages.page(resource, key) {
            match page.decisions.binary_search_by(|it| it.by.cmp(&decision.by)) {
                Ok(at) => {
                    go_on(&mut decision, &page.decisions[at]);
                    page.decisions[at] = decision;
                }
                Err(at) => {
                    begin(&mut decision);
                    page.decisions.reserve_exact(1);
                    page.decisions.insert(at, decision);
                }
            }
            let place = (page.decisions.iter().any(is_waiting), entry);
            let last = std::mem::replace(&mut page.place, place);
            if let Some(id) = pages.order.remove(&last) {
                pages.order.insert(place, id);
            }
            return;
        }
        begin(&mut decision);
        let place = (is_waiting(&decision), entry);
        let page = Page { place, decisions: vec![decision] };
        pages.objects.entry(resource.clone()).or_default().insert(key.clone(), page);
        pages.order.insert(place, (resource.clone(), key.clone()));
        if pages.order.len() > OBJECTS_MAX
            && let Some((_, (resource, key))) = pages.order.pop_first()
        {
            pages.take(&resource, &key);
        }
    }

    /// What the loops say of one object, in the order of their names.
    pub fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        let pages = self.pages.lock();
        let page = pages.objects.get(resource).and_then(|it| it.get(key));
        page.map(|it| it.decisions.clone()).unwrap_or_default()
    }

    /// The objects that wait for anything and whose decisions are `wanted`, in order.
    pub fn waiting(&self, wanted: impl Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        let pages = self.pages.lock();
        let ids = pages.order.range((true, 0)..).map(|it| it.1);
        let is_wanted = |(resource, key): &&(Resource, Key)| {
            let page = pages.objects.get(resource).and_then(|it| it.get(key));
            page.is_some_and(|it| wanted(resource, key, &it.decisions))
        };
        let mut ids: Vec<_> = ids.filter(is_wanted).cloned().collect();
        drop(pages);
        ids.sort_unstable();
        ids
    }

    /// A loop begins, and knows nothing of what an earlier run of it waited for or failed at: it decides about everything again, here
    /// or in the process that leads now.
    pub fn begin(&self, by: &str) {
        let mut pages = self.pages.lock();
        for page in pages.objects.values_mut().flat_map(HashMap::values_mut) {
            page.decisions.retain(|it| it.by != by || !is_waiting(it));
        }
    }

    /// One loop has nothing more to say of the object.
    pub(crate) fn retract(&self, resource: &Resource, key: &Key, by: &str) {
        let mut pages = self.pages.lock();
        let Some(page) = pages.page(resource, key) else { return };
        page.decisions.retain(|it| it.by != by);
        if page.decisions.is_empty() {
            let place = page.place;
            pages.take(resource, key);
            pages.order.remove(&place);
        }
    }

    /// The object is gone.
    pub fn forget(&self, resource: &Resource, key: &Key) {
        let mut pages = self.pages.lock();
        if let Some(page) = pages.take(resource, key) {
            pages.order.remove(&page.place);
        }
    }
}

impl Pages {
    fn page(&mut self, resource: &Resource, key: &Key) -> Option<&mut Page> {
        self.objects.get_mut(resource)?.get_mut(key)
    }

    fn take(&mut self, resource: &Resource, key: &Key) -> Option<Page> {
        let of_resource = self.objects.get_mut(resource)?;
        let page = of_resource.remove(key);
        // Resources come and go with definitions.
        if of_resource.is_empty() {
            self.objects.remove(resource);
        }
        page
    }
}

fn is_waiting(decision: &Decision) -> bool {
    decision.error.is_some() || !decision.waits.is_empty() || decision.steps.iter().any(|it| it.wait.is_some())
}

fn begin(decision: &mut Decision) {
    let at = decision.at;
    for wait in waits(decision) {
        wait.since = wait.since.or(at);
    }
}

/// Carries over what has not changed since the decision before.
fn go_on(decision: &mut Decision, before: &Decision) {
    if decision.effects.is_empty() {
        decision.effects.clone_from(&before.effects);
    }
    let at = decision.at;
    let since = |wait: &Wait| -> Option<Time> {
        let steps = before.steps.iter().filter_map(|it| it.wait.as_ref());
        let same = before.waits.iter().chain(steps).find(|it| it.reason == wait.reason && it.on == wait.on);
        same.and_then(|it| it.since)
    };
    for wait in waits(decision) {
        wait.since = wait.since.or_else(|| since(wait)).or(at);
    }
}

fn waits(decision: &mut Decision) -> impl Iterator<Item = &mut Wait> {
    decision.waits.iter_mut().chain(decision.steps.iter_mut().filter_map(|it| it.wait.as_mut()))
}

#[cfg(test)]
mod tests {
    use corten_api::resources::PODS;
    use corten_reconcile::Actor;

    use super::*;

    fn decision(at: i64, effects: &[&str], waits: &[&str]) -> Decision {
        Decision {
            by: "loop".into(),
            at: Some(Time::from_unix_seconds(at)),
            effects: effects.iter().map(|it| (*it).to_owned()).collect(),
            waits: waits.iter().map(|it| Wait::new(it, "", Actor::Cluster)).collect(),
            ..Decision::default()
        }
    }

    #[test]
    fn a_wait_is_as_old_as_its_unbroken_row() {
        let (book, key) = (JournalBook::default(), Key::new("default", "web"));
        let since = |at: i64, effects: &[&str], waits: &[&str]| {
            book.record(&PODS, &key, decision(at, effects, waits));
            let [newest] = &book.decisions(&PODS, &key)[..] else { panic!("one loop, one decision") };
            let since = newest.waits.iter().map(|it| it.since.expect("filled in").unix_millis() / 1000);
            (newest.effects.join(","), since.collect::<Vec<_>>())
        };
        assert_eq!(since(1, &["create"], &["A"]), ("create".into(), vec![1]));
        assert_eq!(since(2, &[], &["B", "A"]), ("create".into(), vec![2, 1]));
        assert_eq!(since(3, &["patch"], &["B"]), ("patch".into(), vec![2]));
        assert_eq!(since(4, &[], &["A", "B"]), ("patch".into(), vec![4, 2]));
        book.forget(&PODS, &key);
        assert!(book.decisions(&PODS, &key).is_empty());
    }

    #[test]
    fn a_loop_that_begins_has_neither_waited_nor_failed() {
        let book = JournalBook::default();
        let failed = Decision { error: Some("cannot".into()), ..decision(1, &["create"], &[]) };
        for (name, decision, stays) in [
            ("done", decision(1, &["create"], &[]), true),
            ("waits", decision(1, &[], &["A"]), false),
            ("failed", failed.clone(), false),
            ("of another", Decision { by: "another".into(), ..failed }, true),
        ] {
            let key = Key::new("default", name);
            book.record(&PODS, &key, decision);
            book.begin("loop");
            assert_eq!(book.decisions(&PODS, &key).len() == 1, stays, "{name}");
        }
    }

    #[test]
    fn what_waits_is_found_in_order() {
        let book = JournalBook::default();
        let note = |name: &str, waits: &[&str]| book.record(&PODS, &Key::new("default", name), decision(1, &[], waits));
        note("c", &["A"]);
        note("a", &["A", "B"]);
        note("fine", &[]);
        note("b", &["B"]);
        let names = |reason: &str| {
            let is_it = |it: &Decision| it.waits.iter().any(|it| it.reason.contains(reason));
            let found = book.waiting(|_, _, decisions| decisions.iter().any(is_it));
            found.into_iter().map(|it| it.1.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((names("A"), names("B"), names("")), ("a c".into(), "a b".into(), "a b c".into()));
        note("a", &[]);
        assert_eq!(names(""), "b c", "it does not wait any more");
    }

    #[test]
    fn it_stays_bounded() {
        let book = JournalBook::default();
        let key = |at: usize| Key::new("default", at.to_string());
        book.record(&PODS, &key(usize::MAX), decision(1, &[], &["A"]));
        for at in 0..OBJECTS_MAX - 1 {
            book.record(&PODS, &key(at), decision(1, &[], &[]));
        }
        book.record(&PODS, &key(0), decision(2, &[], &[]));
        book.record(&PODS, &key(OBJECTS_MAX), decision(3, &[], &[]));
        assert_eq!(book.decisions(&PODS, &key(0)).len(), 1, "decided about again, so young");
        assert!(book.decisions(&PODS, &key(1)).is_empty(), "the oldest of those that wait for nothing");
        assert_eq!(book.decisions(&PODS, &key(usize::MAX)).len(), 1, "older, but it waits");
        let pages = book.pages.lock();
        let n_objects: usize = pages.objects.values().map(HashMap::len).sum();
        assert_eq!((n_objects, pages.order.len()), (OBJECTS_MAX, OBJECTS_MAX));
    }
}
