//! One rule of a role: what it matches, and whether a set of rules covers another (nobody may grant what they lack).

use serde::{Deserialize, Serialize};

use crate::question::{Attributes, ResourceOrPath, combined};

/// Texts of a rule. Of a large role there are as many as it has bytes, nearly all alone in their list: each has the room it takes and no more.
pub type Texts = Box<[Box<str>]>;

/// `rbac.authorization.k8s.io/v1 PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "no_texts", deserialize_with = "null_is_none")]
    pub non_resource_urls: Texts,
    #[serde(skip_serializing_if = "no_texts", deserialize_with = "null_is_none")]
    pub api_groups: Texts,
    #[serde(skip_serializing_if = "no_texts", deserialize_with = "null_is_none")]
    pub resource_names: Texts,
    #[serde(skip_serializing_if = "no_texts", deserialize_with = "null_is_none")]
    pub resources: Texts,
    #[serde(deserialize_with = "null_is_none")]
    pub verbs: Texts,
}

fn no_texts(list: &Texts) -> bool {
    list.is_empty()
}

fn null_is_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
    Ok(null_is_empty(deserializer)?.into())
}

/// Kubernetes writes an empty list as `null` in places.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn has(list: &[Box<str>], wanted: &str) -> bool {
    list.iter().any(|it| **it == *wanted)
}

fn has_or_all(list: &[Box<str>], wanted: &str) -> bool {
    list.iter().any(|it| **it == *"*" || **it == *wanted)
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
            ResourceOrPath::Path(path) => self.non_resource_urls.iter().any(|it| path_matches(it, path)),
            ResourceOrPath::Resource { group, resource, subresource, name, .. } => {
                has_or_all(&self.api_groups, group)
                    && self.resources.iter().any(|it| resource_matches(it, resource, subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, name))
            }
        }
    }

    /// Does this rule, alone, allow all that `other` allows?
    pub(crate) fn covers(&self, other: &Self) -> bool {
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

    /// How many texts [`Self::covers`] compares at most.
    pub(crate) fn n_comparisons(&self, other: &Self) -> usize {
        let pairs = |list: fn(&Self) -> &Texts| list(self).len().saturating_mul(list(other).len());
        [
            pairs(|it| &it.verbs),
            pairs(|it| &it.api_groups),
            pairs(|it| &it.resources).saturating_mul(2),
            pairs(|it| &it.resource_names),
            pairs(|it| &it.non_resource_urls),
        ]
        .into_iter()
        .fold(1, usize::saturating_add)
    }

    /// About what it takes as JSON.
    pub(crate) fn n_bytes(&self) -> usize {
        let lists = [&self.verbs, &self.api_groups, &self.resources, &self.resource_names, &self.non_resource_urls];
        lists.into_iter().flat_map(|it| &**it).map(|it| it.len() + 3).sum::<usize>() + 64
    }

    /// How many rules that allow one verb on one thing each make up this one.
    pub(crate) fn n_atoms(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let resources = self.api_groups.len().saturating_mul(self.resources.len()).saturating_mul(names);
        self.verbs.len().saturating_mul(resources.saturating_add(self.non_resource_urls.len()))
    }

    /// At most how long the texts of all atoms are together: each of them says all its texts again.
    pub(crate) fn n_atom_bytes(&self) -> usize {
        let lists = [&self.verbs, &self.api_groups, &self.resources, &self.resource_names, &self.non_resource_urls];
        let longest = lists.map(|it| it.iter().map(|it| it.len()).max().unwrap_or(0));
        self.n_atoms().saturating_mul(longest.iter().sum())
    }

    /// The rule as many that allow one verb on one thing each.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = Self> {
        let one = |it: &str| -> Texts { [it.into()].into() };
        let urls = move |verb: &str| {
            let verbs = one(verb);
            let of = move |url: &str| Self { verbs: verbs.clone(), non_resource_urls: one(url), ..Self::default() };
            self.non_resource_urls.iter().map(move |it| of(it))
        };
        let resources = move |verb: &str| {
            let verbs = one(verb);
            let pairs = self.api_groups.iter().flat_map(|group| self.resources.iter().map(move |it| (group, it)));
            pairs.flat_map(move |(group, resource)| {
                let atom =
                    Self { verbs: verbs.clone(), api_groups: one(group), resources: one(resource), ..Self::default() };
                let whole = self.resource_names.is_empty().then(|| atom.clone());
                let named = move |it: &str| Self { resource_names: one(it), ..atom.clone() };
                whole.into_iter().chain(self.resource_names.iter().map(move |it| named(it)))
            })
        };
        self.verbs.iter().flat_map(move |verb| urls(verb).chain(resources(verb)))
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    pub(crate) fn compact(&self) -> String {
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

fn covers_resource(mine: &[Box<str>], theirs: &str) -> bool {
    has_or_all(mine, theirs) || theirs.split_once('/').is_some_and(|(_, sub)| has(mine, &format!("*/{sub}")))
}

/// As Go prints a list of strings: `["a" "b"]`.
pub fn quoted<T: std::fmt::Debug>(list: &[T]) -> String {
    let list: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", list.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_large_role_takes_about_three_times_its_text() {
        let rule =
            |n: usize| json!({ "apiGroups": [format!("g{n}")], "resources": [format!("r{n}")], "verbs": ["get"] });
        let text = serde_json::Value::from_iter((0..10_000).map(rule)).to_string();
        let rules: Vec<PolicyRule> = serde_json::from_str(&text).expect("rules");
        // The smallest piece that is given out has 16 bytes.
        let room = |n: usize| n.next_multiple_of(16);
        let of_list = |it: &Texts| room(size_of_val(&**it)) + it.iter().map(|it| room(it.len())).sum::<usize>();
        let of_rule = |it: &PolicyRule| {
            size_of_val(it) + [&it.api_groups, &it.resources, &it.verbs].map(of_list).iter().sum::<usize>()
        };
        let bytes: usize = rules.iter().map(of_rule).sum();
        assert!(bytes < 3 * text.len(), "{bytes} for {}", text.len());
    }
}
