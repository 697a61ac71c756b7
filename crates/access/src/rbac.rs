//! RBAC: who is bound to which rules, as an index that answers without decoding a single object.
//!
//! The index is made anew when one of the four RBAC resources has changed, and then only objects that changed are decoded.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use corten_meta::Key;
use serde::Deserialize;

use crate::{
    question::{Attributes, Decision, MASTERS, ResourceOrPath},
    rule::PolicyRule,
};

pub type Rules = Arc<[PolicyRule]>;

/// A denial names so many roles that bindings name in vain.
const ABSENT_ROLES_MAX: usize = 100;

/// A `Role` or `ClusterRole`, as far as decisions go.
#[derive(Debug, Default, Deserialize)]
pub struct Role {
    #[serde(default, deserialize_with = "rules")]
    pub rules: Rules,
}

fn rules<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Rules, D::Error> {
    Ok(crate::rule::null_is_empty(deserializer)?.into())
}

/// A `RoleBinding` or `ClusterRoleBinding`, as far as decisions go.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    #[serde(default, deserialize_with = "crate::rule::null_is_empty")]
    pub subjects: Vec<Subject>,
    pub role_ref: RoleRef,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subject {
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RoleRef {
    pub kind: String,
    pub name: String,
}

/// What a binding gives to one of its subjects.
#[derive(Clone)]
struct Grant {
    /// The rules of a role, or the name of the role that a binding names in vain.
    rules: Result<Rules, Arc<str>>,
    /// Which binding this is, as answers and audit records name it.
    reason: Arc<str>,
}

/// Grants of one namespace, or of the whole cluster.
#[derive(Default)]
struct Grants {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

impl Grants {
    fn of<'a>(&'a self, user: &str, groups: &'a [String]) -> impl Iterator<Item = &'a Grant> + use<'a> {
        let by_user = self.users.get(user).into_iter().flatten();
        by_user.chain(groups.iter().filter_map(|it| self.groups.get(it)).flatten())
    }

    /// Keeps the first of several bindings that give the same role to the same subject: the others give nothing more, and every
    /// decision would go through their rules again.
    fn drop_repeated(&mut self) {
        for grants in self.users.values_mut().chain(self.groups.values_mut()) {
            let (mut roles, mut absent) = (HashSet::new(), HashSet::new());
            grants.retain(|it| match &it.rules {
                Ok(rules) => roles.insert(rules.as_ptr()),
                Err(role) => absent.insert(role.clone()),
            });
        }
    }
}

/// Every grant of the cluster, by where and to whom.
#[derive(Default)]
pub struct Index {
    cluster: Grants,
    namespaces: HashMap<String, Grants>,
    roles: BTreeMap<Key, Rules>,
    cluster_roles: BTreeMap<Key, Rules>,
}

impl Index {
    pub fn decide(&self, question: &Attributes<'_>) -> Decision {
        if question.is_master() {
            return Decision::Allowed(None);
        }
        let namespace = match question.target {
            ResourceOrPath::Resource { namespace, .. } => namespace,
            ResourceOrPath::Path(_) => "",
        };
        let mut missing = Vec::new();
        for grant in self.grants(question.user, question.groups, namespace) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|it| it.allows(question)) => {
                    return Decision::Allowed(Some(grant.reason.clone()));
                }
                Ok(_) => {}
                Err(role) if missing.len() < ABSENT_ROLES_MAX && !missing.contains(&&**role) => missing.push(&**role),
                Err(_) => {}
            }
        }
        let reason = match &*missing {
            [] => String::new(),
            [one] => format!("RBAC: {one} not found"),
            many => {
                let many: Vec<String> = many.iter().map(|it| format!("{it} not found")).collect();
                format!("RBAC: [{}]", many.join(", "))
            }
        };
        Decision::Denied(reason.into())
    }

    fn grants<'a>(
        &'a self,
        user: &'a str,
        groups: &'a [String],
        namespace: &str,
    ) -> impl Iterator<Item = &'a Grant> + use<'a> {
        let within = self.namespaces.get(namespace).into_iter().flat_map(move |it| it.of(user, groups));
        self.cluster.of(user, groups).chain(within)
    }

    /// The rules that bindings give a user in a namespace; those of one role once for each of the user's names and groups it is given
    /// to, and once for the cluster and the namespace.
    pub fn granted<'a>(
        &'a self,
        user: &'a str,
        groups: &'a [String],
        namespace: &str,
    ) -> impl Iterator<Item = &'a PolicyRule> + use<'a> {
        let grants = self.grants(user, groups, namespace).filter_map(|it| it.rules.as_ref().ok());
        grants.flat_map(|it| it.iter())
    }

    /// Every rule that holds for a user in a namespace (empty: the cluster-wide ones).
    pub fn rules_for<'a>(&'a self, user: &'a str, groups: &'a [String], namespace: &str) -> Vec<&'a PolicyRule> {
        let everything = groups.iter().any(|it| it == MASTERS);
        self.granted(user, groups, namespace).chain(everything.then_some(&*EVERYTHING).into_iter().flatten()).collect()
    }

    /// The rules of the role that a binding in `namespace` (empty: a cluster-wide one) refers to.
    pub fn role(&self, reference: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        let rules = match &*reference.kind {
            "Role" => self.roles.get(&Key::new(namespace, &*reference.name)),
            _ => self.cluster_roles.get(&Key::cluster(&*reference.name)),
        };
        rules.map(|it| &**it)
    }
}

