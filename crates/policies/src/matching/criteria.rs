//! `MatchResources` of policies and bindings, and what webhooks have in its place.

use std::{collections::BTreeMap, fmt};

use corten_meta::Selector;
use corten_validation::read::items;
use serde::Deserialize;
use serde_json::Value;

use super::{
    request::{GroupVersionResource, Operation, Request},
    rule::{Interest, Rule},
};

/// What a request must be.
#[derive(Debug, Default)]
pub struct Criteria {
    /// Empty: every resource, unless nothing is to match.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// A webhook without rules is called for nothing; a binding without rules is about all that its policy is about.
    needs_rule: bool,
    is_exact: bool,
    namespaces: Selector,
    objects: Selector,
}

/// In which version a request matched: its own, or an equivalent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched<'a>(pub GroupVersionResource<'a>);

/// The request's namespace, whose labels were to be looked at, does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNamespace(pub String);

impl fmt::Display for NoNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "namespaces {:?} not found", self.0)
    }
}

impl Criteria {
    /// `matchConstraints` of a policy, or `matchResources` of a binding: `null` is about everything.
    pub fn of_policy(matched: &Value) -> Self {
        Self { excluded: rules(matched, "/excludeResourceRules"), ..Self::read(matched, "/resourceRules") }
    }

    /// One entry of `webhooks`.
    pub fn of_webhook(webhook: &Value) -> Self {
        Self { needs_rule: true, ..Self::read(webhook, "/rules") }
    }

    fn read(of: &Value, list: &str) -> Self {
        // What validation would have refused is as if it were not there: then more matches, and nothing slips by.
        let selector = |name: &str| Selector::deserialize(&of[name]).unwrap_or_default();
        Self {
            rules: rules(of, list),
            is_exact: of["matchPolicy"] == "Exact",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            ..Self::default()
        }
    }

    /// Which requests this can be about, by their operations and resources.
    pub(super) fn interests(&self) -> impl Iterator<Item = Interest<'_>> {
        let everything = Interest { operations: &Operation::ALL, group: None, plural: None };
        let everything = (self.rules.is_empty() && !self.needs_rule).then_some(everything);
        everything.into_iter().chain(self.rules.iter().flat_map(Rule::interests))
    }

    /// In which version the request is what this is about. `labels` gives those of a namespace; `None` where there is none.
    ///
    /// # Errors
    /// Where all else holds, and nothing is known of the namespace.
    pub fn matches<'r>(
        &self,
        request: &Request<'r>,
        labels: impl Fn(&str) -> Option<BTreeMap<String, String>>,
    ) -> Result<Option<Matched<'r>>, NoNamespace> {
        if self.place(&self.excluded, request).is_some() {
            return Ok(None);
        }
        let is_unruled = self.rules.is_empty() && !self.needs_rule;
        let place = if is_unruled { Some(request.place) } else { self.place(&self.rules, request) };
        let Some(place) = place else { return Ok(None) };
        if !self.selects_object(request) || !self.selects_namespace(request, labels)? {
            return Ok(None);
        }
        Ok(Some(Matched(place)))
    }

    /// The place for which one of the rules matches: that of the request, before all others.
    fn place<'r>(&self, rules: &[Rule], request: &Request<'r>) -> Option<GroupVersionResource<'r>> {
        if rules.iter().any(|it| it.matches(request, &request.place)) {
            return Some(request.place);
        }
        if self.is_exact {
            return None;
        }
        let equivalents = || request.equivalents.iter().filter(|it| **it != request.place);
        rules.iter().find_map(|rule| equivalents().find(|it| rule.matches(request, it)).copied())
    }

    /// The object as it is to be, or as it was.
    fn selects_object(&self, request: &Request<'_>) -> bool {
        let selects = |it: &Value| it["metadata"].is_object() && self.objects.matches(&labels_of(it));
        self.objects.is_empty() || request.object.is_some_and(selects) || request.old.is_some_and(selects)
    }

    fn selects_namespace(
        &self,
        request: &Request<'_>,
        labels: impl Fn(&str) -> Option<BTreeMap<String, String>>,
    ) -> Result<bool, NoNamespace> {
        let is_of_cluster = request.namespace.is_empty() && !request.is_of_namespaces();
        if is_of_cluster || self.namespaces.is_empty() {
            return Ok(true);
        }
        // A Namespace that is made or changed is judged by the labels it is to have.
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        let is_itself = request.is_of_namespaces() && request.subresource.is_empty() && is_written;
        let own = request.object.filter(|_| is_itself).map(labels_of);
        let labels = own.or_else(|| labels(request.namespace));
        let labels = labels.ok_or_else(|| NoNamespace(request.namespace.to_owned()))?;
        Ok(self.namespaces.matches(&labels))
    }
}

/// The labels of an object.
fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    labels.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn rules(of: &Value, pointer: &str) -> Vec<Rule> {
    items(of, pointer).iter().map(Rule::read).collect()
}
