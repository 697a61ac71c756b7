//! Everything that is not fine in a namespace or a cluster, worst first, put together by its cause.
//!
//! Looking is cheap and explaining is not: what looks well by its status is passed over, what belongs to something that
//! does not look well is left to that, and of the rest a bounded number is explained.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::{ENDPOINT_SLICES, NAMESPACES};
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Journal};
use serde::Serialize;
use serde_json::Value;

use super::{
    Explanation, State,
    account::{condition, items, key_of, one_line, text},
    explain, gather,
    reader::Reader,
};

/// More than these are not explained: nobody reads them, and each costs several requests.
const EXPLAINED_MAX: usize = 40;

/// What is not fine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Survey {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Empty: the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) groups: Vec<Group>,
    /// So many objects look unwell and were not explained.
    pub(crate) not_looked_at: usize,
    /// What is worth knowing besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
}

/// One cause, and all that wait for it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Group {
    pub(crate) state: State,
    pub(crate) needs_somebody: bool,
    pub(crate) summary: String,
    /// The command that tells all about the first of them.
    pub(crate) next: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Time>,
    pub(crate) subjects: Vec<Subject>,
    /// It is about the cluster itself, and comes first.
    #[serde(skip)]
    pub(crate) is_of_cluster: bool,
}

impl Group {
    /// Of the cluster itself, for whoever runs it.
    pub(crate) fn of_cluster(subject: &str, summary: String, next: String) -> Self {
        Self {
            state: State::Blocked,
            needs_somebody: true,
            summary,
            next,
            since: None,
            subjects: vec![Subject { subject: subject.to_owned(), namespace: String::new() }],
            is_of_cluster: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Subject {
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
}

/// Waits for loops that do not do their work.
const DEFECTS: [&str; 2] = ["LoopPanicked", "LoopStuck"];

/// What somebody wants to be so: it waits for a person and is nobody's trouble.
const WISHED: [&str; 4] = ["DeploymentPaused", "JobSuspended", "NoDisruptionsAllowed", "Suspended"];

/// In the order they are explained: what many others depend on first.
const NAMESPACED: [&str; 9] = [
    "deployment",
    "statefulset",
    "daemonset",
    "job",
    "replicaset",
    "replicationcontroller",
    "persistentvolumeclaim",
    "pod",
    "service",
];
const CLUSTER: [&str; 3] = ["node", "namespace", "certificatesigningrequest"];

/// Looks at one kind, or at all that usually get stuck; an empty namespace is the whole cluster.
///
/// # Errors
/// Nothing could be looked at: of what nobody saw nobody can say that it is fine.
pub(crate) async fn survey(reader: &Reader<'_>, namespace: &str, only: Option<&'static Kind>) -> Result<Survey, Error> {
    let mut of_cluster = Vec::new();
    let mut waiting = Vec::new();
    if only.is_none() {
        of_cluster.extend(reader.not_ready().await.map(not_ready));
        let journals = reader.journals_of_waits(namespace).await;
        of_cluster.extend(defects(&journals));
        waiting = journals;
    }
    let mut suspects = suspects(reader, namespace, only).await?;
    add_waiting(reader, namespace, &waiting, &mut suspects).await;
    let is_defect = |kind: &Kind, object: &Value| {
        let subject = subject(kind, &key_of(object));
        of_cluster.iter().any(|it: &Group| it.subjects.contains(&subject))
    };
    suspects.retain(|it| !is_defect(it.0, &it.1));
    let owned: BTreeSet<(String, Key)> = suspects.iter().map(|it| (it.0.singular.to_owned(), key_of(&it.1))).collect();
    let is_explained_above = |object: &Value| {
        let owner = gather::owner(object);
        owner.is_some_and(|(kind, name)| {
            owned.contains(&(kind.singular.to_owned(), Key::new(key_of(object).namespace, name)))
        })
    };
    let alone: Vec<_> = suspects.iter().filter(|it| !is_explained_above(&it.1)).collect();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (kind, object) in alone.iter().take(EXPLAINED_MAX) {
        // It may be gone by now, or well.
        let Ok(explanation) = explain(reader, kind, &key_of(object)).await else { continue };
        if !matches!(explanation.account.state, State::Fine | State::Finished) {
            add(&mut groups, explanation);
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|it| (!it.needs_somebody, std::cmp::Reverse(it.subjects.len()), it.since));
    groups.splice(0..0, of_cluster);
    match reader.unreachable() {
        Some(error) if groups.is_empty() => return Err(error.into()),
        _ => {}
    }
    Ok(Survey {
        api_version: super::API_VERSION,
        kind: "Survey",
        namespace: namespace.to_owned(),
        groups,
        not_looked_at: alone.len().saturating_sub(EXPLAINED_MAX),
        notices: Vec::new(),
        unknown: reader.hidden(),
    })
}

/// Everything else depends on it.
fn not_ready(what: String) -> Group {
    Group::of_cluster("the API server", format!("NotReady: {what}"), "kubectl get --raw '/readyz?verbose'".into())
}

/// Loops that stand still or broke: where one does, what it looks after may look well.
fn defects(journals: &[Value]) -> Vec<Group> {
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for (kind, key, journal) in journals.iter().filter_map(journal_of) {
        let waits = journal.decisions.iter().flat_map(|it| it.waits.iter().map(move |wait| (&it.by, wait)));
        for (by, wait) in waits.filter(|it| DEFECTS.contains(&&*it.1.reason)) {
            let subject = subject(kind, &key);
            let place = if key.namespace.is_empty() { String::new() } else { format!(" -n {}", key.namespace) };
            let group = groups.entry((wait.reason.clone(), by.clone())).or_insert_with(|| {
                let summary = format!("{} of {by}: {}", wait.reason, one_line(&wait.message));
                let next = format!("corten why {}{place}", subject.subject);
                Group { subjects: Vec::new(), since: wait.since, ..Group::of_cluster("", summary, next) }
            });
            group.since = group.since.into_iter().chain(wait.since).min();
            group.subjects.push(subject);
        }
    }
    groups.into_values().collect()
}

/// Whatever a loop says that somebody must act for, though its status looks well.
async fn add_waiting(
    reader: &Reader<'_>,
    namespace: &str,
    journals: &[Value],
    suspects: &mut Vec<(&'static Kind, Value)>,
) {
    for (kind, key, journal) in journals.iter().filter_map(journal_of) {
        let mut waits = journal.decisions.iter().flat_map(|it| &it.waits).filter(|it| it.actor != Actor::Cluster);
        let is_wished = !journal.decisions.iter().any(|it| it.error.is_some() || !it.steps.is_empty())
            && waits.all(|it| WISHED.contains(&&*it.reason));
        let bears = namespace.is_empty() || key.namespace == namespace || kind.singular == "node";
        let is_known = |it: &(&Kind, Value)| it.0.singular == kind.singular && key_of(&it.1) == key;
        if is_wished || !bears || suspects.iter().any(is_known) {
            continue;
        }
        if suspects.len() > 2 * EXPLAINED_MAX {
            return;
        }
        let object = reader.get(&kind.resource, &key).await;
        suspects.extend(object.map(|it| (kind, (*it).clone())));
    }
}

/// What a journal is about. Both parts of its name may hold dots: the longest resource wins.
fn journal_of(object: &Value) -> Option<(&'static Kind, Key, Journal)> {
    let journal: Journal = serde_json::from_value(object.clone()).ok()?;
    let named = corten_kinds::KINDS.iter().filter_map(|kind| {
        let name = journal.metadata.name.strip_prefix(&kind.resource.qualified())?.strip_prefix('.')?;
        (!name.is_empty()).then_some((kind, name))
    });
    let (kind, name) = named.min_by_key(|it| it.1.len())?;
    let kind = corten_kinds::by_name(&kind.resource.qualified())?;
    let namespace = if kind.resource.namespaced { &*journal.metadata.namespace } else { "" };
    let key = Key::new(namespace, name);
    Some((kind, key, journal))
}

fn subject(kind: &Kind, key: &Key) -> Subject {
    Subject { subject: format!("{}/{}", kind.singular, key.name), namespace: key.namespace.clone() }
}

fn add(groups: &mut BTreeMap<String, Group>, explanation: Explanation) {
    let Explanation { account, root, .. } = explanation;
    let since = root.and_then(|it| it.since);
    let place = if account.namespace.is_empty() { String::new() } else { format!(" -n {}", account.namespace) };
    let group = groups.entry(account.summary.clone()).or_insert_with(|| Group {
        state: account.state,
        needs_somebody: account.needs_somebody(),
        summary: account.summary.clone(),
        next: format!("corten why {}{place}", account.subject),
        since,
        subjects: Vec::new(),
        is_of_cluster: false,
    });
    group.state = group.state.max(account.state);
    group.needs_somebody |= account.needs_somebody();
    group.since = group.since.into_iter().chain(since).min();
    group.subjects.push(Subject { subject: account.subject, namespace: account.namespace });
}

async fn suspects(
    reader: &Reader<'_>,
    namespace: &str,
    only: Option<&'static Kind>,
) -> Result<Vec<(&'static Kind, Value)>, Error> {
    let (mut suspects, mut is_any_seen, mut refusal) = (Vec::new(), false, None);
    let kinds: Vec<&'static Kind> = match only {
        Some(kind) => vec![kind],
        None => CLUSTER.iter().chain(&NAMESPACED).filter_map(|it| corten_kinds::by_name(it)).collect(),
    };
    for kind in kinds {
        let is_cluster = !kind.resource.namespaced;
        // Of what belongs to no namespace only nodes and the namespace itself bear on one.
        if is_cluster && !namespace.is_empty() && only.is_none() && !matches!(kind.singular, "node" | "namespace") {
            continue;
        }
        let objects = if kind.resource == NAMESPACES && !namespace.is_empty() && only.is_none() {
            let own = reader.get(&NAMESPACES, &Key::cluster(namespace)).await;
            own.map(|it| vec![(*it).clone()]).unwrap_or_default()
        } else {
            let place = if is_cluster { "" } else { namespace };
            let list = (*reader.list(&kind.resource, place).await).clone();
            match reader.unlisted(&kind.resource) {
                // Whom it does not know it will not tell anything.
                Some(error) if error.status().is_some_and(|it| it.code == 401) => return Err(error),
                Some(error) => refusal = refusal.or(Some(error)),
                None => is_any_seen = true,
            }
            list
        };
        let ready = if kind.singular == "service" { ready_services(reader, namespace).await } else { BTreeSet::new() };
        let is_suspect = |it: &Value| match kind.singular {
            "service" => is_service_suspect(it, &ready),
            _ => only.is_some() || is_suspect(kind, it),
        };
        suspects.extend(objects.into_iter().filter(is_suspect).map(|it| (kind, it)));
    }
    match refusal {
        Some(error) if !is_any_seen => Err(error),
        _ => Ok(suspects),
    }
}

fn is_suspect(kind: &Kind, object: &Value) -> bool {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return true;
    }
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let is_true = |name: &str| condition(object, name).is_some_and(|it| it["status"] == "True");
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    match kind.singular {
        "pod" => match text(object, "/status/phase") {
            "Succeeded" => false,
            "Running" => !is_true("Ready"),
            _ => true,
        },
        "deployment" => {
            let late = condition(object, "Progressing").is_some_and(|it| it["status"] == "False");
            late || number("/status/availableReplicas") < wanted || number("/status/updatedReplicas") < wanted
        }
        "statefulset" | "replicaset" | "replicationcontroller" => number("/status/readyReplicas") < wanted,
        "daemonset" => number("/status/numberReady") < number("/status/desiredNumberScheduled"),
        "job" => {
            is_true("Failed")
                || (!is_true("Complete")
                    && (number("/status/failed") > 0 || number("/status/ready") < number("/status/active").max(1))
                    && object["spec"]["suspend"] != true)
        }
        "persistentvolumeclaim" => text(object, "/status/phase") != "Bound",
        "node" => !is_true("Ready") || object["spec"]["unschedulable"] == true,
        // Who denied one has done what was to be done.
        "certificatesigningrequest" => text(object, "/status/certificate").is_empty() && !is_true("Denied"),
        _ => false,
    }
}

/// The Services with an endpoint that is ready.
async fn ready_services(reader: &Reader<'_>, namespace: &str) -> BTreeSet<Key> {
    let slices = reader.list(&ENDPOINT_SLICES, namespace).await;
    let is_ready = |it: &&Value| items(it, "/endpoints").iter().any(|it| it["conditions"]["ready"] != false);
    let name = |it: &Value| {
        Some(Key::new(
            text(it, "/metadata/namespace"),
            it["metadata"]["labels"]["kubernetes.io/service-name"].as_str()?,
        ))
    };
    slices.iter().filter(is_ready).filter_map(name).collect()
}

fn is_service_suspect(service: &Value, ready: &BTreeSet<Key>) -> bool {
    let is_leaving = service["metadata"]["deletionTimestamp"].is_string();
    let is_pending =
        service["spec"]["type"] == "LoadBalancer" && items(service, "/status/loadBalancer/ingress").is_empty();
    let has_selector = service["spec"]["selector"].as_object().is_some_and(|it| !it.is_empty());
    let is_name = service["spec"]["type"] == "ExternalName";
    is_leaving || is_pending || (has_selector && !is_name && !ready.contains(&key_of(service)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_lists_is_one() {
        for kind in NAMESPACED.iter().chain(&CLUSTER) {
            assert_eq!(corten_kinds::by_name(kind).map(|it| it.singular), Some(*kind));
        }
    }
}
