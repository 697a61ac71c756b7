use super::*;

#[test]
fn the_reason_is_kept_and_the_address_goes() {
    let url = "https://guard.policies.svc:443/validate?timeout=10s";
    for (message, told, actor) in [
        (
            format!("webhook w gives no valid answer: Post \"{url}\": {FAILED}certificate signed by unknown authority"),
            "webhook w gives no valid answer: x509: certificate signed by unknown authority",
            Actor::Author,
        ),
        (
            format!("failing or missing response from {url}: Get \"{url}\": {FAILED}certificate is valid for a, not b"),
            "x509: certificate is valid for a, not b",
            Actor::Author,
        ),
        (
            format!("Post \"{url}\": {FAILED}certificate has expired or is not yet valid"),
            "x509: certificate has expired or is not yet valid",
            Actor::External,
        ),
    ] {
        let mut wait = Wait::new("WebhookFailing", message, Actor::Operator);
        tell(&mut wait);
        assert_eq!((&*wait.message, wait.actor), (told, actor));
    }
    let mut other = Wait::new("WebhookFailing", "EOF", Actor::Operator);
    tell(&mut other);
    assert_eq!((&*other.message, other.actor, who("EOF", "a", "b")), ("EOF", Actor::Operator, None));
}
