//! The volume by which a Pod's containers speak to the API server: its account's token, the cluster's authority, its
//! namespace.

use serde_json::{Value, json};

const VOLUME: &str = "kube-api-access-";
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and seven seconds, by which upstream tells its own tokens from those people ask for.
const SECONDS: i64 = 3607;

/// Does the Pod want it? The Pod's word goes before its account's.
pub(super) fn is_wanted(account: Option<bool>, pod: &Value) -> bool {
    pod["spec"]["automountServiceAccountToken"].as_bool().or(account).unwrap_or(true)
}

/// Mounts it in every container that has nothing at its path. `suffix` makes the volume's name unique.
pub(super) fn mount(pod: &mut Value, suffix: &str) {
    let volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    let present = volumes.iter().filter_map(|it| it["name"].as_str()).find(|it| it.starts_with(VOLUME));
    let name = present.map_or_else(|| format!("{VOLUME}{suffix}"), str::to_owned);
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        // Indexing would make a list that is not there.
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            mounted |= mount_in(container, &name);
        }
    }
    if mounted && present.is_none() {
        let volumes = [&volumes[..], &[volume(&name)]].concat();
        pod["spec"]["volumes"] = volumes.into();
    }
}

fn mount_in(container: &mut Value, volume: &str) -> bool {
    let mut mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
    if mounts.iter().any(|it| it["mountPath"] == PATH) {
        return false;
    }
    mounts.push(json!({ "name": volume, "readOnly": true, "mountPath": PATH }));
    container["volumeMounts"] = mounts.into();
    true
}

fn volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": SECONDS, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [
                    { "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } },
                ] } },
            ],
            "defaultMode": 420,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_goes_before_the_account() {
        for (account, pod, expected) in [
            (None, None, true),
            (Some(false), None, false),
            (Some(false), Some(true), true),
            (Some(true), Some(false), false),
        ] {
            let pod = json!({ "spec": { "automountServiceAccountToken": pod } });
            assert_eq!(is_wanted(account, &pod), expected, "{account:?} {pod}");
        }
    }

    #[test]
    fn containers_with_something_there_are_left_alone() {
        let taken = json!({ "name": "own", "mountPath": PATH });
        let mut pod = json!({ "spec": {
            "initContainers": [{ "name": "i" }],
            "containers": [{ "name": "c", "volumeMounts": [taken] }],
            "volumes": [{ "name": "own" }],
        } });
        mount(&mut pod, "x");
        let ours = json!([{ "name": "kube-api-access-x", "readOnly": true, "mountPath": PATH }]);
        assert_eq!(pod["spec"]["initContainers"][0]["volumeMounts"], ours);
        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"], json!([taken]));
        assert_eq!(pod["spec"]["volumes"][1], volume("kube-api-access-x"));

        let before = pod.clone();
        mount(&mut pod, "y");
        assert_eq!(pod, before);
    }
}
