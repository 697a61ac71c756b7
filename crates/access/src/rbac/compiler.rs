//! Makes one index after another of what is stored; what has not changed is neither read nor put together anew.
//!
//! ```text
//! a RoleBinding or a Role has changed   -> the grants of its namespace
//! a ClusterRoleBinding                  -> those of the whole cluster
//! a ClusterRole                         -> all: bindings everywhere may name it
//! ```

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use corten_meta::Key;

use super::{Binding, Grant, Grants, Index, Role, RoleRef, Rules, Subject};

/// The objects of one resource, each with the revision it was read at. One that cannot be read is `None`, and grants nothing.
struct Decoded<T>(BTreeMap<Key, (u64, Option<T>)>);

impl<T> Default for Decoded<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Decoded<T> {
    /// Becomes what `objects` holds. Says which are others now, or no more.
    fn update(
        &mut self,
        objects: &[(Key, u64, &[u8])],
        read: impl Fn(&Key, &[u8]) -> serde_json::Result<T>,
    ) -> Vec<Key> {
        let mut changed = Vec::new();
        for (key, revision, bytes) in objects {
            if self.0.get(key).is_some_and(|it| it.0 == *revision) {
                continue;
            }
            let decoded = read(key, bytes)
                .inspect_err(|error| tracing::warn!(%key, %error, "an RBAC object cannot be read and grants nothing"));
            self.0.insert(key.clone(), (*revision, decoded.ok()));
            changed.push(key.clone());
        }
        if self.0.len() > objects.len() {
            let there: HashSet<&Key> = objects.iter().map(|it| &it.0).collect();
            let gone: Vec<Key> = self.0.keys().filter(|it| !there.contains(it)).cloned().collect();
            gone.iter().for_each(|it| drop(self.0.remove(it)));
            changed.extend(gone);
        }
        changed
    }

    /// Those of a namespace that can be read, in key order.
    fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a T> {
        let range = self.0.range(Key::new(namespace, "")..).take_while(move |it| it.0.namespace == namespace);
        range.filter_map(|(_, it)| it.1.as_ref())
    }
}

impl Decoded<Rules> {
    fn by_key(&self) -> Arc<BTreeMap<Key, Rules>> {
        let readable = self.0.iter().filter_map(|(key, it)| Some((key.clone(), it.1.clone()?)));
        Arc::new(readable.collect())
    }
}

/// A binding as grants are made of it: it says nothing of the role's rules, which change without it.
struct Bound {
    role: RoleRef,
    recipients: Vec<Recipient>,
}

/// Whom a binding gives its role.
struct Recipient {
    is_group: bool,
    name: Arc<str>,
    /// See [`Grant::reason`].
    reason: Arc<str>,
}

impl Bound {
    fn read(key: &Key, bytes: &[u8]) -> serde_json::Result<Self> {
        let Binding { subjects, role_ref: role } = serde_json::from_slice(bytes)?;
        let name = if key.namespace.is_empty() {
            format!("ClusterRoleBinding {:?}", key.name)
        } else {
            format!("RoleBinding {:?}", format!("{}/{}", key.name, key.namespace))
        };
        let recipients = subjects.iter().filter_map(|it| Recipient::of(it, &key.namespace, &role, &name)).collect();
        Ok(Self { role, recipients })
    }
}

impl Recipient {
    /// `binding` is its name, as reasons write it.
    fn of(subject: &Subject, namespace: &str, role: &RoleRef, binding: &str) -> Option<Self> {
        let Subject { kind, name, namespace: named } = subject;
        let (called, of) = match &**kind {
            "User" | "Group" => (name.clone(), name.clone()),
            "ServiceAccount" => {
                // A binding in a namespace may leave the account's namespace out: its own is meant.
                let namespace = if named.is_empty() { namespace } else { named };
                (format!("system:serviceaccount:{namespace}:{name}"), format!("{name}/{namespace}"))
            }
            _ => return None,
        };
        let reason = format!("RBAC: allowed by {binding} of {} {:?} to {kind} {of:?}", role.kind, role.name);
        Some(Self { is_group: kind == "Group", name: called.into(), reason: reason.into() })
    }
}

