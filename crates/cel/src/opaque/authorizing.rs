//! Questions to an authorizer. Who is allowed what, the caller says.

use std::fmt;

/// Answers who may do what.
pub trait Authorizer: fmt::Debug + Send + Sync {
    fn decide(&self, asked: &Attributes) -> Decision;
}

/// May this user do this?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Namespace and name; `None` for the user that the request is of.
    pub service_account: Option<(String, String)>,
    pub verb: String,
    /// A path that is no resource. What follows is empty then.
    pub path: Option<String>,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// As written: one that cannot be parsed narrows nothing.
    pub field_selector: String,
    pub label_selector: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub is_allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

/// A question that is being put together, or its answer.
#[derive(Clone, Debug)]
pub struct Authorizing<'a> {
    pub(crate) by: &'a dyn Authorizer,
    pub(crate) asked: Attributes,
    pub(crate) stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision(Decision),
}

impl Authorizing<'_> {
    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.asked == other.asked && self.stage == other.stage
    }
}
