//! Where objects stand in the store: Kubernetes's own keys, and the first bytes of every value.

use std::{collections::BTreeMap, ops::Bound, sync::LazyLock};

use corten_kinds::{KINDS, Kind};
use corten_meta::Resource;
use corten_store::registry::ROOT;

/// `/registry/pods/`. Built-in groups are not part of the key, and a few kinds have older names (`SpecialDefaultResourcePrefixes`).
pub fn prefix_of(resource: &Resource) -> String {
    let built_in = !resource.group.contains('.') || resource.group.ends_with(".k8s.io");
    match (&*resource.group, &*resource.plural) {
        ("", "endpoints") => format!("{ROOT}services/endpoints/"),
        ("", "nodes") => format!("{ROOT}minions/"),
        ("", "replicationcontrollers") => format!("{ROOT}controllers/"),
        ("", "services") => format!("{ROOT}services/specs/"),
        ("networking.k8s.io", "ingresses") => format!("{ROOT}ingress/"),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{ROOT}{group}/{plural}/"),
        (_, plural) if built_in => format!("{ROOT}{plural}/"),
        (group, plural) => format!("{ROOT}{group}/{plural}/"),
    }
}

/// Which resource a key of the store belongs to: its plural and its group. `None` where what stands there is no object.
pub fn resource_of_key(key: &[u8]) -> Option<(String, String)> {
    if let Some(Kind { resource, .. }) = built_in_of_key(key) {
        return Some((resource.plural.to_string(), resource.group.to_string()));
    }
    // Those of definitions: their groups have a dot.
    let mut parts = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?.splitn(3, '/');
    let (group, plural, _) = (parts.next()?, parts.next()?, parts.next()?);
    group.contains('.').then(|| (plural.to_owned(), group.to_owned()))
}

/// The built-in kind whose object stands at a key of the store: the row in whose form it is stored.
pub fn built_in_of_key(key: &[u8]) -> Option<&'static Kind> {
    static BUILT_IN: LazyLock<BTreeMap<String, &'static Kind>> = LazyLock::new(|| {
        let stored = KINDS.iter().filter(|it| it.is_stored() && it.view_of.is_none());
        stored.map(|it| (prefix_of(&it.resource), it)).collect()
    });
    let key = std::str::from_utf8(key).ok()?;
    let nearest = BUILT_IN.range::<str, _>((Bound::Unbounded, Bound::Included(key))).next_back();
    nearest.filter(|it| key.starts_with(it.0)).map(|it| *it.1)
}

/// What follows the prefix: `namespace/name`, or `name` for kinds without namespaces.
pub fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// How every stored value of a resource begins; `resourceVersion` is put in right after it while sending.
pub fn head(resource: &Resource) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}","metadata":{{"#, resource.kind, resource.api_version())
}
