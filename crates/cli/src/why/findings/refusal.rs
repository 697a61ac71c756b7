//! Why the API server refused to make an object, read off its words: which quota, which policy, what to name.
//!
//! A loop passes the server's message on as it is. Here it becomes a wait of its own, with who must act.

use corten_reconcile::{Actor, Wait};

use super::refusers;
use crate::why::fields::one_line;

/// One resource of a quota that is exceeded, in the quota's own words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) resource: String,
    pub(crate) asked: String,
    pub(crate) used: String,
    pub(crate) hard: String,
}

/// Gives a wait for a refused write its own name, where the words are known.
pub(crate) fn refined(wait: Wait) -> Wait {
    let refined = match &*wait.reason {
        // Of a Binding's own refusals the scheduler has made what there is to say.
        "BindingRejected" => refusers::read(&wait.message),
        _ if is_of_write(&wait) => read(&wait.message),
        _ => None,
    };
    match refined {
        Some(refined) => Wait { since: wait.since, ..refined },
        None => wait,
    }
}

/// Is it about a write that the server did not take?
pub(super) fn is_of_write(wait: &Wait) -> bool {
    matches!(&*wait.reason, "FailedCreate" | "ReplicaSetCreateError" | "FailedUpdate")
}

fn read(message: &str) -> Option<Wait> {
    // Their words are free, and may hold those of any other refusal.
    if let Some(wait) = refusers::read(message) {
        return Some(wait);
    }
    let after = |mark: &str| message.split_once(mark).map(|it| it.1);
    if let Some(rest) = after("exceeded quota: ") {
        let (quota, _) = rest.split_once(", ")?;
        let wait = Wait::new("QuotaExceeded", exceeded(quota, &excesses(rest)), Actor::Operator);
        return Some(wait.on("ResourceQuota", quota));
    }
    if let Some(rest) = after("failed quota: ") {
        let (quota, what) = rest.split_once(": ")?;
        let message = format!("quota {quota} counts what its containers do not say: {what}");
        return Some(Wait::new("QuotaNeedsRequests", message, Actor::Author).on("ResourceQuota", quota));
    }
    if let Some(rest) = after("violates PodSecurity ") {
        let message = format!("its namespace enforces PodSecurity {rest}");
        return Some(Wait::new("PodSecurityViolated", message, Actor::Author));
    }
    if let Some(name) = between(message, "serviceaccount \"", "\" not found") {
        let message = format!("there is no service account {name:?}");
        return Some(Wait::new("ServiceAccountNotFound", message, Actor::Author).on("ServiceAccount", name));
    }
    if let Some(name) = between(message, "no PriorityClass with name ", " was found") {
        let message = format!("there is no priority class {name:?}");
        return Some(Wait::new("PriorityClassNotFound", message, Actor::Author).on("PriorityClass", name));
    }
    if let Some(name) = between(message, "RuntimeClass \"", "\" not found") {
        let message = format!("there is no runtime class {name:?}");
        return Some(Wait::new("RuntimeClassNotFound", message, Actor::Author).on("RuntimeClass", name));
    }
    if message.contains(" usage per ") || message.contains("request ratio per ") {
        let (_, what) = message.split_once(" is forbidden: ")?;
        return Some(Wait::new("LimitRangeViolated", what, Actor::Author));
    }
    if message.contains("because it is being terminated") {
        return Some(Wait::new("NamespaceTerminating", "its namespace is being deleted", Actor::Operator));
    }
    if let Some((_, what)) = message.split_once(" is invalid: ") {
        return Some(Wait::new("TemplateInvalid", one_line(what), Actor::Author));
    }
    None
}

pub(crate) fn between<'a>(message: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

fn exceeded(quota: &str, excesses: &[Excess]) -> String {
    let one = |it: &Excess| format!("{} used {} of {}, {} more asked", it.resource, it.used, it.hard, it.asked);
    format!("quota {quota} is full: {}", excesses.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// `q, requested: pods=1, used: pods=2, limited: pods=2`: what each resource has.
pub(crate) fn excesses(text: &str) -> Vec<Excess> {
    let part = |name: &str| -> Vec<(String, String)> {
        let Some((_, rest)) = text.split_once(name) else { return Vec::new() };
        let end = [", used: ", ", limited: "].iter().filter_map(|it| rest.find(it)).min().unwrap_or(rest.len());
        let pairs = rest[..end].split(',').filter_map(|it| it.trim().split_once('='));
        pairs.map(|(name, amount)| (name.to_owned(), amount.to_owned())).collect()
    };
    let (used, hard) = (part(", used: "), part(", limited: "));
    let of = |list: &[(String, String)], name: &str| {
        list.iter().find(|it| it.0 == name).map(|it| it.1.clone()).unwrap_or_default()
    };
    let excess = |(resource, asked): (String, String)| Excess {
        used: of(&used, &resource),
        hard: of(&hard, &resource),
        resource,
        asked,
    };
    part(", requested: ").into_iter().map(excess).collect()
}

#[cfg(test)]
mod tests;
