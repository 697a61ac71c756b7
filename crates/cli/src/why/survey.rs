//! Everything that is not fine in a namespace or a cluster, worst first, put together by its cause.
//!
//! Looking is cheap and explaining is not: what looks well by its status is passed over or comes last, what belongs to
//! something that does not look well is left to that, and of the rest a bounded number is explained.

use crate::why::gather::STANDSTILLS;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Journal};
use serde::Serialize;
use serde_json::Value;

use super::{
    Explanation, State, aggregated, beyond, explain,
    fields::{key_of, one_line},
    findings::definitions,
    gather,
    reach::{self, Reach},
    reader::Reader,
    severity::{self, Severity},
    suspects::{self, Suspect, Suspects},
};

/// More than these are not explained: nobody reads them, and each costs several requests.
const EXPLAINED_MAX: usize = 40;

/// What is not fine.
const KIND: &str = "Survey";

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
    /// Which those are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_explained: Vec<Subject>,
    /// So many look well by their status, and nobody looked closer.
    pub(crate) well_not_looked_at: usize,
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
    #[serde(rename = "gravity")]
    pub(crate) severity: Severity,
    /// Who must act for the first of them.
    pub(crate) actor: Actor,
    /// The same in words.
    pub(crate) who: String,
    pub(crate) summary: String,
    /// The command that tells all about the first of them.
    pub(crate) next: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Time>,
    pub(crate) subjects: Vec<Subject>,
    /// What the cause is about, where that is none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<String>,
    #[serde(skip)]
    pub(crate) reach: Reach,
}

