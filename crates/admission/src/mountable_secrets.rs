//! A service account may say that its Pods use no secrets but those it lists.

use corten_cacher::watch_cache::Stored;
use serde_json::Value;

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) fn is_enforced(account: &Stored) -> bool {
    // A look at the bytes spares almost every Pod a parsed account.
    let named = memchr::memmem::find(account.value(), ENFORCE.as_bytes()).is_some();
    let is_true = |it: &Value| matches!(it.as_str(), Some("1" | "t" | "T" | "true" | "TRUE" | "True"));
    named && is_true(&account.parse()["metadata"]["annotations"][ENFORCE])
}

/// The first reference to a secret that the account does not list.
pub(super) fn refused(account: &Value, pod: &Value) -> Option<String> {
    let listed = |list: &str, name: &str| items(&account[list]).any(|it| it["name"] == name);
    let account_name = account["metadata"]["name"].as_str().unwrap_or_default();
    let end = format!("is not allowed because service account {account_name} does not reference that secret");
    let spec = &pod["spec"];
    for volume in items(&spec["volumes"]) {
        let name = volume["secret"]["secretName"].as_str().unwrap_or_default();
        if !name.is_empty() && !listed("secrets", name) {
            return Some(format!("volume with secret.secretName=\"{name}\" {end}"));
        }
    }
    for (list, noun) in [
        ("initContainers", "init container"),
        ("containers", "container"),
        ("ephemeralContainers", "ephemeral container"),
    ] {
        for container in items(&spec[list]) {
            let of = container["name"].as_str().unwrap_or_default();
            for env in items(&container["env"]) {
                let name = env["valueFrom"]["secretKeyRef"]["name"].as_str().unwrap_or_default();
                if !name.is_empty() && !listed("secrets", name) {
                    let variable = env["name"].as_str().unwrap_or_default();
                    return Some(format!(
                        "{noun} {of} with envVar {variable} referencing secret.secretName=\"{name}\" {end}"
                    ));
                }
            }
            for from in items(&container["envFrom"]) {
                let name = from["secretRef"]["name"].as_str().unwrap_or_default();
                if !name.is_empty() && !listed("secrets", name) {
                    return Some(format!("{noun} {of} with envFrom referencing secret.secretName=\"{name}\" {end}"));
                }
            }
        }
    }
    for (at, reference) in items(&spec["imagePullSecrets"]).enumerate() {
        let name = reference["name"].as_str().unwrap_or_default();
        if !listed("imagePullSecrets", name) {
            return Some(format!(
                "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {account_name} does not reference that imagePullSecret"
            ));
        }
    }
    None
}

/// The secrets a Pod refers to, wherever it does.
pub(super) fn named_by(pod: &Value) -> impl Iterator<Item = &str> {
    let spec = &pod["spec"];
    let containers =
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|it| items(&spec[it]));
    let of_containers = containers.flat_map(|it| {
        let env = items(&it["env"]).map(|it| &it["valueFrom"]["secretKeyRef"]["name"]);
        env.chain(items(&it["envFrom"]).map(|it| &it["secretRef"]["name"]))
    });
    let of_volumes = items(&spec["volumes"]).flat_map(|it| {
        let projected = items(&it["projected"]["sources"]).map(|it| &it["secret"]["name"]);
        // Most drivers name theirs the same way.
        let drivers = ["azureFile", "cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"];
        let of_driver =
            drivers.into_iter().flat_map(move |driver| [&it[driver]["secretRef"]["name"], &it[driver]["secretName"]]);
        let csi = &it["csi"]["nodePublishSecretRef"]["name"];
        projected.chain(of_driver).chain([&it["secret"]["secretName"], csi])
    });
    let pull = items(&spec["imagePullSecrets"]).map(|it| &it["name"]);
    pull.chain(of_containers).chain(of_volumes).filter_map(Value::as_str)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_listed_secrets_are_used() {
        let account =
            json!({ "metadata": { "name": "a" }, "secrets": [{ "name": "s" }], "imagePullSecrets": [{ "name": "r" }] });
        let end = "is not allowed because service account a does not reference that secret";
        for (spec, expected) in [
            (json!({ "volumes": [{ "secret": { "secretName": "s" } }], "imagePullSecrets": [{ "name": "r" }] }), None),
            (
                json!({ "volumes": [{ "secret": { "secretName": "x" } }] }),
                Some(format!("volume with secret.secretName=\"x\" {end}")),
            ),
            (
                json!({ "containers": [{ "name": "c", "env": [{ "name": "E", "valueFrom": { "secretKeyRef": { "name": "x" } } }] }] }),
                Some(format!("container c with envVar E referencing secret.secretName=\"x\" {end}")),
            ),
            (
                json!({ "initContainers": [{ "name": "i", "envFrom": [{ "secretRef": { "name": "x" } }] }] }),
                Some(format!("init container i with envFrom referencing secret.secretName=\"x\" {end}")),
            ),
            (
                json!({ "imagePullSecrets": [{ "name": "s" }] }),
                Some("imagePullSecrets[0].name=\"s\" is not allowed because service account a does not reference that imagePullSecret".into()),
            ),
        ] {
            assert_eq!(refused(&account, &json!({ "spec": spec })), expected);
        }
    }
}
