//! Where objects stand in the store: Kubernetes's own keys, and the first bytes of every value.

use corten_meta::Resource;

/// All keys of the API are below this one.
pub(crate) const ROOT: &str = "/registry/";

/// `/registry/pods/`. As upstream, built-in groups are not part of the key, and a few kinds have older names.
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

/// What follows the prefix: `namespace/name`, or `name` for kinds without namespaces.
pub fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// How every stored value of a resource begins; `resourceVersion` is put in right after it while sending.
pub fn head(resource: &Resource) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}","metadata":{{"#, resource.kind, resource.api_version())
}
