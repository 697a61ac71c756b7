use corten_reconcile::Actor;
use serde_json::json;

use super::*;

#[test]
fn a_webhook_that_requests_pass_without_refuses_nothing() {
    for (reason, message, is_it) in [
        ("WebhookDenying", "webhook w denied all of the last 12 requests: no", true),
        ("WebhookFailing", "webhook w gives no valid answer, and what it is about is refused: EOF", true),
        ("WebhookFailing", "webhook w gives no valid answer, and what it is about passes without it: x", false),
        (
            "WebhookFailing",
            "webhook w gives no valid answer, and what it is about passes without it: y is refused",
            false,
        ),
        (
            "WebhookConditionFailed",
            "webhook w cannot be asked, for one of its matchConditions fails, and what it is about is refused: x",
            true,
        ),
        (
            "ParameterNotFound",
            "bound by b, the policy could not be asked, and what it is about is refused: its parameter is not there",
            true,
        ),
        ("PolicyFailing", "it failed 7 times in a row, and what it is about is refused: no such key", true),
        ("ParameterNotFound", "its parameter is not there: what the policy is about is refused", true),
        ("ParameterNotFound", "its parameter is not there: the policy is not asked by it", false),
        ("TypeCheckFailed", "the expression does not fit its types", false),
    ] {
        assert_eq!(refuses(&Wait::new(reason, message, Actor::External)), is_it, "{message}");
    }
}

#[test]
fn the_rules_of_the_webhook_that_is_named_count() {
    let configuration = json!({"webhooks": [
        {"name": "pods", "rules": [{"apiGroups": [""], "resources": ["pods"]}]},
        {"name": "all", "failurePolicy": "Ignore", "rules": [{"apiGroups": ["*"], "resources": ["*/*"]}]}]});
    for (webhook, is_about_all) in [(Some("pods"), false), (Some("all"), true), (None, true)] {
        assert_eq!(names_every_resource(rules_of_webhooks(&configuration, webhook)), is_about_all, "{webhook:?}");
    }
    let gone = Wait::new("ServiceNotFound", "", Actor::Author);
    assert!(is_unreachable(&configuration, &gone));
    assert!(!is_unreachable(&json!({"webhooks": [{"failurePolicy": "Ignore"}]}), &gone));
}

#[test]
fn every_kind_is_one() {
    for kind in CONFIGURATIONS.iter().chain(&POLICIES) {
        assert_eq!(corten_kinds::by_name(kind).map(|it| &*it.singular), Some(*kind));
    }
}
