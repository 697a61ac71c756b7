//! Which webhook a write failed by, where the server's words, which are kube-apiserver's, do not name it: its patch cannot be
//! applied or makes the object another one, or an expression of its `matchConditions` fails. And which policy makes it another.
//!
//! The server knows of each webhook what it last failed with, and a configuration holds its own expressions.

use corten_reconcile::{Actor, Decision, Wait};
use serde_json::Value;

use super::{
    refusal::{self, between},
    refusers::{self, WEBHOOK_FAILED},
};
use crate::why::{
    fields::{items, key_of, one_line, text},
    reader::Reader,
};

/// More configurations than these are not asked about.
const CONFIGURATIONS_MAX: usize = 20;
const MUTATING: &str = "mutatingwebhookconfiguration";
const MUTATING_POLICY: &str = "mutatingadmissionpolicy";
const OTHER_NAMESPACE: &str = "the namespace of the provided object does not match the namespace sent on the request";
/// What a message of [`corten_meta::Status::internal`] begins with.
const INTERNAL: &str = "Internal error occurred: ";

/// Names the webhook in the wait for a write that failed by it.
pub(crate) async fn name(reader: &Reader<'_>, wait: &mut Wait) {
    if refusal::is_of_write(wait)
        && let Some(found) = of(reader, &wait.message).await
    {
        *wait = Wait { since: wait.since, ..found };
    }
}

/// The same of writes that no wait is about.
pub(crate) async fn of_errors(reader: &Reader<'_>, decisions: &[Decision]) -> Vec<(String, Wait)> {
    let mut found = Vec::new();
    for decision in decisions.iter().filter(|it| !it.waits.iter().any(refusal::is_of_write)) {
        let error = decision.error.as_deref().filter(|it| refusers::read(it).is_none());
        if let Some(error) = error
            && let Some(wait) = of(reader, error).await
        {
            found.push((decision.by.clone(), wait));
        }
    }
    found
}

async fn of(reader: &Reader<'_>, message: &str) -> Option<Wait> {
    let message = one_line(message);
    if let Some((_, why)) = message.split_once(INTERNAL) {
        return of_patch(reader, why).await;
    }
    if is_another_object(&message) {
        return of_move(reader, message.contains(OTHER_NAMESPACE)).await;
    }
    let (_, why) = message.split_once(" is forbidden: ")?;
    of_condition(reader, why).await
}

/// `why` is the server's whole complaint.
async fn of_patch(reader: &Reader<'_>, why: &str) -> Option<Wait> {
    let failed = |webhook: &str| {
        Wait::new(WEBHOOK_FAILED, format!("webhook {webhook} gives no valid answer: {why}"), Actor::External)
    };
    let kind = corten_kinds::by_name(MUTATING)?;
    let all = reader.list(&kind.resource, "").await;
    for configuration in all.iter().take(CONFIGURATIONS_MAX) {
        let decisions = reader.decisions_if_shown(kind, &key_of(configuration)).await;
        let waits = decisions.iter().flat_map(|it| &it.waits).filter(|it| it.reason == "WebhookFailing");
        if let Some(webhook) = waits.filter(|it| tells(it, why)).find_map(refusers::webhook_of) {
            return Some(failed(webhook));
        }
    }
    // It was answered well since, or the server has restarted: then only the words are left, and nobody else patches so.
    if !is_about_patch(why) {
        return None;
    }
    let webhooks: Vec<&str> = all.iter().flat_map(|it| items(it, "/webhooks")).map(|it| text(it, "/name")).collect();
    Some(match webhooks[..] {
        [only] => failed(only),
        _ => {
            let message = format!("a mutating webhook gives no valid answer: its patch cannot be applied: {why}");
            Wait::new(WEBHOOK_FAILED, message, Actor::External)
        }
    })
}

/// Which one changes what says which object it is. The cluster's own loops ask for objects where they belong: that somebody does
/// is certain where the server complains of the namespace.
async fn of_move(reader: &Reader<'_>, is_certain: bool) -> Option<Wait> {
    let what = |wait: &Wait| {
        let (_, what) = wait.message.split_once(": it changes metadata.")?;
        Some(format!("it changes metadata.{}", one_line(what)))
    };
    for kind in [MUTATING, MUTATING_POLICY].into_iter().filter_map(corten_kinds::by_name) {
        for object in reader.list(&kind.resource, "").await.iter().take(CONFIGURATIONS_MAX) {
            let decisions = reader.decisions_if_shown(kind, &key_of(object)).await;
            for wait in decisions.iter().flat_map(|it| &it.waits) {
                let Some(what) = what(wait) else { continue };
                if let Some(webhook) = refusers::webhook_of(wait) {
                    let message = format!("webhook {webhook} gives no valid answer: {what}");
                    return Some(Wait::new(WEBHOOK_FAILED, message, Actor::External));
                }
                let name = text(object, "/metadata/name");
                let wait = Wait::new("PolicyFailed", format!("policy {name} fails: {what}"), Actor::Author);
                return Some(wait.on(&kind.singular, name));
            }
        }
    }
    // The server has restarted since, or it is not to be seen.
    let message = "a mutating webhook or policy gives no valid answer: it changes the namespace of the object";
    is_certain.then(|| Wait::new(WEBHOOK_FAILED, message, Actor::External))
}

/// The words of a write of an object that was made another one before it was stored.
fn is_another_object(message: &str) -> bool {
    let is_immutable = |field: &str| {
        let said = between(message, &format!("metadata.{field}: Invalid value: "), "field is immutable");
        said.is_some_and(|it| !it.contains(": Invalid value: "))
    };
    message.contains(OTHER_NAMESPACE) || ["name", "namespace", "uid"].into_iter().any(is_immutable)
}

/// Does the server say of a webhook that it last failed with these words? Of long ones it keeps the beginning and the end.
fn tells(wait: &Wait, why: &str) -> bool {
    let said = one_line(&wait.message);
    let Some((_, said)) = said.split_once(INTERNAL) else { return false };
    match said.split_once('…') {
        Some((begin, end)) => why.starts_with(begin) && why.ends_with(end),
        None => said == why,
    }
}

/// The words of a JSON patch (RFC 6902) that cannot be applied.
fn is_about_patch(why: &str) -> bool {
    why.contains(" operation does not apply") || why.starts_with("testing value ") && why.ends_with(": test failed")
}

/// The configuration that holds the expression of which `why` says that it fails, alone or first in a list.
async fn of_condition(reader: &Reader<'_>, why: &str) -> Option<Wait> {
    let is_expression = why.trim_start_matches('[').starts_with("expression '");
    let expression = between(why, "expression '", "' resulted in error: ").filter(|_| is_expression)?;
    let has =
        |it: &&Value| items(it, "/matchConditions").iter().any(|it| one_line(text(it, "/expression")) == expression);
    for kind in [MUTATING, "validatingwebhookconfiguration"].into_iter().filter_map(corten_kinds::by_name) {
        let all = reader.list(&kind.resource, "").await;
        let found = all.iter().find_map(|it| Some((it, items(it, "/webhooks").iter().find(has)?)));
        let Some((configuration, webhook)) = found else { continue };
        let message = format!("webhook {} cannot be asked: a condition of it fails: {why}", text(webhook, "/name"));
        let wait = Wait::new(refusers::CONDITION_FAILED, message, Actor::Operator);
        return Some(wait.on(&kind.singular, text(configuration, "/metadata/name")));
    }
    None
}

#[cfg(test)]
mod tests;