/// What members of `system:masters` hold, written as rules.
pub static EVERYTHING: LazyLock<[PolicyRule; 2]> = LazyLock::new(|| {
    let all = || vec!["*".to_owned()];
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
});

/// The decoded objects of one resource, each with the revision it was decoded at.
struct Decoded<T>(BTreeMap<Key, (u64, Arc<T>)>);

impl<T> Default for Decoded<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: serde::de::DeserializeOwned> Decoded<T> {
    /// Becomes what `objects` holds; what has not changed is kept. An object that cannot be read grants nothing.
    fn update(&mut self, objects: &[(Key, u64, &[u8])]) {
        let mut before = std::mem::take(&mut self.0);
        for (key, revision, bytes) in objects {
            let kept = before.remove(key).filter(|it| it.0 == *revision).map(|it| it.1);
            let decoded = kept.or_else(|| match serde_json::from_slice(bytes) {
                Ok(object) => Some(Arc::new(object)),
                Err(error) => {
                    tracing::warn!(%key, %error, "an RBAC object cannot be read and grants nothing");
                    None
                }
            });
            if let Some(object) = decoded {
                self.0.insert(key.clone(), (*revision, object));
            }
        }
    }
}

/// Makes indexes of what is stored, one after another.
#[derive(Default)]
pub struct Compiler {
    roles: Decoded<Role>,
    cluster_roles: Decoded<Role>,
    bindings: Decoded<Binding>,
    cluster_bindings: Decoded<Binding>,
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
        self.roles.update(&objects.roles);
        self.cluster_roles.update(&objects.cluster_roles);
        self.bindings.update(&objects.bindings);
        self.cluster_bindings.update(&objects.cluster_bindings);

        let rules = |it: &Decoded<Role>| it.0.iter().map(|(key, it)| (key.clone(), it.1.rules.clone())).collect();
        let mut index =
            Index { roles: rules(&self.roles), cluster_roles: rules(&self.cluster_roles), ..Index::default() };
        for (key, (_, binding)) in &self.cluster_bindings.0 {
            let rules = index.rules_of(&binding.role_ref, "");
            bind(&mut index.cluster, binding, "", &rules, &format!("ClusterRoleBinding {:?}", key.name));
        }
        for (key, (_, binding)) in &self.bindings.0 {
            let rules = index.rules_of(&binding.role_ref, &key.namespace);
            let grants = index.namespaces.entry(key.namespace.clone()).or_default();
            let name = format!("RoleBinding {:?}", format!("{}/{}", key.name, key.namespace));
            bind(grants, binding, &key.namespace, &rules, &name);
        }
        index.namespaces.values_mut().chain([&mut index.cluster]).for_each(Grants::drop_repeated);
        index
    }
}

impl Index {
    fn rules_of(&self, reference: &RoleRef, namespace: &str) -> Result<Rules, Arc<str>> {
        let found = match &*reference.kind {
            "Role" => self.roles.get(&Key::new(namespace, &*reference.name)),
            _ => self.cluster_roles.get(&Key::cluster(&*reference.name)),
        };
        let absent = || {
            let kind = reference.kind.to_lowercase();
            format!("{kind}.rbac.authorization.k8s.io {:?}", reference.name).into()
        };
        found.cloned().ok_or_else(absent)
    }
}

/// `name` is that of the binding, as reasons write it.
fn bind(grants: &mut Grants, binding: &Binding, namespace: &str, rules: &Result<Rules, Arc<str>>, name: &str) {
    let RoleRef { kind, name: role } = &binding.role_ref;
    for subject in &binding.subjects {
        let (list, of) = match &*subject.kind {
            "User" => (grants.users.entry(subject.name.clone()).or_default(), subject.name.clone()),
            "Group" => (grants.groups.entry(subject.name.clone()).or_default(), subject.name.clone()),
            "ServiceAccount" => {
                // A binding in a namespace may leave the account's namespace out: its own is meant.
                let namespace = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                let user = format!("system:serviceaccount:{namespace}:{}", subject.name);
                (grants.users.entry(user).or_default(), format!("{}/{namespace}", subject.name))
            }
            _ => continue,
        };
        let reason = format!("RBAC: allowed by {name} of {kind} {role:?} to {} {of:?}", subject.kind);
        list.push(Grant { rules: rules.clone(), reason: reason.into() });
    }
}

#[cfg(test)]
mod tests;
