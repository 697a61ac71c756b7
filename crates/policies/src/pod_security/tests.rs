//! A table of Pods and what each level says of them.

use serde_json::{Value, json};

use super::{Level, LevelVersion, Policy, Version, detail, reason, refusals};

const LATEST: Version = Version::Latest;

fn said(level: Level, version: Version, pod: &Value) -> String {
    detail(&refusals(LevelVersion { level, version }, &pod["metadata"], &pod["spec"]))
}

fn hardened() -> Value {
    json!({ "spec": {
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [{ "name": "c", "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } } }],
    } })
}

/// A hardened Pod with one thing changed.
fn with(pointer: &str, value: Value) -> Value {
    let mut pod = hardened();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    pod.pointer_mut(parent).expect("there").as_object_mut().expect("an object").insert(key.into(), value);
    pod
}

#[test]
fn a_bare_pod_is_not_restricted() {
    let bare = json!({ "spec": { "containers": [{ "name": "c" }] } });
    assert_eq!(said(Level::Baseline, LATEST, &bare), "");
    assert_eq!(
        said(Level::Restricted, LATEST, &bare),
        "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    let refused =
        refusals(LevelVersion { level: Level::Restricted, version: LATEST }, &bare["metadata"], &bare["spec"]);
    assert_eq!(
        reason(&refused),
        "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
    );
    assert_eq!(said(Level::Restricted, LATEST, &hardened()), "");
}

#[test]
fn baseline_refuses() {
    let container = "/spec/containers/0/securityContext";
    let pod = "/spec/securityContext";
    for (pod, expected) in [
        (with("/spec/hostNetwork", json!(true)), "host namespaces (hostNetwork=true)"),
        (
            with("/spec/volumes", json!([{ "name": "a", "hostPath": {} }, { "name": "b", "hostPath": {} }])),
            "hostPath volumes (volumes \"a\", \"b\")",
        ),
        (
            with(
                "/spec/initContainers",
                json!([{ "name": "i", "ports": [{ "hostPort": 80 }, { "hostPort": 9 }, {}] }]),
            ),
            "hostPort (container \"i\" uses hostPorts 80, 9)",
        ),
        (
            with(&format!("{container}/privileged"), json!(true)),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            with(&format!("{container}/capabilities"), json!({ "add": ["NET_RAW", "CHOWN", "BPF"] })),
            "non-default capabilities (container \"c\" must not include \"BPF\", \"NET_RAW\" in securityContext.capabilities.add)",
        ),
        (
            with(&format!("{container}/procMount"), json!("Unmasked")),
            "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            with(&format!("{pod}/seLinuxOptions"), json!({ "type": "spc_t", "user": "u" })),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set)",
        ),
        (
            with(&format!("{container}/seccompProfile"), json!({ "type": "Unconfined" })),
            "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            with(&format!("{pod}/sysctls"), json!([{ "name": "kernel.msgmax" }, { "name": "net.ipv4.tcp_rmem" }])),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            with(&format!("{pod}/windowsOptions"), json!({ "hostProcess": true })),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            with(&format!("{pod}/appArmorProfile"), json!({ "type": "Unconfined" })),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
        ),
        (
            with(
                "/spec/ephemeralContainers",
                json!([{ "name": "e", "livenessProbe": { "httpGet": { "host": "h" } } }]),
            ),
            "probe or lifecycle host (container \"e\" uses probe or lifecycle host \"h\")",
        ),
    ] {
        assert_eq!(said(Level::Baseline, LATEST, &pod), expected, "{pod}");
        assert_eq!(said(Level::Privileged, LATEST, &pod), "");
    }
}

#[test]
fn restricted_refuses() {
    let pod = "/spec/securityContext";
    for (pod, expected) in [
        (
            with(
                "/spec/volumes",
                json!([{ "name": "a", "hostPath": {} }, { "name": "b", "emptyDir": {} }, { "name": "n", "nfs": {} }]),
            ),
            "restricted volume types (volumes \"a\", \"n\" use restricted volume types \"hostPath\", \"nfs\")",
        ),
        (
            with(&format!("{pod}/runAsNonRoot"), json!(false)),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        (with(&format!("{pod}/runAsUser"), json!(0)), "runAsUser=0 (pod must not set runAsUser=0)"),
        (
            with(&format!("{pod}/seccompProfile"), json!({ "type": "Unconfined" })),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            with("/spec/containers/0/securityContext/capabilities", json!({ "drop": ["ALL"], "add": ["CHOWN"] })),
            "unrestricted capabilities (container \"c\" must not include \"CHOWN\" in securityContext.capabilities.add)",
        ),
    ] {
        assert_eq!(said(Level::Restricted, LATEST, &pod), expected, "{pod}");
    }
}

#[test]
fn versions_count() {
    let mount = with("/spec/containers/0/securityContext/procMount", json!("Unmasked"));
    let mut own_users = mount.clone();
    own_users["spec"]["hostUsers"] = json!(false);
    own_users["spec"]["securityContext"] = json!({ "runAsUser": 0, "seccompProfile": { "type": "Localhost" } });
    let probe =
        with("/spec/initContainers", json!([{ "name": "i", "livenessProbe": { "tcpSocket": { "host": "h" } } }]));
    let rmem = with("/spec/securityContext/sysctls", json!([{ "name": "net.ipv4.tcp_rmem" }]));
    let windows = json!({ "spec": { "os": { "name": "windows" }, "securityContext": { "runAsNonRoot": true }, "containers": [{ "name": "c" }] } });
    for (level, minor, pod, refused) in [
        (Level::Baseline, 34, &own_users, true),
        (Level::Baseline, 35, &own_users, false),
        (Level::Restricted, 35, &own_users, true),
        (Level::Baseline, 33, &probe, false),
        (Level::Baseline, 34, &probe, true),
        (Level::Baseline, 31, &rmem, true),
        (Level::Baseline, 32, &rmem, false),
        (Level::Restricted, 24, &windows, true),
        (Level::Restricted, 25, &windows, false),
    ] {
        assert_eq!(!said(level, Version::Minor(minor), pod).is_empty(), refused, "{level:?} {minor} {pod}");
    }
}

#[test]
fn labels_are_read() {
    let namespace = |labels: Value| json!({ "metadata": { "labels": labels } });
    let (policy, wrong) = Policy::of(&namespace(json!({
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30",
        "pod-security.kubernetes.io/warn": "restricted",
    })));
    assert_eq!(
        (policy.enforce.to_string(), policy.audit.to_string(), policy.warn.to_string(), wrong.len()),
        ("baseline:v1.30".into(), "privileged:latest".into(), "restricted:latest".into(), 0)
    );
    let (policy, wrong) = Policy::of(&namespace(json!({
        "pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/audit-version": "v2",
    })));
    assert_eq!(policy.enforce.to_string(), "restricted:latest");
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(
        wrong,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"v2\": must be \"latest\" or \"v1.x\"",
        ]
    );
}