/// See the module's documentation.
#[derive(Default)]
pub struct Compiler {
    roles: Decoded<Rules>,
    cluster_roles: Decoded<Rules>,
    bindings: Decoded<Bound>,
    cluster_bindings: Decoded<Bound>,
    newest: Index,
}

/// The objects of the four resources, as `(key, revision, JSON)`.
pub struct Objects<'a> {
    pub roles: Vec<(Key, u64, &'a [u8])>,
    pub cluster_roles: Vec<(Key, u64, &'a [u8])>,
    pub bindings: Vec<(Key, u64, &'a [u8])>,
    pub cluster_bindings: Vec<(Key, u64, &'a [u8])>,
}

impl Compiler {
    pub fn compile(&mut self, objects: &Objects<'_>) -> Index {
        // After a panic the next index is made from the beginning: no change is lost between what was read and what was made of it.
        let mut next = std::mem::take(self);
        next.follow(objects);
        *self = next;
        self.newest.clone()
    }

    fn follow(&mut self, objects: &Objects<'_>) {
        let rules = |_: &Key, bytes: &[u8]| serde_json::from_slice::<Role>(bytes).map(|it| it.rules);
        let roles = self.roles.update(&objects.roles, rules);
        let cluster_roles = self.cluster_roles.update(&objects.cluster_roles, rules);
        let bindings = self.bindings.update(&objects.bindings, Bound::read);
        let cluster_bindings = self.cluster_bindings.update(&objects.cluster_bindings, Bound::read);
        if !roles.is_empty() {
            self.newest.roles = self.roles.by_key();
        }
        if !cluster_roles.is_empty() {
            self.newest.cluster_roles = self.cluster_roles.by_key();
        }
        if !cluster_roles.is_empty() || !cluster_bindings.is_empty() {
            let as_before = &self.newest.cluster;
            self.newest.cluster = Arc::new(self.newest.given_by(&self.cluster_bindings, "", as_before));
        }
        let mut namespaces: BTreeSet<&str> = roles.iter().chain(&bindings).map(|it| &*it.namespace).collect();
        if !cluster_roles.is_empty() {
            namespaces.extend(self.bindings.0.keys().map(|it| &*it.namespace));
        }
        for namespace in namespaces {
            if self.bindings.in_namespace(namespace).next().is_some() {
                let as_before = self.newest.namespaces.get(namespace).cloned().unwrap_or_default();
                let grants = self.newest.given_by(&self.bindings, namespace, &as_before);
                self.newest.namespaces.insert(namespace.into(), Arc::new(grants));
            } else {
                self.newest.namespaces.remove(namespace);
            }
        }
    }
}

impl Index {
    /// What the bindings of a namespace give, about as much as before.
    fn given_by(&self, bindings: &Decoded<Bound>, namespace: &str, before: &Grants) -> Grants {
        let room = |it: &HashMap<Arc<str>, Vec<Grant>>| HashMap::with_capacity(it.len());
        let mut grants = Grants { users: room(&before.users), groups: room(&before.groups) };
        for Bound { role, recipients } in bindings.in_namespace(namespace) {
            let rules = self.rules_of(role, namespace);
            for Recipient { is_group, name, reason } in recipients {
                let of = if *is_group { &mut grants.groups } else { &mut grants.users };
                let grant = Grant { rules: rules.clone(), reason: reason.clone() };
                // Most are given something by one binding alone.
                of.entry(name.clone()).or_insert_with(|| Vec::with_capacity(1)).push(grant);
            }
        }
        grants.drop_repeated();
        grants
    }

    fn rules_of(&self, role: &RoleRef, namespace: &str) -> Result<Rules, Arc<str>> {
        let absent = || {
            let kind = role.kind.to_lowercase();
            format!("{kind}.rbac.authorization.k8s.io {:?}", role.name).into()
        };
        self.rules(role, namespace).cloned().ok_or_else(absent)
    }
}
