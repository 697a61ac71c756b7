//! Where a kind lives in the API: group, version, kind, plural and scope.
//!
//! Built-in resources are constants; a CustomResourceDefinition makes one at run time, hence the `Cow`s.

use std::{borrow::Cow, fmt};

use crate::Key;

/// One resource of the API, for example `apps/v1 Deployment deployments (namespaced)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    /// The lower-case plural used in paths.
    pub plural: Cow<'static, str>,
    pub namespaced: bool,
}

impl Resource {
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self::built_in(group, version, kind, plural, true)
    }

    pub const fn cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self::built_in(group, version, kind, plural, false)
    }

    const fn built_in(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// `v1` for the core group, `apps/v1` otherwise.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `/api/v1` or `/apis/apps/v1`.
    pub fn group_path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }

    /// The path of all objects, or of one namespace's where `namespace` is not empty.
    pub fn collection_path(&self, namespace: &str) -> String {
        if namespace.is_empty() {
            format!("{}/{}", self.group_path(), self.plural)
        } else {
            format!("{}/namespaces/{namespace}/{}", self.group_path(), self.plural)
        }
    }

    /// The path of one object.
    pub fn path(&self, key: &Key) -> String {
        format!("{}/{}", self.collection_path(&key.namespace), key.name)
    }

    /// `pods` or `deployments.apps`, the name messages and RBAC use.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified())
    }
}
