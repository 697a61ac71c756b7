//! What a mind sees: projections of objects, by key, by namespace and by owner, and answers to what it asked.
//!
//! One view belongs to one controller. The runner feeds it from informers; between two calls of `reconcile` it may
//! change, during one it never does. Iteration is always in key order, so plans are deterministic.

mod brought;
mod labels;
mod notes;
mod table;
#[cfg(test)]
mod tests;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use corten_meta::{Key, Named, ObjectMeta, Requirement, Resource, Time};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use brought::{Brought, SHARED_FOR};
pub use table::Table;

use brought::AllBrought;
use notes::Notes;

use crate::{ApiPath, Effect};

/// A projection: the fields of one kind that one mind reads.
///
/// ```text
/// #[derive(Deserialize)] struct Pod { metadata: ObjectMeta, #[serde(default)] status: PodStatus }
/// ```
pub trait Projection: Named + DeserializeOwned + Send + Sync + 'static {
    const RESOURCE: Resource;
}

/// What the runner found when a mind asked for the live object with [`crate::Effect::Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there, with this uid.
    Found {
        uid: String,
    },
    Missing,
    /// To [`Effect::AskAccess`].
    Allowed,
    Denied,
}

/// What [`Effect::Fetch`] brought: the body, or why there is none.
pub type Fetched = Result<Arc<[u8]>, String>;

/// The effect that failed when a key's last plan was carried out, and what the API server said.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub effect: Effect,
    pub message: String,
    /// The same stands no chance another time.
    pub is_final: bool,
}

/// A projection as the view keeps it: once, with the metadata that the indexes read.
pub trait AnyProjection: Named + Any + Send + Sync {}

impl<T: Named + Any + Send + Sync> AnyProjection for T {}

/// Many views hold it at once.
pub type Object = Arc<dyn AnyProjection>;

pub(crate) fn as_type<T: 'static>(object: &Object) -> Option<&T> {
    (&**object as &dyn Any).downcast_ref()
}

/// So long an answer counts where tables are not moved on together: the object may have been made again, and what belongs to it seen first.
const ANSWERED_FOR: Duration = Duration::from_secs(5);

/// What was found when an object was asked for.
#[derive(Clone)]
struct Answered {
    answer: Answer,
    /// When it was found first, without another answer since.
    first: Option<Time>,
    /// When it was found last.
    last: Option<Time>,
}

/// See the module's documentation.
#[derive(Clone, Default)]
pub struct View {
    tables: BTreeMap<Resource, Table>,
    answers: BTreeMap<(Resource, Key), Answered>,
    /// Answers do not last, and this is the time by which it is seen how old they are.
    outdating: Option<Time>,
    failures: BTreeMap<Key, Failure>,
    brought: AllBrought,
    notes: Notes,
    gaps: BTreeSet<Resource>,
    since: Option<Time>,
}

impl View {
    pub fn get<T: Projection>(&self, key: &Key) -> Option<&T> {
        self.get_in(&T::RESOURCE, key)
    }

    /// All objects of a kind, in key order.
    pub fn list<T: Projection>(&self) -> impl Iterator<Item = &T> {
        self.list_in(&T::RESOURCE)
    }

