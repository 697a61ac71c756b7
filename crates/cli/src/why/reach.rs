//! How far a cause reaches: what refuses the writes of others is worse than what holds one object up.

use corten_kinds::Kind;
use corten_reconcile::{Journal, Wait};
use serde_json::Value;

use super::{
    account::{Account, Root},
    fields::{items, text},
    findings::refusers,
};

/// The farthest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The cluster itself is not well: everything depends on it.
    Cluster,
    /// A webhook or policy refuses writes, and its rules name every resource.
    EveryWrite,
    /// A webhook or policy refuses writes.
    Writes,
    /// Objects of a kind or of a group cannot be read or written.
    Kind,
    Node,
    /// It holds those objects up that wait for it, and no others.
    Objects,
}

const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];
const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicy",
    "mutatingadmissionpolicybinding",
    "validatingadmissionpolicy",
    "validatingadmissionpolicybinding",
];
/// What a message says where requests are not let through instead.
const REFUSED: &str = " is refused";

/// How far the cause at the end of a chain reaches: as far as the object on the way to it that reaches farthest.
pub(super) fn of(root: &Root<'_>) -> Reach {
    let on_the_way = root.path.iter().map(|it| of_account(it, root));
    on_the_way.chain([of_reason(root.wait)]).min().unwrap_or(Reach::Objects)
}

fn of_account(account: &Account, root: &Root<'_>) -> Reach {
    let kind = account.subject.split_once('/').map_or("", |it| it.0);
    let object = &account.object;
    let mut waits = account.causes.iter().map(|it| &it.wait).chain([root.wait]);
    match kind {
        "node" => Reach::Node,
        _ if object["metadata"]["deletionTimestamp"].is_string() => Reach::Objects,
        "apiservice" | "customresourcedefinition" => Reach::Kind,
        _ if CONFIGURATIONS.contains(&kind) => match waits.find(|it| refuses(it) || is_unreachable(object, it)) {
            Some(wait) if names_every_resource(rules_of_webhooks(object, refusers::webhook_of(wait))) => {
                Reach::EveryWrite
            }
            Some(_) => Reach::Writes,
            None => Reach::Objects,
        },
        _ if POLICIES.contains(&kind) && waits.any(refuses) => {
            let is_about_all = names_every_resource(items(object, "/spec/matchConstraints/resourceRules").iter());
            if is_about_all { Reach::EveryWrite } else { Reach::Writes }
        }
        _ => Reach::Objects,
    }
}

/// Others than the object that waits for it are concerned, too, whichever that is.
fn of_reason(wait: &Wait) -> Reach {
    match &*wait.reason {
        refusers::WEBHOOK_FAILED | refusers::CONDITION_FAILED | "PolicyFailed" => Reach::Writes,
        "ConversionWebhookFailing" => Reach::Kind,
        _ => Reach::Objects,
    }
}

/// Does a webhook or policy refuse whatever it is asked about?
fn refuses(wait: &Wait) -> bool {
    match &*wait.reason {
        "PolicyDenying" | "WebhookDenying" | "WebhookRefusesItsOwn" => true,
        // What follows is in the words of others.
        "PolicyFailing" | "WebhookFailing" | refusers::CONDITION_FAILED => {
            wait.message.split_once(": ").is_some_and(|(own, _)| own.ends_with(REFUSED))
        }
        "ParamKindNotFound" | "ParameterNotFound" => {
            wait.message.ends_with(REFUSED)
                || wait.message.split_once(": ").is_some_and(|(own, _)| own.ends_with(REFUSED))
        }
        _ => false,
    }
}

/// Nobody is behind the Service of a webhook that requests do not pass without.
fn is_unreachable(configuration: &Value, wait: &Wait) -> bool {
    ["BackendNotReady", "ServiceNotFound", "ServicePortMissing"].contains(&&*wait.reason)
        && items(configuration, "/webhooks").iter().any(|it| it["failurePolicy"] != "Ignore")
}

/// The rules of one webhook of a configuration; of all where it is not known which.
fn rules_of_webhooks<'a>(configuration: &'a Value, webhook: Option<&'a str>) -> impl Iterator<Item = &'a Value> {
    let is_it = move |it: &&Value| webhook.is_none_or(|name| text(it, "/name") == name);
    items(configuration, "/webhooks").iter().filter(is_it).flat_map(|it| items(it, "/rules"))
}

fn names_every_resource<'a>(mut rules: impl Iterator<Item = &'a Value>) -> bool {
    rules.any(|rule| {
        let names = |pointer: &str, all: &[&str]| {
            items(rule, pointer).iter().filter_map(Value::as_str).any(|it| all.contains(&it))
        };
        names("/apiGroups", &["*"]) && names("/resources", &["*", "*/*"])
    })
}

/// Of what is told of an object, what keeps others from being written or read.
pub(super) fn refusal<'a>(kind: &Kind, journal: &'a Journal) -> Option<&'a Wait> {
    let is_of_writes = [&CONFIGURATIONS[..], &POLICIES].concat().contains(&&*kind.singular);
    let is_of_objects = kind.singular == "customresourcedefinition";
    let mut waits = journal.decisions.iter().flat_map(|it| &it.waits);
    waits.find(|it| is_of_writes && refuses(it) || is_of_objects && it.reason == "ConversionWebhookFailing")
}

#[cfg(test)]
mod tests;
