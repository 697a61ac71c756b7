use super::*;

/// Of jane, who is of dev and ops.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIbE1JR05BZ0VBTUNzeEREQUtCZ05WQkFvTUEyUmxkakVNTUFvR0ExVUVDZ3dEYjNCek1RMHdDd1lEVlFRRApEQVJxWVc1bE1Ga3dFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRWpLTFFmM3hQN2pEWHI3OC9MOFM4Cjc4MXVIc0YyT2pIVmVoSm5aY2xmazNCUUJUSlNDL2N6NlFjajFacjhjZmhDaEpISDdxUTVZQ2MyZnJhU1MwdDcKRnFBQU1Bb0dDQ3FHU000OUJBTUNBMGNBTUVRQ0lHV1VjRCt1cVpub3R2ek44SnI5dHdzZnE4aDZxbWpBWUNibQpTQllVdE9IL0FpQkViajhtanBmTktpL1VkV1FjWENDMFQxTmQza3lrdUpTWUVSeDdaTnQ5UEE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

fn request(spec: &Value, status: &Value) -> Value {
    let mut object = json!({
        "metadata": { "name": "jane" },
        "spec": { "request": REQUEST, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"] },
        "status": status,
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn messages(found: Vec<Violation>) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn requests_are_read() {
    for (spec, expected) in [
        (json!({}), &[][..]),
        (
            json!({ "request": "bm90IHBlbQ==" }),
            &["spec.request: Invalid value: \"bm90IHBlbQ==\": PEM block type must be CERTIFICATE REQUEST"],
        ),
        (json!({ "usages": [] }), &["spec.usages: Required value"]),
        (json!({ "usages": ["client auth", "client auth"] }), &["spec.usages[1]: Duplicate value: \"client auth\""]),
        (json!({ "signerName": "" }), &["spec.signerName: Required value"]),
        (
            json!({ "signerName": "kubernetes.io/legacy-unknown" }),
            &[
                "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version",
            ],
        ),
        (
            json!({ "signerName": "acme" }),
            &[
                "spec.signerName: Invalid value: \"acme\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
            ],
        ),
        (
            json!({ "signerName": "acme/x" }),
            &[
                "spec.signerName: Invalid value: \"acme\": should be a domain with at least two segments separated by dots",
            ],
        ),
        (
            json!({ "expirationSeconds": 599 }),
            &[
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
            ],
        ),
    ] {
        let found = CertificateSigningRequest.validate(&request(&spec, &Value::Null));
        assert_eq!(messages(found), expected, "{spec}");
    }
    let unknown = CertificateSigningRequest.validate(&request(&json!({ "usages": ["tea"] }), &Value::Null));
    assert!(
        messages(unknown)[0].starts_with("spec.usages[0]: Unsupported value: \"tea\": supported values: \"any\", ")
    );
}

fn said(kinds: &[&str]) -> Value {
    json!(kinds.iter().map(|it| json!({ "type": it, "status": "True" })).collect::<Vec<_>>())
}

#[test]
fn what_was_said_stays_said() {
    let old = |kinds| request(&json!({}), &json!({ "conditions": said(kinds) }));
    for (before, now, by_approver, expected) in [
        (&[][..], &["Approved"][..], true, None),
        (&["Approved"], &["Approved", "Ready"], false, None),
        (&[], &["Approved"], false, Some("updates may not add a condition of type \"Approved\"")),
        (&["Denied"], &[], true, Some("updates may not remove a condition of type \"Denied\"")),
        (&["Approved"], &["Approved", "Denied"], true, Some("Approved and Denied conditions are mutually exclusive")),
        (&["Approved"], &["Approved", "Failed"], false, None),
        (&[], &["Approved", "Approved"], true, Some("Duplicate value: \"Approved\"")),
    ] {
        let (old, new) = (old(before), old(now));
        let found = if by_approver {
            CertificateSigningRequest.validate_approval(&new, &old)
        } else {
            CertificateSigningRequest.validate_status_update(&new, &old)
        };
        let found = messages(found);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{before:?} {now:?}: {found:?}");
        assert!(expected.is_none_or(|it| found[0].ends_with(it)), "{before:?} {now:?}: {found:?}");
    }
    let new = request(&json!({}), &json!({ "conditions": [{ "type": "Denied", "status": "False" }] }));
    let found = messages(CertificateSigningRequest.validate_approval(&new, &old(&[])));
    assert_eq!(found, ["status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\""]);
}

#[test]
fn certificates_are_written_once() {
    let with = |certificate: &str| request(&json!({}), &json!({ "certificate": certificate }));
    for (before, now, expected) in [
        ("", "", None),
        ("", "eA==", Some("must contain at least one CERTIFICATE PEM block")),
        ("", REQUEST, Some("only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\"")),
        ("eA==", "", Some("updates may not modify existing certificate content")),
    ] {
        let found = messages(CertificateSigningRequest.validate_status_update(&with(now), &with(before)));
        assert_eq!(found.is_empty(), expected.is_none(), "{found:?}");
        assert!(expected.is_none_or(|it| found[0].ends_with(it)), "{found:?}");
    }
}

#[test]
fn the_condition_column_sums_up() {
    for (kinds, certificate, expected) in [
        (&[][..], "", "Pending"),
        (&["Approved"], "", "Approved"),
        (&["Approved"], "x", "Approved,Issued"),
        (&["Approved", "Failed"], "", "Approved,Failed"),
        (&["Denied"], "", "Denied"),
    ] {
        let object = request(&json!({}), &json!({ "conditions": said(kinds), "certificate": certificate }));
        assert_eq!(condition(&object), expected);
    }
}
