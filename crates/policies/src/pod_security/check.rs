//! What a check is, and the phrases all of them share.

use std::collections::BTreeSet;

use corten_validation::read::{items, text};
use serde_json::Value;

use super::Version;

/// One rule of the standards.
pub(super) struct Check {
    pub(super) name: &'static str,
    /// The first minor version of the policy that has it.
    pub(super) since: u32,
    /// The baseline check that this restricted one is stricter than.
    pub(super) replaces: Option<&'static str>,
    pub(super) run: fn(&Pod<'_>) -> Option<Refusal>,
}

/// Why a Pod is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    pub detail: String,
}

pub(super) fn refusal(reason: &'static str, detail: String) -> Option<Refusal> {
    Some(Refusal { reason, detail })
}

/// A Pod or a template of Pods, and the version of the policy that looks at it.
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
    pub(super) version: Version,
}

impl<'a> Pod<'a> {
    /// Init containers first (`visitContainers`).
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = self.spec;
        ["/initContainers", "/containers", "/ephemeralContainers"].into_iter().flat_map(move |it| items(spec, it))
    }

    pub(super) fn security_context(&self) -> &'a Value {
        &self.spec["securityContext"]
    }

    pub(super) fn is_windows(&self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// The Pod has users of its own: root in it is nobody outside.
    pub(super) fn has_own_users(&self) -> bool {
        self.version.is_at_least(35) && self.spec["hostUsers"] == false
    }

    /// The names of the containers for which it holds.
    pub(super) fn where_container(&self, mut holds: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|it| holds(it)).map(name).collect()
    }

    /// Who has a security context that breaks a rule: the Pod, containers, or both. Empty: nobody.
    pub(super) fn setters(&self, mut breaks: impl FnMut(&'a Value) -> bool) -> String {
        let pod = breaks(self.security_context());
        let bad = self.where_container(|it| breaks(&it["securityContext"]));
        setters(pod, &bad)
    }
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/name")
}

pub(super) fn setters(pod: bool, containers: &[&str]) -> String {
    let pod = pod.then(|| "pod".to_owned());
    let listed = (!containers.is_empty()).then(|| listed("container", containers));
    pod.into_iter().chain(listed).collect::<Vec<_>>().join(" and ")
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn listed(noun: &str, names: &[&str]) -> String {
    format!("{}{} {}", noun, plural(names.len()), quoted(names.iter().copied()))
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Of the verb that follows `count` nouns: one container uses, two use.
pub(super) fn uses(count: usize) -> &'static str {
    if count == 1 { "uses" } else { "use" }
}

pub(super) fn quoted<'v>(names: impl IntoIterator<Item = &'v str>) -> String {
    names.into_iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ")
}

pub(super) type Names<'a> = BTreeSet<&'a str>;

pub(super) fn is_allowed_profile(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}
