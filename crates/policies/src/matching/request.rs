//! A request as rules see it.

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A resource in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionResource<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub plural: &'a str,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub operation: Operation,
    pub place: GroupVersionResource<'a>,
    /// The same resource in other versions and groups, for `matchPolicy: Equivalent`.
    pub equivalents: &'a [GroupVersionResource<'a>],
    pub subresource: &'a str,
    /// Empty for what has none. A Namespace itself is in its own (`RequestInfoFactory.NewRequestInfo`).
    pub namespace: &'a str,
    /// Empty for a create with `generateName`.
    pub name: &'a str,
    /// `None` for a delete.
    pub object: Option<&'a Value>,
    pub old: Option<&'a Value>,
}

impl Request<'_> {
    pub(super) fn is_of_namespaces(&self) -> bool {
        self.place.plural == "namespaces"
    }
}

const CONFIGURATIONS: [&str; 6] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// Is it what configures admission? No webhook and no policy is asked about that, so that a wrong one can be taken away
/// (`IsExemptAdmissionConfigurationResource`).
pub fn is_exempt(group: &str, plural: &str) -> bool {
    group == "admissionregistration.k8s.io" && CONFIGURATIONS.contains(&plural)
}
