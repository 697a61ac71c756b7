//! What a mind sees: projections of objects, by key, by namespace and by owner, and answers to what it asked.
//!
//! One view belongs to one controller. The runner feeds it from informers; between two calls of `reconcile` it may
//! change, during one it never does. Iteration is always in key order, so plans are deterministic.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_meta::{Key, Named, ObjectMeta, Resource};
use serde::de::DeserializeOwned;

use crate::Effect;

/// A projection: the fields of one kind that one mind reads.
///
/// ```text
/// #[derive(Deserialize)] struct Pod { metadata: ObjectMeta, #[serde(default)] status: PodStatus }
/// ```
pub trait Seen: Named + DeserializeOwned + Send + Sync + 'static {
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
}

/// The effect that failed when a key's last plan was carried out, and what the API server said.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub effect: Effect,
    pub message: String,
}

/// A projection as the view keeps it: once, with the metadata that the indexes read.
pub trait Projection: Named + Any + Send + Sync {}

impl<T: Named + Any + Send + Sync> Projection for T {}

pub type Object = Arc<dyn Projection>;

fn as_type<T: 'static>(object: &Object) -> Option<&T> {
    (&**object as &dyn Any).downcast_ref()
}

#[derive(Default)]
struct Table {
    objects: BTreeMap<Key, Object>,
    by_owner: BTreeMap<String, BTreeSet<Key>>,
    /// The objects that no owner controls.
    uncontrolled: BTreeSet<Key>,
    /// The objects that are being deleted, by uid: few at any time.
    deleting: BTreeMap<String, Key>,
}

impl Table {
    fn index(&mut self, key: Key, meta: &ObjectMeta) {
        for owner in &meta.owner_references {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if meta.is_deleting() {
            self.deleting.insert(meta.uid.clone(), key.clone());
        }
        if meta.controller().is_none() {
            self.uncontrolled.insert(key);
        }
    }

    fn unindex(&mut self, key: &Key, meta: &ObjectMeta) {
        for owner in &meta.owner_references {
            if let Some(keys) = self.by_owner.get_mut(&owner.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(&owner.uid);
                }
            }
        }
        if meta.is_deleting() {
            self.deleting.remove(&meta.uid);
        }
        if meta.controller().is_none() {
            self.uncontrolled.remove(key);
        }
    }
}

/// See the module's documentation.
#[derive(Default)]
pub struct View {
    tables: BTreeMap<Resource, Table>,
    answers: BTreeMap<(Resource, Key), Answer>,
    failures: BTreeMap<Key, Failure>,
}

impl View {
    pub fn get<T: Seen>(&self, key: &Key) -> Option<&T> {
        self.get_in(&T::RESOURCE, key)
    }

    /// All objects of a kind, in key order.
    pub fn list<T: Seen>(&self) -> impl Iterator<Item = &T> {
        self.list_in(&T::RESOURCE)
    }

