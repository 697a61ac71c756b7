//! One rule of a role: what it matches, and whether a set of rules covers another (nobody may grant what they lack).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Attributes, Target, combined};

/// `rbac.authorization.k8s.io/v1 PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub non_resource_urls: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub resource_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub resources: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub verbs: Vec<String>,
}

/// Kubernetes writes an empty list as `null` in places.
pub(super) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|it| it == wanted)
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|it| it == "*" || it == wanted)
}

fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*'))
}

impl PolicyRule {
    /// Does this rule allow it?
    pub fn allows(&self, question: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, question.verb) {
            return false;
        }
        match question.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|it| path_matches(it, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                has_or_all(&self.api_groups, group)
                    && self.resources.iter().any(|it| resource_matches(it, resource, subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, name))
            }
        }
    }

    /// Does this rule, alone, allow all that `other` allows?
    fn covers(&self, other: &Self) -> bool {
        let names = match (&*self.resource_names, &*other.resource_names) {
            ([], _) => true,
            (_, []) => false,
            (mine, theirs) => theirs.iter().all(|it| has(mine, it)),
        };
        names
            && other.verbs.iter().all(|it| has_or_all(&self.verbs, it))
            && other.api_groups.iter().all(|it| has_or_all(&self.api_groups, it))
            && other.resources.iter().all(|it| covers_resource(&self.resources, it))
            && other.non_resource_urls.iter().all(|it| self.non_resource_urls.iter().any(|mine| path_matches(mine, it)))
    }

    /// The rule as many that allow one verb on one thing each.
    fn atoms(&self) -> Vec<Self> {
        let one = |it: &str| vec![it.to_owned()];
        let mut atoms = Vec::new();
        for verb in &self.verbs {
            for url in &self.non_resource_urls {
                atoms.push(Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() });
            }
            for (group, resource) in
                self.api_groups.iter().flat_map(|group| self.resources.iter().map(move |it| (group, it)))
            {
                let atom =
                    Self { verbs: one(verb), api_groups: one(group), resources: one(resource), ..Self::default() };
                if self.resource_names.is_empty() {
                    atoms.push(atom.clone());
                }
                atoms.extend(self.resource_names.iter().map(|it| Self { resource_names: one(it), ..atom.clone() }));
            }
        }
        atoms
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> =
            parts.iter().filter(|it| !it.1.is_empty()).map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn resource_matches(pattern: &str, resource: &str, subresource: &str) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || subresource.is_empty() && pattern == resource,
        Some(("*", sub)) => !sub.is_empty() && sub == subresource || pattern == combined(resource, subresource),
        Some((head, sub)) => head == resource && sub == subresource,
    }
}

fn covers_resource(mine: &[String], theirs: &str) -> bool {
    has_or_all(mine, theirs) || theirs.split_once('/').is_some_and(|(_, sub)| has(mine, &format!("*/{sub}")))
}

/// As Go prints a list of strings: `["a" "b"]`.
pub(super) fn quoted(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", list.join(" "))
}

/// What `wanted` allows and `held` does not, as a line per rule; empty where all is held.
pub fn missing(held: &[&PolicyRule], wanted: &[PolicyRule]) -> Vec<String> {
    let atoms = wanted.iter().flat_map(PolicyRule::atoms);
    let lacking = atoms.filter(|atom| !held.iter().any(|it| it.covers(atom)));
    // Rules that differ in the verb only become one.
    let mut merged: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
    for mut atom in lacking {
        let verbs = std::mem::take(&mut atom.verbs);
        let all = merged.entry(atom).or_default();
        let new: Vec<String> = verbs.into_iter().filter(|it| !has(all, it)).collect();
        all.extend(new);
    }
    let mut lines: Vec<String> =
        merged.into_iter().map(|(rule, verbs)| PolicyRule { verbs, ..rule }.compact()).collect();
    lines.sort();
    lines
}
