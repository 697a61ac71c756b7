//! The five conditions of a namespace that is being deleted, in upstream's words.

use std::collections::BTreeMap;

use corten_meta::{Resource, Time};
use corten_reconcile::{Effect, Failure};

use super::{Content, Unseen};
use crate::{elsewhere::Undiscovered, projections::Condition};

/// In upstream's order. Parsing cannot fail here.
pub(super) fn of(content: &Content<'_>, unseen: &Unseen<'_>, failure: Option<&Failure>) -> Vec<Condition> {
    let ok = |r#type, reason, message| condition(r#type, "False", reason, message);
    vec![
        discovery(unseen),
        ok(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        deletion(unseen, failure),
        remaining(content),
        finalizers(content),
    ]
}

fn discovery(unseen: &Unseen<'_>) -> Condition {
    const TYPE: &str = "NamespaceDeletionDiscoveryFailure";
    let failing = &unseen.undiscovered;
    if failing.is_empty() {
        return condition(TYPE, "False", "ResourcesDiscovered", "All resources successfully discovered");
    }
    let stale = failing.iter().map(|Undiscovered { group_version, .. }| {
        format!("{group_version}: stale GroupVersion discovery: {group_version}")
    });
    let stale: Vec<String> = stale.collect();
    let message = format!(
        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
        stale.len(),
        stale.join(", ")
    );
    condition(TYPE, "True", "DiscoveryFailed", &message)
}

fn deletion(unseen: &Unseen<'_>, failure: Option<&Failure>) -> Condition {
    const TYPE: &str = "NamespaceDeletionContentFailure";
    let unlisted = unseen.unlisted.iter().map(|it| (&it.0, 1)).chain(unseen.beyond.iter().map(|it| (&it.first, it.n)));
    let hidden: Vec<(&Resource, usize)> = unlisted.chain(unseen.unreadable.iter().map(|it| (it.0, 1))).collect();
    if let Some((first, _)) = hidden.first() {
        let n: usize = hidden.iter().map(|it| it.1).sum();
        let message = format!("Failed to delete all resource types, {n} remaining: {first} cannot be listed");
        return condition(TYPE, "True", "ContentDeletionFailed", &message);
    }
    match failure.filter(|it| matches!(it.effect, Effect::Delete { .. })) {
        Some(failure) => {
            let message = format!("Failed to delete all resource types, 1 remaining: {}", failure.message);
            condition(TYPE, "True", "ContentDeletionFailed", &message)
        }
        None => {
            let message = "All content successfully deleted, may be waiting on finalization";
            condition(TYPE, "False", "ContentDeleted", message)
        }
    }
}

/// What has been told to go and is still there. What is told now may be gone at once, and is not worth a word.
fn remaining(content: &Content<'_>) -> Condition {
    const TYPE: &str = "NamespaceContentRemaining";
    let mut parts: Vec<String> = Vec::new();
    for (resource, objects) in content.objects.values() {
        let n_deleting = objects.iter().filter(|it| it.is_deleting()).count();
        if n_deleting > 0 {
            parts.push(format!("{}.{} has {n_deleting} resource instances", resource.plural, resource.group));
        }
    }
    if parts.is_empty() {
        return condition(TYPE, "False", "ContentRemoved", "All content successfully removed");
    }
    parts.sort();
    let message = format!("Some resources are remaining: {}", parts.join(", "));
    condition(TYPE, "True", "SomeResourcesRemain", &message)
}

fn finalizers(content: &Content<'_>) -> Condition {
    const TYPE: &str = "NamespaceFinalizersRemaining";
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let deleting = content.objects.values().flat_map(|it| &it.1).filter(|it| it.is_deleting());
    for finalizer in deleting.flat_map(|it| &it.finalizers) {
        *counts.entry(finalizer).or_default() += 1;
    }
    if counts.is_empty() {
        let message = "All content-preserving finalizers finished";
        return condition(TYPE, "False", "ContentHasNoFinalizers", message);
    }
    let parts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} in {n} resource instances")).collect();
    let message = format!("Some content in the namespace has finalizers remaining: {}", parts.join(", "));
    condition(TYPE, "True", "SomeFinalizersRemain", &message)
}

fn condition(r#type: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        r#type: r#type.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// Puts the new conditions in place of the old; the time of transition is new where the status is.
pub(super) fn set(conditions: &mut Vec<Condition>, new: Vec<Condition>, now: Time) {
    for mut condition in new {
        condition.last_transition_time = Some(now);
        match conditions.iter_mut().find(|it| it.r#type == condition.r#type) {
            None => conditions.push(condition),
            Some(old) => {
                if old.status == condition.status {
                    condition.last_transition_time = old.last_transition_time;
                }
                *old = condition;
            }
        }
    }
}