    pub fn in_namespace<'a, T: Seen>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a T> {
        self.in_namespace_of(&T::RESOURCE, namespace)
    }

    /// As [`View::in_namespace`], for minds that see many resources through one projection.
    pub fn in_namespace_of<'a, T: 'static>(
        &'a self,
        resource: &Resource,
        namespace: &str,
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(resource);
        let from = Key::new(namespace, "");
        let namespace = namespace.to_owned();
        table
            .into_iter()
            .flat_map(move |it| it.objects.range(from.clone()..))
            .take_while(move |(key, _)| key.namespace == namespace)
            .filter_map(|(_, object)| as_type(object))
    }

    /// The objects that name `uid` among their owners, in key order.
    pub fn owned_by<'a, T: Seen>(&'a self, uid: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(&T::RESOURCE);
        let keys = table.and_then(|it| it.by_owner.get(uid));
        keys.into_iter().flatten().filter_map(move |it| self.get(it))
    }

    /// The objects of a namespace that no owner controls, in key order: what may be adopted.
    pub fn uncontrolled<'a, T: Seen>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a T> {
        let table = self.tables.get(&T::RESOURCE);
        let from = Key::new(namespace, "");
        table
            .into_iter()
            .flat_map(move |it| it.uncontrolled.range(from.clone()..))
            .take_while(move |key| key.namespace == namespace)
            .filter_map(|key| self.get(key))
    }

    /// The object with this uid, of any resource, if it is being deleted.
    pub fn deleting(&self, uid: &str) -> Option<(&Resource, &ObjectMeta)> {
        self.tables.iter().find_map(|(resource, table)| {
            let object = table.objects.get(table.deleting.get(uid)?)?;
            Some((resource, object.meta()))
        })
    }

    /// As [`View::get`], for minds that see many resources through one projection.
    pub fn get_in<T: 'static>(&self, resource: &Resource, key: &Key) -> Option<&T> {
        as_type(self.tables.get(resource)?.objects.get(key)?)
    }

    pub fn list_in<'a, T: 'static>(&'a self, resource: &Resource) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let table = self.tables.get(resource);
        table.into_iter().flat_map(|it| it.objects.values()).filter_map(as_type)
    }

    /// Every object of any resource that names `uid` among its owners.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = (&Resource, &ObjectMeta)> {
        self.tables.iter().flat_map(move |(resource, table)| {
            let keys = table.by_owner.get(uid).into_iter().flatten();
            keys.filter_map(move |key| table.objects.get(key).map(|it| (resource, it.meta())))
        })
    }

    /// The metadata of one object of any resource.
    pub fn meta(&self, resource: &Resource, key: &Key) -> Option<&ObjectMeta> {
        self.tables.get(resource)?.objects.get(key).map(|it| it.meta())
    }

    /// The metadata of every object of every resource, resource by resource, in key order.
    pub fn all_meta(&self) -> impl Iterator<Item = (&Resource, &ObjectMeta)> {
        self.tables.iter().flat_map(|(resource, it)| it.objects.values().map(move |it| (resource, it.meta())))
    }

    /// The resources this view holds a table for.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.tables.keys()
    }

    /// What was found when this was last asked, if it was asked since the object's last change in this view.
    pub fn answer(&self, resource: &Resource, key: &Key) -> Option<&Answer> {
        self.answers.get(&(resource.clone(), key.clone()))
    }

    /// What failed when this controller's last plan for `key` was carried out; nothing, if all of it succeeded.
    pub fn failure(&self, key: &Key) -> Option<&Failure> {
        self.failures.get(key)
    }

    // ---- for the runner and for fixtures ----

    /// Makes an empty table, so that a resource without objects is known to be watched.
    pub fn declare(&mut self, resource: &Resource) {
        self.tables.entry(resource.clone()).or_default();
    }

    /// Puts one object in place of what its key held before, and gives that back.
    pub fn insert(&mut self, resource: &Resource, object: Object) -> Option<Object> {
        let key = object.meta().key();
        self.forget_answer(resource, &key);
        let table = match self.tables.get_mut(resource) {
            Some(table) => table,
            None => self.tables.entry(resource.clone()).or_default(),
        };
        let old = table.objects.insert(key.clone(), object.clone());
        if let Some(old) = &old {
            table.unindex(&key, old.meta());
        }
        table.index(key, object.meta());
        old
    }

    /// Takes one object out and gives it back.
    pub fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Object> {
        self.forget_answer(resource, key);
        let table = self.tables.get_mut(resource)?;
        let object = table.objects.remove(key)?;
        table.unindex(key, object.meta());
        Some(object)
    }

    fn forget_answer(&mut self, resource: &Resource, key: &Key) {
        // Few are ever asked about.
        if !self.answers.is_empty() {
            self.answers.remove(&(resource.clone(), key.clone()));
        }
    }

    pub fn record_answer(&mut self, resource: Resource, key: Key, answer: Answer) {
        self.answers.insert((resource, key), answer);
    }

    /// Keeps what failed of the key's plan; the next plan that succeeds as a whole is recorded as `None`.
    pub fn record_failure(&mut self, key: &Key, failure: Option<Failure>) {
        match failure {
            Some(failure) => drop(self.failures.insert(key.clone(), failure)),
            None => drop(self.failures.remove(key)),
        }
    }

    /// Forgets every answer: the runner does so before each resync, so that none outlives it.
    pub fn forget_answers(&mut self) {
        self.answers.clear();
    }
}
