//! Which objects an entry of a configuration means.

use std::fmt;

/// A resource in a group, either of which may be `*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupResource {
    pub(crate) resource: String,
    /// Empty for the core group.
    pub(crate) group: String,
}

impl GroupResource {
    /// `secrets`, `deployments.apps`, `*.`, `*.apps`, `*.*`: what comes before the first point is the resource.
    pub(crate) fn parse(text: &str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { resource: resource.to_owned(), group: group.to_owned() }
    }

    pub(crate) fn all() -> Self {
        Self::parse("*.*")
    }

    /// `*` of the same group.
    pub(crate) fn all_of_group(&self) -> Self {
        Self { resource: "*".to_owned(), group: self.group.clone() }
    }
}

/// As upstream's `grYAMLString`.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.resource, &*self.group) {
            ("*", "") => f.write_str("*."),
            (resource, "") => f.write_str(resource),
            (resource, group) => write!(f, "{resource}.{group}"),
        }
    }
}
