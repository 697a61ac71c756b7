//! Where a kind lives in the API: group, version, kind, plural and scope.
//!
//! Built-in resources are constants; a CustomResourceDefinition makes one at run time, hence the `Cow`s.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
};

use crate::Key;

/// One resource of the API, for example `apps/v1 Deployment deployments (namespaced)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for the core group.
    pub group: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    /// The lower-case plural used in paths.
    pub plural: Cow<'static, str>,
    pub namespaced: bool,
}

/// Of what nearly always tells resources apart: a map is asked for one several times for each request.
impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plural.hash(state);
        self.group.hash(state);
    }
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
            format!("{}/namespaces/{}/{}", self.group_path(), Segment(namespace), self.plural)
        }
    }

    /// The path of one namespace's objects, or of all of a kind of the cluster, as documents write it: with `{namespace}`
    /// where a request has its own.
    pub fn collection_pattern(&self) -> String {
        let within = if self.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{within}/{}", self.group_path(), self.plural)
    }

    /// The path of one object. Names are often what somebody wrote into another object: whatever they hold, it is this
    /// path and no other.
    pub fn path(&self, key: &Key) -> String {
        format!("{}/{}", self.collection_path(&key.namespace), Segment(&key.name))
    }

    /// `pods` or `deployments.apps`, the name messages and RBAC use.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// One segment of a path, percent-encoded where it must be (RFC 3986, 3.3).
pub struct Segment<'a>(pub &'a str);

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No object has such a name, and what is asked for is not all of them.
        if self.0.is_empty() {
            return f.write_str("%2F");
        }
        // A segment of dots alone is a step to somewhere else.
        let is_step = matches!(self.0, "." | "..");
        let is_plain =
            |it: char| it.is_ascii_alphanumeric() || "-_~!$&'()*+,;=:@".contains(it) || it == '.' && !is_step;
        for it in self.0.chars() {
            if is_plain(it) {
                write!(f, "{it}")?;
                continue;
            }
            for byte in it.encode_utf8(&mut [0; 4]).bytes() {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_whatever_it_holds() {
        let pods = Resource::namespaced("", "v1", "Pod", "pods");
        for (namespace, name, expected) in [
            ("a", "b", "/api/v1/namespaces/a/pods/b"),
            ("", "b", "/api/v1/pods/b"),
            ("a", "system:node:n1", "/api/v1/namespaces/a/pods/system:node:n1"),
            ("a", "b.c-d", "/api/v1/namespaces/a/pods/b.c-d"),
            ("a", "b/exec", "/api/v1/namespaces/a/pods/b%2Fexec"),
            ("a", "../../x", "/api/v1/namespaces/a/pods/..%2F..%2Fx"),
            ("a", "..", "/api/v1/namespaces/a/pods/%2E%2E"),
            ("a", "b?dryRun=All#", "/api/v1/namespaces/a/pods/b%3FdryRun=All%23"),
            ("a", "b%2Fc", "/api/v1/namespaces/a/pods/b%252Fc"),
            ("a", "\u{e4} \0", "/api/v1/namespaces/a/pods/%C3%A4%20%00"),
            ("a", "", "/api/v1/namespaces/a/pods/%2F"),
            ("a/secrets/s?", "b", "/api/v1/namespaces/a%2Fsecrets%2Fs%3F/pods/b"),
        ] {
            assert_eq!(pods.path(&Key::new(namespace, name)), expected);
        }
    }
}
