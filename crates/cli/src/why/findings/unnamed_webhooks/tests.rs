use super::*;

#[test]
fn a_webhook_is_known_by_the_words_it_last_failed_with() {
    let failing = |why: &str| {
        let message =
            format!("webhook w gives no valid answer, 2 times in a row, and what it is about is refused: {why}");
        Wait::new("WebhookFailing", message, Actor::External)
    };
    for (said, why, is_it) in [
        ("Internal error occurred: x: \"/nope\": missing value", "x: \"/nope\": missing value", true),
        ("Internal error occurred: x: \"/nope\"", "x: \"/other\"", false),
        ("Internal error occurred: begin…end", "begin and much more until the end", true),
        ("Internal error occurred: begin…end", "begin and much more", false),
        ("dial tcp: connection refused", "dial tcp: connection refused", false),
    ] {
        assert_eq!(tells(&failing(said), why), is_it, "{said}");
    }
    for (message, is_it) in [
        ("Error creating: the namespace of the provided object does not match the namespace sent on the request", true),
        ("Pod \"a\" is invalid: metadata.name: Invalid value: \"b\": field is immutable", true),
        ("Pod \"a\" is invalid: spec.nodeName: Invalid value: \"b\": field is immutable", false),
        ("[metadata.name: Invalid value: \"B\": no, spec.x: Invalid value: 1: field is immutable]", false),
    ] {
        assert_eq!(is_another_object(message), is_it, "{message}");
    }
    for (why, is_it) in [
        ("remove operation does not apply: doc is missing path: \"/nope\": missing value", true),
        ("testing value /spec/replicas failed: test failed", true),
        ("the store cannot write", false),
    ] {
        assert_eq!(is_about_patch(why), is_it, "{why}");
    }
}
