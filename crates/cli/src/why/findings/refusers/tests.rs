use serde_json::json;

use super::*;

#[test]
fn each_refusal_names_who_refused() {
    for (message, reason, says, on) in [
        (
            r#"admission webhook "a.example.com" denied the request: no latest tags"#,
            "WebhookRefused",
            "webhook a.example.com denies it: no latest tags",
            None,
        ),
        (
            r#"admission webhook "a.example.com" denied the request without explanation"#,
            "WebhookRefused",
            "webhook a.example.com denies it, and does not say why",
            None,
        ),
        (
            r#"Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://x/?timeout=10s": EOF"#,
            "WebhookFailed",
            r#"webhook a.example.com gives no valid answer: Post "https://x/?timeout=10s": EOF"#,
            None,
        ),
        (
            "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "PolicyRefused",
            "policy p, bound by b, denies it: no",
            Some("validatingadmissionpolicy/p"),
        ),
        (
            "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: x",
            "PolicyFailed",
            "policy p cannot be asked: failed to configure policy: x",
            Some("validatingadmissionpolicy/p"),
        ),
        (
            "pods \"x\" is forbidden: policy 'p' with binding 'b' denied request: expression 'q' resulted in error: no such key: r",
            "PolicyFailed",
            "policy p, bound by b, cannot be asked: expression 'q' resulted in error: no such key: r",
            Some("mutatingadmissionpolicy/p"),
        ),
    ] {
        let wait = read(message).expect(message);
        assert_eq!((&*wait.reason, &*wait.message, wait.on.as_deref()), (reason, says, on));
    }
    assert_eq!(read("admission webhook \"half").map(|it| it.message), None);
    assert_eq!(read("ValidatingAdmissionPolicy 'half").map(|it| it.message), None);
}

#[test]
fn who_installed_it_owns_it() {
    let helm = json!({"meta.helm.sh/release-name": "guard", "meta.helm.sh/release-namespace": "ops"});
    let fields = json!([{"manager": "b", "time": "2026-01-02T00:00:00Z"}, {"manager": "a", "time": "2026-01-01T00:00:00Z"},
        {"manager": "c", "time": "2026-01-03T00:00:00Z", "subresource": "status"}]);
    for (metadata, owned) in [
        (
            json!({"annotations": helm, "labels": {"app.kubernetes.io/managed-by": "Helm"}}),
            "installed by the Helm release guard of ops",
        ),
        (
            json!({"labels": {"app.kubernetes.io/managed-by": "olm", "app.kubernetes.io/part-of": "x"}}),
            "managed by olm as part of x",
        ),
        (json!({"ownerReferences": [{"kind": "Guard", "name": "g", "controller": true}]}), "owned by guard/g"),
        (json!({"labels": {"app.kubernetes.io/name": "x"}, "managedFields": fields}), "part of x"),
        (json!({"managedFields": fields}), "last written by b"),
    ] {
        assert_eq!(owner(&json!({"metadata": metadata})).as_deref(), Some(owned));
    }
    assert_eq!(owner(&json!({})), None);
}