impl Survey {
    /// Nothing but what is wrong with the cluster itself was looked at.
    pub(crate) fn of_cluster(groups: Vec<Group>) -> Self {
        Self {
            api_version: super::explain::API_VERSION,
            kind: KIND,
            namespace: String::new(),
            groups,
            not_looked_at: 0,
            not_explained: Vec::new(),
            well_not_looked_at: 0,
            notices: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl Group {
    /// Of the cluster itself, for whoever runs it.
    pub(crate) fn of_cluster(subject: &str, summary: String, next: String) -> Self {
        Self {
            state: State::Blocked,
            needs_somebody: true,
            severity: Severity::Down,
            actor: Actor::Operator,
            who: String::new(),
            summary,
            next,
            since: None,
            subjects: vec![Subject { subject: subject.to_owned(), namespace: String::new() }],
            because: None,
            reach: Reach::Cluster,
        }
    }

    /// Is it about the cluster itself? Then it comes first.
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.reach == Reach::Cluster
    }

    /// Who must act, in so many letters where that can be: what they must do the command tells.
    pub(crate) fn whom(&self, room: usize) -> &str {
        let who = match self.who.split_once("; else ") {
            Some((nobody, else_)) if self.needs_somebody && nobody.starts_with("nobody") => else_,
            _ => &*self.who,
        };
        let brief = who.split(": ").next().and_then(|it| it.split("; ").next()).unwrap_or_default();
        match self.actor {
            _ if !self.needs_somebody => "nobody",
            _ if !brief.is_empty() && brief.chars().count() <= room => brief,
            Actor::Author => "whoever wrote it",
            Actor::External => "another program, or whoever runs it",
            Actor::Operator | Actor::Cluster => "whoever runs the cluster",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Subject {
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
}

/// What somebody wants to be so: it waits for a person and is nobody's trouble.
const WISHED: [&str; 4] = ["DeploymentPaused", "JobSuspended", "NoDisruptionsAllowed", "Suspended"];

/// Looks at one kind, or at all; an empty namespace is the whole cluster.
///
/// # Errors
/// Nothing could be looked at: of what nobody saw nobody can say that it is fine.
pub(crate) async fn survey(reader: &Reader<'_>, namespace: &str, only: Option<&'static Kind>) -> Result<Survey, Error> {
    let mut of_cluster = Vec::new();
    if only.is_none() {
        of_cluster.extend(reader.not_ready().await.map(not_ready));
        of_cluster.extend(reader.store_room().await.map(no_room));
        of_cluster.extend(reader.access_webhooks().await.into_iter().map(unanswering));
        of_cluster.extend(reader.refused_files().await.into_iter().map(refused_file));
    }
    let journals: Vec<_> = reader.journals_of_waits(namespace).await.iter().filter_map(journal_of).collect();
    if only.is_none() {
        of_cluster.extend(defects(&journals));
    }
    let Suspects { mut unwell, well, remarks, unlisted } = suspects::of(reader, namespace, only, &journals).await?;
    let well = add_waiting(reader, namespace, only, &journals, &mut unwell, well).await;
    let is_defect = |kind: &Kind, object: &Value| {
        let subject = subject(kind, &key_of(object));
        of_cluster.iter().any(|it: &Group| it.subjects.contains(&subject))
    };
    unwell.retain(|it| !is_defect(it.0, &it.1));
    leave_to_owners(&mut unwell);
    // What keeps others from being written or read is explained, however much else looks unwell.
    let holding: BTreeSet<(&str, &Key)> =
        journals.iter().filter(|it| reach::refusal(it.0, &it.2).is_some()).map(|it| (&*it.0.singular, &it.1)).collect();
    let holds = |it: &Suspect| holding.contains(&(&*it.0.singular, &key_of(&it.1)));
    unwell.sort_by_key(|it| if holds(it) { it.2.min(Severity::Down) } else { it.2 });
    let mut groups = Vec::new();
    for (kind, said) in unlisted {
        groups.push(unreadable(reader, kind, &said, namespace).await);
    }
    // What looks well by its status may wait for something all the same.
    let n_unwell = unwell.len();
    unwell.extend(well);
    let (found, left) = by_cause(reader, &unwell).await;
    groups.extend(found);
    groups.sort_by_key(|it| (!it.needs_somebody, it.severity, it.reach, Reverse(it.subjects.len()), it.since));
    groups.splice(0..0, of_cluster);
    let beyond =
        if only.is_none() && !namespace.is_empty() { beyond::told(reader, &journals, &groups).await } else { None };
    match reader.unreachable() {
        Some(error) if groups.is_empty() => return Err(error.into()),
        _ => {}
    }
    let (not_explained, well_left): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|it| *it < n_unwell);
    Ok(Survey {
        api_version: super::explain::API_VERSION,
        kind: KIND,
        namespace: namespace.to_owned(),
        groups,
        not_looked_at: not_explained.len(),
        not_explained: not_explained.into_iter().map(|it| subject(unwell[it].0, &key_of(&unwell[it].1))).collect(),
        well_not_looked_at: well_left.len(),
        notices: beyond.into_iter().chain(remarks).collect(),
        unknown: reader.hidden(),
    })
}

/// What belongs to something that does not look well is left to that.
fn leave_to_owners(unwell: &mut Vec<Suspect>) {
    let owned: BTreeSet<(String, Key)> = unwell.iter().map(|it| (it.0.singular.to_string(), key_of(&it.1))).collect();
    let is_explained_above = |object: &Value| {
        let owner = gather::owner(object);
        owner.is_some_and(|(kind, name)| {
            owned.contains(&(kind.singular.to_string(), Key::new(key_of(object).namespace, name)))
        })
    };
    unwell.retain(|it| !is_explained_above(&it.1));
}

/// Explains them, and puts those together that wait for the same; and the places of those that it did not explain. What one of
/// them leads to is of the same cause, and is not explained again.
async fn by_cause(reader: &Reader<'_>, suspects: &[Suspect]) -> (Vec<Group>, Vec<usize>) {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut led_to: BTreeMap<Subject, String> = BTreeMap::new();
    let (mut left, mut n_explained) = (Vec::new(), 0);
    for (at, (kind, object, _)) in suspects.iter().enumerate() {
        let key = key_of(object);
        let own = subject(kind, &key);
        if let Some(group) = led_to.get(&own).and_then(|it| groups.get_mut(it)) {
            group.subjects.push(own);
            continue;
        }
        if n_explained == EXPLAINED_MAX {
            left.push(at);
            continue;
        }
        n_explained += 1;
        match explain(reader, kind, &key).await {
            Ok(it) if matches!(it.account.state, State::Fine | State::Finished) => {}
            Ok(explanation) => {
                let path = explanation.account.root().map(|it| it.path).unwrap_or_default();
                let below = path
                    .iter()
                    .skip(1)
                    .map(|it| Subject { subject: it.subject.clone(), namespace: it.namespace.clone() });
                led_to.extend(below.map(|it| (it, explanation.account.summary.clone())));
                add(&mut groups, explanation);
            }
            // It may be gone by now; what nobody could look at is not fine.
            Err(error) => reader.note(&error, || format!("{} {:?}", kind.resource.plural, key.name)),
        }
    }
    (groups.into_values().collect(), left)
}

/// Everything else depends on it.
fn not_ready(what: String) -> Group {
    // `informer-sync failed: 1 of secrets cannot be read since TIME: why`; other checks say no time.
    let times = what.split(" cannot be read since ").skip(1);
    let since = times.filter_map(|it| it.split(": ").next()?.parse().ok()).min();
    let next = "kubectl get --raw '/readyz?verbose'".into();
    Group { since, ..Group::of_cluster("the API server", format!("NotReady: {what}"), next) }
}

fn no_room(what: String) -> Group {
    let next = if what.contains("etcd's quota") {
        "kubectl get --raw /metrics | grep apiserver_storage # then delete what is not needed, compact and defragment etcd, or raise its --quota-backend-bytes"
    } else {
        "df -h; kubectl get --raw /metrics | grep -E 'apiserver_storage|corten_store'"
    };
    Group::of_cluster("the API server", format!("StoreDiskFull: {what}"), next.into())
}

/// `the token webhook has not answered since TIME, last asked at TIME: why`, or `the issuer "URL" has not …`.
fn unanswering(line: String) -> Group {
    let since = line.split(" has not answered since ").nth(1);
    let since = since.and_then(|it| it.split(": ").next()?.split(", ").next()?.parse().ok());
    if let Some(said) = of_issuer(&line) {
        let next = "kubectl get --raw /metrics | grep jwt_authenticator";
        return Group {
            since,
            ..Group::of_cluster("the API server", format!("IssuerUnreachable: {said}"), next.into())
        };
    }
    let next = "kubectl get --raw /metrics | grep -E 'authorization_webhook|authentication_webhook'";
    Group { since, ..Group::of_cluster("the API server", format!("WebhookUnanswering: {line}"), next.into()) }
}

/// What becomes of its tokens and who must act, before the reason, which may be long.
fn of_issuer(line: &str) -> Option<String> {
    let (issuer, rest) = line.split_once(" has not answered since ").filter(|it| it.0.starts_with("the issuer "))?;
    let (reason, becomes) = rest.split_once(": ")?.1.rsplit_once("; ")?;
    let who = "whoever runs it, or wrote its entry in the authentication configuration, must act";
    Some(format!("{issuer} does not say its keys, and {becomes}: {who}: {reason}"))
}

/// `the encryption configuration stays as it was: FILE has been refused since TIME: why`.
fn refused_file(line: String) -> Group {
    let next = "kubectl get --raw /readyz/configuration-files";
    // `2 of secrets are stored under key "two" of aesgcm, which the encryption configuration does not have any more: …`.
    if line.contains(" are stored under ") {
        return Group::of_cluster("the API server", format!("KeyStillUsed: {line}"), next.into());
    }
    let since = line.split(" has been refused since ").nth(1);
    let since = since.and_then(|it| it.split(": ").next()?.parse().ok());
    Group { since, ..Group::of_cluster("the API server", format!("ConfigurationRefused: {line}"), next.into()) }
}

/// Objects that nobody can read look well to whoever does not see them.
async fn unreadable(reader: &Reader<'_>, kind: &Kind, said: &str, namespace: &str) -> Group {
    let definition = kind.resource.qualified();
    if let Some(it) = aggregated::server_of(reader, kind).await {
        let summary = format!("Unreadable: {definition} of {} cannot be listed: {}", it.server, one_line(said));
        let of_cluster = Group::of_cluster(&it.subject, summary, format!("corten why {}", it.subject));
        return Group { actor: Actor::External, reach: Reach::Kind, ..of_cluster };
    }
    let subject = Subject { subject: format!("customresourcedefinition/{definition}"), namespace: String::new() };
    let summary = format!("Unreadable: {definition} cannot be listed: {}", one_line(said));
    let place = match (kind.resource.namespaced, namespace) {
        (false, _) => String::new(),
        (true, "") => " -A".into(),
        (true, namespace) => format!(" -n {namespace}"),
    };
    // Whoever converts them is told of by the definition, to whoever may read that.
    let is_told_of = said.contains("conversion webhook") || said.contains(definitions::NO_VERSION);
    let next = if is_told_of && reader.unlisted(&CUSTOM_RESOURCE_DEFINITIONS).is_none() {
        format!("corten why crd/{definition}")
    } else {
        format!("kubectl get {definition}{place}")
    };
    let of_cluster = Group::of_cluster("", summary, next);
    Group { subjects: vec![subject], actor: Actor::External, reach: Reach::Kind, ..of_cluster }
}

/// Loops that stand still or broke: where one does, what it looks after may look well.
fn defects(journals: &[(&'static Kind, Key, Journal)]) -> Vec<Group> {
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for (kind, key, journal) in journals {
        let waits = journal.decisions.iter().flat_map(|it| it.waits.iter().map(move |wait| (&it.by, wait)));
        for (by, wait) in waits.filter(|it| STANDSTILLS.contains(&&*it.1.reason)) {
            let subject = subject(kind, key);
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

/// Whatever a loop says that somebody must act for, though its status looks well; the others that look well are left.
async fn add_waiting(
    reader: &Reader<'_>,
    namespace: &str,
    only: Option<&'static Kind>,
    journals: &[(&'static Kind, Key, Journal)],
    unwell: &mut Vec<Suspect>,
    mut well: Vec<Suspect>,
) -> Vec<Suspect> {
    for (kind, key, journal) in journals {
        let mut waits = journal.decisions.iter().flat_map(|it| &it.waits).filter(|it| it.actor != Actor::Cluster);
        let is_wished = !journal.decisions.iter().any(|it| it.error.is_some() || !it.steps.is_empty())
            && waits.all(|it| WISHED.contains(&&*it.reason));
        let is_it = |it: &Suspect| it.0.singular == kind.singular && key_of(&it.1) == *key;
        if let Some(at) = well.iter().position(is_it) {
            unwell.push(well.remove(at));
            continue;
        }
        let bears = namespace.is_empty() || key.namespace == namespace || kind.singular == "node";
        if is_wished || !bears || only.is_some() || unwell.iter().any(is_it) {
            continue;
        }
        if unwell.len() > 2 * EXPLAINED_MAX {
            break;
        }
        let object = reader.get(&kind.resource, key).await;
        unwell.extend(object.map(|it| (*kind, (*it).clone(), severity::seen(kind, &it))));
    }
    well
}

/// What a journal is about.
fn journal_of(object: &Value) -> Option<(&'static Kind, Key, Journal)> {
    let journal: Journal = serde_json::from_value(object.clone()).ok()?;
    let (kind, name) = corten_kinds::by_journal(&journal.metadata.name)?;
    let namespace = if kind.resource.namespaced { &*journal.metadata.namespace } else { "" };
    let key = Key::new(namespace, name);
    Some((kind, key, journal))
}

fn subject(kind: &Kind, key: &Key) -> Subject {
    Subject { subject: format!("{}/{}", kind.singular, key.name), namespace: key.namespace.clone() }
}

fn add(groups: &mut BTreeMap<String, Group>, explanation: Explanation) {
    let Explanation { account, root, advice, .. } = explanation;
    let deepest = account.root().filter(|_| root.is_some());
    let because = deepest.as_ref().and_then(|it| Some(it.elsewhere()?.subject.clone()));
    let reach = deepest.as_ref().map_or(Reach::Objects, reach::of);
    let severity = severity::of(&account, deepest.as_ref(), reach);
    let nobody = if account.needs_somebody() { Actor::Operator } else { Actor::Cluster };
    let actor = root.as_ref().map_or(nobody, |it| it.actor);
    let since = account.since().or_else(|| root.and_then(|it| it.since));
    let place = if account.namespace.is_empty() { String::new() } else { format!(" -n {}", account.namespace) };
    let group = groups.entry(account.summary.clone()).or_insert_with(|| Group {
        state: account.state,
        needs_somebody: account.needs_somebody(),
        severity,
        actor,
        who: advice.map(|it| it.who).unwrap_or_default(),
        summary: account.summary.clone(),
        next: format!("corten why {}{place}", account.subject),
        since,
        subjects: Vec::new(),
        because: because.clone(),
        reach,
    });
    group.reach = group.reach.min(reach);
    group.severity = group.severity.min(severity);
    // Whoever is named as one of them need not be named before.
    if because.is_none() {
        group.because = None;
    }
    group.state = group.state.max(account.state);
    group.needs_somebody |= account.needs_somebody();
    group.since = group.since.into_iter().chain(since).min();
    group.subjects.push(Subject { subject: account.subject, namespace: account.namespace });
}
