//! RBAC: who is bound to which rules, as an index that answers without decoding a single object.
//!
//! The index is a value: another takes its place when one of the four RBAC resources has changed ([`Compiler`]).

mod compiler;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, LazyLock},
};

pub use compiler::{Compiler, Objects};

use corten_meta::{Key, aggregate};
use serde::Deserialize;

use crate::{
    question::{Attributes, Decision, MASTERS, ResourceOrPath},
    rule::{PolicyRule, Texts},
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
    users: HashMap<Arc<str>, Vec<Grant>>,
    groups: HashMap<Arc<str>, Vec<Grant>>,
}

impl Grants {
    fn of<'a>(&'a self, user: &str, groups: &'a [String]) -> impl Iterator<Item = &'a Grant> + use<'a> {
        let by_user = self.users.get(user).into_iter().flatten();
        by_user.chain(groups.iter().filter_map(|it| self.groups.get(&**it)).flatten())
    }

    /// Keeps the first of several bindings that give the same role to the same subject: the others give nothing more, and every
    /// decision would go through their rules again.
    fn drop_repeated(&mut self) {
        let several = self.users.values_mut().chain(self.groups.values_mut()).filter(|it| it.len() > 1);
        for grants in several {
            let (mut roles, mut absent) = (HashSet::new(), HashSet::new());
            grants.retain(|it| match &it.rules {
                Ok(rules) => roles.insert(rules.as_ptr()),
                Err(role) => absent.insert(role.clone()),
            });
        }
    }
}

/// Every grant of the cluster, by where and to whom. One index shares with the next what is the same in both.
#[derive(Clone, Default)]
pub struct Index {
    cluster: Arc<Grants>,
    namespaces: HashMap<Arc<str>, Arc<Grants>>,
    roles: Arc<BTreeMap<Key, Rules>>,
    cluster_roles: Arc<BTreeMap<Key, Rules>>,
}

impl Index {
    pub fn decide(&self, question: &Attributes<'_>) -> Decision {
        if question.is_master() {
            return Decision::Allowed(None);
        }
        let mut missing = Vec::new();
        for grant in self.grants_of(question) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|it| it.allows(question)) => {
                    return Decision::Allowed(Some(grant.reason.clone()));
                }
                Ok(_) => {}
                Err(role) if missing.len() < ABSENT_ROLES_MAX && !missing.contains(&&**role) => missing.push(&**role),
                Err(_) => {}
            }
        }
        let missing = aggregate(missing.iter().map(|it| format!("{it} not found")));
        Decision::Denied(missing.map(|it| format!("RBAC: {it}")).unwrap_or_default().into())
    }

    /// How many rules a decision goes through at most.
    pub fn n_rules(&self, question: &Attributes<'_>) -> usize {
        self.grants_of(question).filter_map(|it| it.rules.as_ref().ok()).map(|it| it.len()).sum()
    }

    fn grants_of<'a>(&'a self, question: &'a Attributes<'_>) -> impl Iterator<Item = &'a Grant> {
        let namespace = match question.target {
            ResourceOrPath::Resource { namespace, .. } => namespace,
            ResourceOrPath::Path(_) => "",
        };
        self.grants(question.user, question.groups, namespace)
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
        self.rules(reference, namespace).map(|it| &**it)
    }

    fn rules(&self, reference: &RoleRef, namespace: &str) -> Option<&Rules> {
        match &*reference.kind {
            "Role" => self.roles.get(&Key::new(namespace, &*reference.name)),
            _ => self.cluster_roles.get(&Key::cluster(&*reference.name)),
        }
    }
}

/// What members of `system:masters` hold, written as rules.
pub static EVERYTHING: LazyLock<[PolicyRule; 2]> = LazyLock::new(|| {
    let all = || Texts::from(["*".into()]);
    [
        PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
        PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
    ]
});

#[cfg(test)]
mod tests;
