//! The objects of one resource as a mind sees them, with the indexes minds ask for.
//!
//! A table is a value: a clone costs nothing, and changing one leaves its clones what they were. So many views can hold
//! one table, each as new as what it has been told of.

use std::{ops::Bound, sync::Arc};

use corten_meta::{Key, Requirement, Selector};
use imbl::{OrdMap, OrdSet};

use super::{Object, labels::Labelled, notes::only_value};

/// See the module's documentation. Iteration is in key order.
#[derive(Clone, Default)]
pub struct Table {
    objects: OrdMap<Arc<Key>, Object>,
    /// Owner's uid and the key of an object that names it, once for each owner; whether it blocks the owner's deletion.
    by_owner: OrdMap<(Arc<str>, Arc<Key>), bool>,
    /// The objects that no owner controls.
    uncontrolled: OrdSet<Arc<Key>>,
    /// The objects that are being deleted, by uid: few at any time.
    deleting: OrdMap<Arc<str>, Arc<Key>>,
    /// What objects are to be found by beside their keys, such as a node's name, and the key of one.
    by_word: OrdSet<(Arc<str>, Arc<Key>)>,
    /// Only of a table that is looked into by labels.
    labelled: Option<Labelled>,
}

impl Table {
    /// An empty one that is looked into by labels: see [`Table::selected`].
    pub(crate) fn by_labels() -> Self {
        Self { labelled: Some(Labelled::default()), ..Self::default() }
    }

    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys().map(|it| &**it)
    }

    /// The objects of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let range = self.objects.range(Key::new(namespace, "")..);
        let namespace = namespace.to_owned();
        range.take_while(move |(key, _)| key.namespace == namespace).map(|it| it.1)
    }

    /// How many objects a namespace has.
    pub fn count_in_namespace(&self, namespace: &str) -> usize {
        match &self.labelled {
            Some(labelled) => labelled.count(namespace),
            None => self.in_namespace(namespace).count(),
        }
    }

    /// The objects of a namespace that meet all requirements, in key order. It does not matter how many there are beside those
    /// with the rarest label that is asked for, where the table is looked into by labels.
    pub fn selected<'a>(&'a self, namespace: &str, requirements: &[Requirement]) -> Vec<&'a Object> {
        let selector: Selector = requirements.iter().cloned().collect();
        let is_selected = |it: &&Object| selector.matches(&it.meta().labels);
        let labels = requirements.iter().filter_map(only_value);
        match self.labelled.as_ref().and_then(|it| it.candidates(namespace, labels)) {
            Some(keys) => {
                let of_namespace = keys.into_iter().filter(|it| it.namespace == namespace);
                of_namespace.filter_map(|it| self.objects.get(&**it)).filter(is_selected).collect()
            }
            None => self.in_namespace(namespace).filter(is_selected).collect(),
        }
    }

    /// The objects of this name, one in each namespace that has it. Namespaces without any object here cost nothing.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Object> {
        let mut from = Key::default();
        let namespaces = std::iter::from_fn(move || {
            let namespace = self.objects.range(from.clone()..).next()?.0.namespace.clone();
            // No namespace comes between one and itself with a NUL behind it.
            from = Key::new(format!("{namespace}\0"), "");
            Some(namespace)
        });
        namespaces.filter_map(move |it| self.objects.get(&Key::new(it, name)))
    }

    /// The objects that name `uid` among their owners.
    pub fn owned_by<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.dependents(uid).filter_map(|it| self.objects.get(it.0))
    }

    /// Of the objects that name `uid` among their owners those that block its deletion: looked up, so that it does not
    /// matter how many owners each of them has.
    pub fn blocking<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.dependents(uid).filter(|it| it.1).filter_map(|it| self.objects.get(it.0))
    }

    fn dependents<'a>(&'a self, uid: &str) -> impl Iterator<Item = (&'a Key, bool)> + use<'a> {
        // Keys without a name come before all others.
        let uid: Arc<str> = uid.into();
        let first = (uid.clone(), Arc::new(Key::new("", "")));
        let range = self.by_owner.range((Bound::Included(first), Bound::Unbounded));
        range.take_while(move |it| it.0.0 == uid).map(|(it, blocks)| (&*it.1, *blocks))
    }

    /// Does any object here name an owner?
    pub fn has_owned(&self) -> bool {
        !self.by_owner.is_empty()
    }

    /// The objects that are to be found by this word.
    pub fn found_by<'a>(&'a self, word: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let word: Arc<str> = word.into();
        let first = (word.clone(), Arc::new(Key::new("", "")));
        let range = self.by_word.range((Bound::Included(first), Bound::Unbounded));
        range.take_while(move |it| it.0 == word).filter_map(|it| self.objects.get(&*it.1))
    }

    /// The objects of a namespace that no owner controls.
    pub fn uncontrolled<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let range = self.uncontrolled.range(Key::new(namespace, "")..);
        let namespace = namespace.to_owned();
        range.take_while(move |it| it.namespace == namespace).filter_map(|it| self.objects.get(&**it))
    }

    /// The object with this uid, if it is being deleted.
    pub fn deleting(&self, uid: &str) -> Option<&Object> {
        self.objects.get(&**self.deleting.get(uid)?)
    }

    /// Puts an object in place of what its key held before, and gives that back.
    pub fn insert(&mut self, object: Object) -> Option<Object> {
        let key = object.meta().key();
        let key = match self.objects.get_key_value(&key) {
            Some((known, _)) => known.clone(),
            None => Arc::new(key),
        };
        let old = self.objects.insert(key.clone(), object.clone());
        if let Some(old) = &old {
            let has_other_labels = self.labelled.is_some() && old.meta().labels != object.meta().labels;
            if is_indexed_alike(old, &object) && !has_other_labels {
                return Some(old.clone());
            }
            self.unindex(&key, old);
        }
        self.index(key, &object);
        old
    }

    /// Takes an object out and gives it back.
    pub fn remove(&mut self, key: &Key) -> Option<Object> {
        let (key, object) = self.objects.remove_with_key(key)?;
        self.unindex(&key, &object);
        Some(object)
    }

    fn index(&mut self, key: Arc<Key>, object: &Object) {
        let meta = object.meta();
        if let Some(labelled) = &mut self.labelled {
            labelled.index(&key, meta);
        }
        if let Some(word) = object.found_by() {
            self.by_word.insert((word.into(), key.clone()));
        }
        for owner in &meta.owner_references {
            let blocks = self.by_owner.entry((owner.uid.as_str().into(), key.clone())).or_insert(false);
            *blocks |= owner.block_owner_deletion == Some(true);
        }
        if meta.is_deleting() {
            self.deleting.insert(meta.uid.as_str().into(), key.clone());
        }
        if meta.controller().is_none() {
            self.uncontrolled.insert(key);
        }
    }

    fn unindex(&mut self, key: &Arc<Key>, object: &Object) {
        let meta = object.meta();
        if let Some(labelled) = &mut self.labelled {
            labelled.unindex(key, meta);
        }
        if let Some(word) = object.found_by() {
            self.by_word.remove(&(Arc::<str>::from(word), key.clone()));
        }
        for owner in &meta.owner_references {
            self.by_owner.remove(&(Arc::<str>::from(owner.uid.as_str()), key.clone()));
        }
        if meta.is_deleting() {
            self.deleting.remove(&*meta.uid);
        }
        if meta.controller().is_none() {
            self.uncontrolled.remove(&**key);
        }
    }
}

/// Do the indexes hold the same of both? Most changes of an object touch none of what they read.
fn is_indexed_alike(old: &Object, new: &Object) -> bool {
    let is_moved = old.found_by() != new.found_by();
    let (old, new) = (old.meta(), new.meta());
    !is_moved
        && old.uid == new.uid
        && old.is_deleting() == new.is_deleting()
        && old.owner_references == new.owner_references
}
