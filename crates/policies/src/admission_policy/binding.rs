//! Bindings: where a policy holds, and with which parameters.

use corten_meta::Selector;
use corten_validation::read::{items, text};
use serde::Deserialize;
use serde_json::Value;

use crate::matching::Criteria;

/// What becomes of a request that a validation refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Deny,
    Warn,
    Audit,
}

#[derive(Debug)]
pub struct Binding {
    pub name: String,
    pub policy: String,
    pub criteria: Criteria,
    pub param_ref: Option<ParamRef>,
    /// In the order of the binding; a mutating policy's has none.
    pub actions: Vec<Action>,
}

/// Which objects are the parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// Empty where a selector finds them.
    pub name: String,
    /// Empty: that of the request.
    pub namespace: String,
    pub selector: Selector,
    /// `parameterNotFoundAction: Deny`.
    pub denies_missing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamKind {
    pub api_version: String,
    pub kind: String,
}

impl ParamKind {
    /// That of a policy, where it has one.
    pub fn of(policy: &Value) -> Option<Self> {
        let kind = &policy["spec"]["paramKind"];
        kind.is_object()
            .then(|| Self { api_version: text(kind, "/apiVersion").to_owned(), kind: text(kind, "/kind").to_owned() })
    }
}

impl Binding {
    pub fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let action = |it: &Value| match it.as_str() {
            Some("Deny") => Some(Action::Deny),
            Some("Warn") => Some(Action::Warn),
            Some("Audit") => Some(Action::Audit),
            _ => None,
        };
        let reference = &spec["paramRef"];
        Self {
            name: text(binding, "/metadata/name").to_owned(),
            policy: text(spec, "/policyName").to_owned(),
            criteria: Criteria::of_policy(&spec["matchResources"]),
            param_ref: reference.is_object().then(|| ParamRef {
                name: text(reference, "/name").to_owned(),
                namespace: text(reference, "/namespace").to_owned(),
                selector: Selector::deserialize(&reference["selector"]).unwrap_or_default(),
                denies_missing: reference["parameterNotFoundAction"] == "Deny",
            }),
            actions: items(spec, "/validationActions").iter().filter_map(action).collect(),
        }
    }
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}
