use super::*;

#[test]
fn the_words_of_the_server_become_waits() {
    let on_pods = |what: &str| format!("error creating: pods \"web-1\" is forbidden: {what}");
    for (message, reason, says) in [
        (
            on_pods("exceeded quota: q, requested: cpu=1,pods=1, used: cpu=2,pods=3, limited: cpu=2,pods=3"),
            "QuotaExceeded",
            "quota q is full: cpu used 2 of 2, 1 more asked; pods used 3 of 3, 1 more asked",
        ),
        (on_pods("failed quota: q: must specify limits.cpu for: c"), "QuotaNeedsRequests", "limits.cpu for: c"),
        (on_pods("violates PodSecurity \"restricted:latest\": x"), "PodSecurityViolated", "\"restricted:latest\": x"),
        (
            on_pods("error looking up service account ns/bot: serviceaccount \"bot\" not found"),
            "ServiceAccountNotFound",
            "there is no service account \"bot\"",
        ),
        (on_pods("no PriorityClass with name high was found"), "PriorityClassNotFound", "\"high\""),
        (on_pods("pod rejected: RuntimeClass \"kata\" not found"), "RuntimeClassNotFound", "\"kata\""),
        (
            on_pods("maximum memory usage per Container is 64Mi, but limit is 128Mi"),
            "LimitRangeViolated",
            "maximum memory usage per Container is 64Mi, but limit is 128Mi",
        ),
        ("Pod \"web-1\" is invalid: spec.x: no".into(), "TemplateInvalid", "spec.x: no"),
        (on_pods("something else"), "FailedCreate", "something else"),
    ] {
        let wait = Wait::new("FailedCreate", message, Actor::Operator);
        let refined = refined(wait);
        assert_eq!(refined.reason, reason);
        assert!(refined.message.contains(says), "{} has {says}", refined.message);
    }
}