    pub fn in_namespace<'a, T: Projection>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a T> {
        self.in_namespace_of(&T::RESOURCE, namespace)
    }

    /// As [`View::in_namespace`], for minds that see many resources through one projection.
    pub fn in_namespace_of<'a, T: 'static>(
        &'a self,
        resource: &Resource,
        namespace: &str,
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(resource).map(|it| it.in_namespace(namespace));
        table.into_iter().flatten().filter_map(as_type)
    }

    /// How many objects a namespace has.
    pub fn count_in_namespace<T: Projection>(&self, namespace: &str) -> usize {
        self.tables.get(&T::RESOURCE).map_or(0, |it| it.count_in_namespace(namespace))
    }

    /// The objects of a namespace that meet all requirements, in key order: see [`Table::selected`].
    pub fn selected<'a, T: Projection>(&'a self, namespace: &str, requirements: &[Requirement]) -> Vec<&'a T> {
        let found = self.tables.get(&T::RESOURCE).map(|it| it.selected(namespace, requirements));
        found.into_iter().flatten().filter_map(as_type).collect()
    }

    /// The metadata of a namespace's objects of any resource.
    pub fn meta_in_namespace(&self, resource: &Resource, namespace: &str) -> impl Iterator<Item = &ObjectMeta> {
        let table = self.tables.get(resource).map(|it| it.in_namespace(namespace));
        table.into_iter().flatten().map(|it| it.meta())
    }

    /// The objects that name `uid` among their owners, in key order.
    pub fn owned_by<'a, T: Projection>(&'a self, uid: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(&T::RESOURCE).map(|it| it.owned_by(uid));
        table.into_iter().flatten().filter_map(as_type)
    }

    /// The objects of a namespace that no owner controls, in key order: what may be adopted.
    pub fn uncontrolled<'a, T: Projection>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a T> {
        let table = self.tables.get(&T::RESOURCE).map(|it| it.uncontrolled(namespace));
        table.into_iter().flatten().filter_map(as_type)
    }

    /// The object with this uid, of any resource, if it is being deleted.
    pub fn deleting(&self, uid: &str) -> Option<(&Resource, &ObjectMeta)> {
        self.tables.iter().find_map(|(resource, table)| Some((resource, table.deleting(uid)?.meta())))
    }

    /// As [`View::get`], for minds that see many resources through one projection.
    pub fn get_in<T: 'static>(&self, resource: &Resource, key: &Key) -> Option<&T> {
        as_type(self.tables.get(resource)?.get(key)?)
    }

    pub fn list_in<'a, T: 'static>(&'a self, resource: &Resource) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.tables.get(resource).into_iter().flat_map(Table::iter).filter_map(as_type)
    }

    /// Every object of any resource that names `uid` among its owners.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = (&Resource, &ObjectMeta)> {
        let tables = self.tables.iter().filter(|it| it.1.has_owned());
        tables.flat_map(move |(resource, table)| table.owned_by(uid).map(move |it| (resource, it.meta())))
    }

    /// Of [`View::dependents`] those that block the owner's deletion.
    pub fn blocking(&self, uid: &str) -> impl Iterator<Item = (&Resource, &ObjectMeta)> {
        let tables = self.tables.iter().filter(|it| it.1.has_owned());
        tables.flat_map(move |(resource, table)| table.blocking(uid).map(move |it| (resource, it.meta())))
    }

    /// The metadata of one object of any resource.
    pub fn meta(&self, resource: &Resource, key: &Key) -> Option<&ObjectMeta> {
        self.tables.get(resource)?.get(key).map(|it| it.meta())
    }

    /// The metadata of a resource's objects of this name, in whichever namespace.
    pub fn named<'a>(&'a self, resource: &Resource, name: &'a str) -> impl Iterator<Item = &'a ObjectMeta> {
        let table = self.tables.get(resource).map(|it| it.named(name));
        table.into_iter().flatten().map(|it| it.meta())
    }

    /// The metadata of every object of every resource, resource by resource, in key order.
    pub fn all_meta(&self) -> impl Iterator<Item = (&Resource, &ObjectMeta)> {
        self.tables.iter().flat_map(|(resource, it)| it.iter().map(move |it| (resource, it.meta())))
    }

    /// The resources this view holds a table for.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.tables.keys()
    }

    /// What was found when this was last asked, if it was asked since the object's last change in this view.
    pub fn answer(&self, resource: &Resource, key: &Key) -> Option<&Answer> {
        let answered = self.answers.get(&(resource.clone(), key.clone()))?;
        let is_old = self.outdating.zip(answered.last).is_some_and(|(now, last)| now > last.after(ANSWERED_FOR));
        (!is_old).then_some(&answered.answer)
    }

    /// When [`View::answer`] was found first, without another answer since.
    pub fn answered_at(&self, resource: &Resource, key: &Key) -> Option<Time> {
        self.answers.get(&(resource.clone(), key.clone()))?.first
    }

    /// When this controller began to look: what was silent before may have been heard by nobody.
    pub fn since(&self) -> Option<Time> {
        self.since
    }

    /// The objects that are on a node, in key order.
    pub fn on_node<'a, T: Projection>(&'a self, node: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.found_by(node)
    }

    /// The objects that are to be found by this word (see [`Named::found_by`]), in key order.
    pub fn found_by<'a, T: Projection>(&'a self, word: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(&T::RESOURCE).map(|it| it.found_by(word));
        table.into_iter().flatten().filter_map(as_type)
    }

    /// What failed when this controller's last plan for `key` was carried out; nothing, if all of it succeeded.
    pub fn failure(&self, key: &Key) -> Option<&Failure> {
        self.failures.get(key)
    }

    /// What plans of this key have fetched, each of which fetched something.
    pub fn fetched(&self, key: &Key, path: &ApiPath) -> Option<&Fetched> {
        self.brought(key, path).map(Brought::fetched)
    }

    /// As [`View::fetched`], to be read once for all who look at it.
    pub fn brought(&self, key: &Key, path: &ApiPath) -> Option<&Brought> {
        self.brought.get(key, path)
    }

    /// What [`Effect::FetchForAll`] brought, for this key or within [`SHARED_FOR`] for another one.
    pub fn brought_for_all(&self, key: &Key, path: &ApiPath, now: Time) -> Option<&Brought> {
        self.brought.get_shared(key, path, now)
    }

    /// What a plan of this key had remembered last.
    pub fn note(&self, key: &Key) -> Option<&Value> {
        self.notes.get(key)
    }

    /// The keys of a namespace whose notes have a member `selector` that selects some of these labels, in their order.
    pub fn selecting<'a>(
        &self,
        namespace: &str,
        labels: impl Iterator<Item = &'a BTreeMap<String, String>> + Clone,
    ) -> Vec<&Key> {
        self.notes.selecting(namespace, labels)
    }

    /// The resources of which nobody knows what there is now, since the server cannot list them; their tables may be old, or
    /// empty. Only those of watches that bear it: for any other the mind is not asked.
    pub fn cannot_be_listed(&self) -> &BTreeSet<Resource> {
        &self.gaps
    }

    // ---- for the runner and for fixtures ----

    pub fn set_gaps(&mut self, gaps: BTreeSet<Resource>) {
        self.gaps = gaps;
    }

    /// Makes an empty table, so that a resource without objects is known to be watched.
    pub fn declare(&mut self, resource: &Resource) {
        self.tables.entry(resource.clone()).or_default();
    }

    /// As [`View::declare`], with the indexes that this empty table has: see [`crate::Watch::table`].
    pub fn declare_with(&mut self, resource: &Resource, table: Table) {
        self.tables.entry(resource.clone()).or_insert(table);
    }

    /// The resource is no longer watched.
    pub fn withdraw(&mut self, resource: &Resource) {
        self.tables.remove(resource);
        self.answers.retain(|(of, _), _| of != resource);
    }

    pub fn table(&self, resource: &Resource) -> Option<&Table> {
        self.tables.get(resource)
    }

    /// Sees from now on `table`, which differs from what was seen before at `changed` keys.
    pub fn advance<'a>(&mut self, resource: &Resource, table: Table, changed: impl Iterator<Item = &'a Key>) {
        changed.for_each(|it| self.forget_answer(resource, it));
        self.tables.insert(resource.clone(), table);
    }

    /// Puts one object in place of what its key held before, and gives that back.
    pub fn insert(&mut self, resource: &Resource, object: Object) -> Option<Object> {
        self.forget_answer(resource, &object.meta().key());
        let table = match self.tables.get_mut(resource) {
            Some(table) => table,
            None => self.tables.entry(resource.clone()).or_default(),
        };
        table.insert(object)
    }

    /// Takes one object out and gives it back.
    pub fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Object> {
        self.forget_answer(resource, key);
        self.tables.get_mut(resource)?.remove(key)
    }

    fn forget_answer(&mut self, resource: &Resource, key: &Key) {
        // Few are ever asked about.
        if !self.answers.is_empty() {
            self.answers.remove(&(resource.clone(), key.clone()));
        }
    }

    pub fn record_answer(&mut self, resource: Resource, key: Key, answer: Answer) {
        self.answers.insert((resource, key), Answered { answer, first: None, last: None });
    }

    /// As [`View::record_answer`], with when that was.
    pub fn record_answer_at(&mut self, resource: Resource, key: Key, answer: Answer, now: Time) {
        let place = (resource, key);
        let before = self.answers.get(&place).filter(|it| it.answer == answer).and_then(|it| it.first);
        self.answers.insert(place, Answered { answer, first: before.or(Some(now)), last: Some(now) });
    }

    /// Answers count for a few seconds from here on, by this time; without one they last.
    pub fn outdate_answers(&mut self, now: Option<Time>) {
        self.outdating = now;
    }

    pub fn begin(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// Keeps what failed of the key's plan; the next plan that succeeds as a whole is recorded as `None`.
    pub fn record_failure(&mut self, key: &Key, failure: Option<Failure>) {
        match failure {
            Some(failure) => drop(self.failures.insert(key.clone(), failure)),
            None => drop(self.failures.remove(key)),
        }
    }

    pub fn record_fetched(&mut self, key: &Key, path: ApiPath, fetched: Fetched) {
        self.brought.insert(key, path, fetched);
    }

    /// As [`View::record_fetched`], for what [`Effect::FetchForAll`] brought now.
    pub fn record_fetched_for_all(&mut self, key: &Key, path: ApiPath, fetched: Fetched, now: Time) {
        self.brought.insert_shared(key, path, fetched, now);
    }

    pub fn forget_fetched(&mut self, key: &Key) {
        self.brought.forget(key);
    }

    /// Is anything kept that was fetched for all, longer than it is shown?
    pub fn has_old_fetched(&self, now: Time) -> bool {
        self.brought.has_old(now)
    }

    pub fn forget_old_fetched(&mut self, now: Time) {
        self.brought.forget_old(now);
    }

    /// Has anything been fetched for this key?
    pub fn has_fetched(&self, key: &Key) -> bool {
        self.brought.has(key)
    }

    pub fn record_note(&mut self, key: &Key, note: Value) {
        self.notes.insert(key, note);
    }

    pub fn forget_note(&mut self, key: &Key) {
        self.notes.remove(key);
    }

    /// Forgets every answer: the runner does so before each resync, so that none outlives it.
    pub fn forget_answers(&mut self) {
        self.answers.clear();
    }
}
