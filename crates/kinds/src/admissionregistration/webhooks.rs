//! What both kinds of webhook configurations have in common.

use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{Object, each, fill, fill_pointer, inner},
    labels::label_selector,
};
use serde_json::Value;

use super::matching;
use crate::webhook_client;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn default(configuration: &mut Value, of_webhook: fn(&mut Object)) {
    let Some(configuration) = configuration.as_object_mut() else { return };
    for webhook in each(configuration, "webhooks") {
        fill_pointer(webhook, "failurePolicy", "Fail");
        matching::default_selectors(webhook);
        matching::default_rules(webhook, "rules");
        fill(webhook, "timeoutSeconds", 10);
        if let Some(service) = inner(webhook, "clientConfig").and_then(|it| inner(it, "service")) {
            fill(service, "port", 443);
        }
        of_webhook(webhook);
    }
}

pub(super) fn validate(configuration: &Value, of_webhook: fn(Cursor<'_>)) -> Vec<Violation> {
    violations(configuration, |configuration| {
        let mut names = BTreeSet::new();
        for webhook in configuration.list("webhooks") {
            self::webhook(webhook);
            of_webhook(webhook);
            webhook_client::validate(webhook.at("clientConfig"));
            matching::conditions(webhook.at("matchConditions"), false);
            review_versions(webhook.at("admissionReviewVersions"));
            let name = webhook.at("name");
            if !name.is_empty() && !names.insert(name.str()) {
                name.duplicate();
            }
        }
    })
}

fn webhook(webhook: Cursor<'_>) {
    fully_qualified(webhook.at("name"));
    webhook.list("rules").for_each(matching::rule);
    for (name, supported) in [("failurePolicy", ["Fail", "Ignore"]), ("matchPolicy", ["Equivalent", "Exact"])] {
        if webhook.at(name).exists() {
            webhook.at(name).one_of(&supported);
        }
    }
    let side_effects = webhook.at("sideEffects");
    if !side_effects.exists() {
        side_effects.missing("must specify one of None, NoneOnDryRun");
    } else {
        side_effects.one_of(&["None", "NoneOnDryRun"]);
    }
    let timeout = webhook.at("timeoutSeconds");
    if timeout.exists() && !(1..=30).contains(&timeout.int()) {
        timeout.invalid("the timeout value must be between 1 and 30 seconds");
    }
    label_selector(webhook.at("namespaceSelector"));
    label_selector(webhook.at("objectSelector"));
}

fn fully_qualified(name: Cursor<'_>) {
    if !name.required() {
        return;
    }
    let reasons = field::dns1123_subdomain(name.str());
    if !reasons.is_empty() {
        name.invalid(&reasons.join(","));
    } else if name.str().split('.').count() < 3 {
        name.invalid("should be a domain with at least three segments separated by dots");
    }
}

fn review_versions(versions: Cursor<'_>) {
    if versions.is_empty() {
        return versions.missing(&format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
    }
    let mut seen = BTreeSet::new();
    for version in versions.each() {
        if seen.insert(version.str()) {
            version.follows(field::dns1035_label);
        } else {
            version.invalid("duplicate version");
        }
    }
    if !REVIEW_VERSIONS.iter().any(|it| seen.contains(it)) {
        versions.invalid(&format!("must include at least one of {}", REVIEW_VERSIONS.join(", ")));
    }
}
