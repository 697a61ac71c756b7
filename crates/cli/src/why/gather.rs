//! Follows an object's waits: itself, its journal, its warnings, what else tells on it, and what its waits point at.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use corten_api::resources::{CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEASE_CANDIDATES, LEASES};
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::{Decision, Journal, Step, StepState, Wait};
use serde_json::Value;

use super::{
    Account, State,
    account::Cause,
    aggregated, custom,
    fields::{items, one_line, text},
    findings::{self, found::Findings, policies, refusal, refusers, unnamed_webhooks},
    misdirected, pod_steps,
    reader::{Answer, Reader},
    since, trust,
};

/// Deeper chains of causes than this do not fit a screen.
const DEPTH_MAX: usize = 6;
/// Of one object's waits this many are followed.
const BREADTH_MAX: usize = 4;
const WARNINGS_MAX: usize = 3;
/// A loop that failed as often in a row fails not by chance: a write that met another is tried again and goes through.
const RETRIES: u32 = 3;
/// What a node says that runs no Pods, or takes no others.
const NOT_READY: [&str; 6] =
    ["DiskPressure", "MemoryPressure", "NetworkUnavailable", "NodeSilent", "NotReady", "PIDPressure"];
/// What matters of an object that is deleted; what it once waited for to run does not.
const LEAVING: [&str; 10] = [
    "AddressesInUse",
    "ClaimInUse",
    "ContentNotListed",
    "ContentUnreadable",
    "DiscoveryFailed",
    "FinalizerRemains",
    "KindNotEstablished",
    "NamespaceContentRemaining",
    "NamespaceNotFound",
    "VolumeBound",
];

/// The loop that makes the claims of Pods' own volumes.
const MAKES_CLAIMS: &str = "ephemeral-volume";

/// Waits for loops that do not do their work.
pub(super) const STANDSTILLS: [&str; 3] = ["ListFailing", "LoopPanicked", "LoopStuck"];

/// Explains one object.
///
/// # Errors
/// The object is not there, or the server refuses to show it.
pub(super) async fn explain(reader: &Reader<'_>, kind: &'static Kind, key: &Key) -> Result<Account, Error> {
    below(reader, kind, key.clone(), Vec::new()).await
}

fn below<'a>(
    reader: &'a Reader<'_>,
    kind: &'static Kind,
    key: Key,
    mut path: Vec<String>,
) -> Answer<'a, Result<Account, Error>> {
    Box::pin(async move {
        let object = reader.must_get(&kind.resource, &key).await?;
        let Journal { mut decisions, mut off, unanswered, .. } = reader.journal(kind, &key).await;
        decisions.extend(decisions_elsewhere(reader, kind, &object).await);
        if kind.singular == "pod" {
            pod_steps::recall(&object, &mut decisions);
        }
        path.push(format!("{}/{}", kind.singular, key.name));
        let mut steps = steps(reader, kind, &object, &decisions).await;
        let mut found = findings::of(reader, kind, &object).await;
        findings::without_collector(reader, &object, &mut off, &mut found).await;
        let Findings { waits: found, verdict, mut explains, mut notices } = found;
        // The scheduler waits for a claim that is not made, and who is to make it says why.
        if decisions.iter().any(|it| it.by == MAKES_CLAIMS && !it.waits.is_empty()) {
            explains.push("VolumeBinding");
        }
        notices.extend(unanswered.iter().map(|it| format!("what its node waits for is not known: {it}")));
        if !off.is_empty() {
            notices.push(format!("off here, and left to another program: {}", off.join(", ")));
        }
        // A step that only says what a finding says better goes.
        let is_better_said = |it: &Step| it.wait.as_ref().is_some_and(|it| explains.contains(&&*it.reason));
        steps.retain(|it| !is_better_said(it));

        let mut waits: Vec<(String, Wait)> = told(kind, &object, &decisions, &steps, &explains).chain(found).collect();
        waits.extend(refusals(&decisions));
        waits.extend(unnamed_webhooks::of_errors(reader, &decisions).await);
        for (_, wait) in &mut waits {
            unnamed_webhooks::name(reader, wait).await;
            refusers::place_webhook(reader, wait).await;
            policies::name_parameter(reader, &key.namespace, wait).await;
            trust::tell(wait);
            misdirected::tell(wait);
        }
        aggregated::place(reader, &object, &mut waits).await;
        since::settle(kind, &object, &warning_events(reader, &object).await, &mut steps, &mut waits);
        let reasons: BTreeSet<String> = decisions.iter().flat_map(|it| &it.waits).map(|it| it.reason.clone()).collect();
        let causes = causes(reader, (kind, &key), waits, (&steps, &reasons), &path).await;
        let mut events = warnings(reader, &object).await;
        notices.extend(standing(&mut events));
        let mut account = Account {
            subject: format!("{}/{}", kind.singular, text(&object, "/metadata/name")),
            namespace: text(&object, "/metadata/namespace").to_owned(),
            state: State::Fine,
            summary: String::new(),
            steps,
            notices,
            keeps_failing: decisions.iter().any(|it| it.error.is_some() && it.retries >= RETRIES),
            errors: errors(&decisions, &causes),
            causes,
            events,
            object,
        };
        account.judge(verdict);
        Ok(account)
    })
}

/// What is wrong with all objects of a definition stands in its journal, and what the candidates of a Lease wait for in the
/// Lease's.
async fn decisions_elsewhere(reader: &Reader<'_>, kind: &Kind, object: &Value) -> Vec<Decision> {
    let (resource, key) = if kind.is_custom() {
        let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
        (CUSTOM_RESOURCE_DEFINITIONS, Key::cluster(name))
    } else if kind.resource == LEASE_CANDIDATES {
        (LEASES, Key::new(text(object, "/metadata/namespace"), text(object, "/spec/leaseName")))
    } else {
        return Vec::new();
    };
    let Some(kind) = corten_kinds::by_qualified(&resource.qualified()) else { return Vec::new() };
    reader.decisions_if_shown(kind, &key).await
}

fn is_in_steps(wait: &Wait, steps: &[Step]) -> bool {
    steps.iter().filter_map(|it| it.wait.as_ref()).any(|it| it.reason == wait.reason)
}

/// What loops wait for, where it matters still and nothing else says it.
fn told<'a>(
    kind: &Kind,
    object: &Value,
    decisions: &'a [Decision],
    steps: &'a [Step],
    explains: &'a [&str],
) -> impl Iterator<Item = (String, Wait)> + 'a {
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    let is_over = kind.singular == "pod" && pod_steps::is_over(object);
    let told = decisions.iter().flat_map(|it| it.waits.iter().map(move |wait| (it.by.clone(), wait.clone())));
    let told = told.filter(move |(_, wait)| {
        let matters = if is_leaving { LEAVING.contains(&&*wait.reason) } else { !is_over };
        // A loop that stands still holds up others too, whatever becomes of the object.
        (matters || STANDSTILLS.contains(&&*wait.reason)) && !explains.contains(&&*wait.reason)
    });
    // A step that waits for another object is followed like any other wait.
    let told = told.filter(|(_, wait)| wait.on.is_some() || !is_in_steps(wait, steps));
    told.map(|(by, wait)| (by, refusal::refined(wait)))
}

/// Writes of loops that a webhook or policy of others refused, read off their words: it does not go on by itself.
fn refusals(decisions: &[Decision]) -> impl Iterator<Item = (String, Wait)> {
    let read = |it: &Decision| Some((it.by.clone(), refusers::read(it.error.as_ref()?)?));
    decisions.iter().filter_map(read)
}

/// Each wait with the account of what it waits for. `reasons` are all that loops wait for, those included that are said elsewhere.
async fn causes(
    reader: &Reader<'_>,
    (kind, key): (&Kind, &Key),
    waits: Vec<(String, Wait)>,
    (steps, reasons): (&[Step], &BTreeSet<String>),
    path: &[String],
) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for (by, wait) in waits {
        let n_followed = causes.iter().filter(|it| it.because.is_some()).count();
        let because = if n_followed < BREADTH_MAX { because(reader, kind, key, &wait, path).await } else { None };
        let because = because.and_then(|it| explaining(&wait, reasons, it));
        // What a namespace waits for is that its objects go, and not that they run; a volume waits so for its claim.
        let is_told = |it: &Account| match &*wait.reason {
            "NamespaceContentRemaining" | "VolumeBound" => it.state == State::Terminating,
            "VolumeConditionAbnormal" => it.causes.iter().any(|it| it.wait.reason == wait.reason),
            // Whatever that waits for, it is not this one's.
            "ClaimOfAnother" => false,
            _ => it.state != State::Fine,
        };
        let because = because.filter(is_told).map(Box::new);
        let is_said =
            is_in_steps(&wait, steps) || causes.iter().any(|it| it.wait.reason == wait.reason && it.wait.on == wait.on);
        if because.is_some() || !is_said {
            causes.push(Cause { by, wait, because });
        }
    }
    causes
}

async fn because(reader: &Reader<'_>, kind: &Kind, key: &Key, wait: &Wait, path: &[String]) -> Option<Account> {
    let (on, on_key) = target(reader, kind, key, wait).await?;
    if path.len() >= DEPTH_MAX || path.contains(&format!("{}/{}", on.singular, on_key.name)) {
        return None;
    }
    // What it points at may be gone by now, or not be shown: then the wait itself says enough.
    reader.get(&on.resource, &on_key).await?;
    below(reader, on, on_key, path.to_vec()).await.ok()
}

/// Of what another object waits for, what explains that something waits for that object: its other troubles are its own.
fn explaining(wait: &Wait, siblings: &BTreeSet<String>, account: Account) -> Option<Account> {
    match account.subject.split_once('/')?.0 {
        "node" => explaining_node(wait, siblings, account),
        "mutatingwebhookconfiguration" | "validatingwebhookconfiguration" => explaining_webhook(wait, account),
        _ => Some(account),
    }
}

/// A configuration has many webhooks.
fn explaining_webhook(wait: &Wait, mut account: Account) -> Option<Account> {
    let Some(webhook) = refusers::webhook_of(wait) else { return Some(account) };
    account.causes.retain(|it| refusers::webhook_of(&it.wait).is_none_or(|it| it == webhook));
    account.judge(None);
    (!account.causes.is_empty()).then_some(account)
}

fn explaining_node(wait: &Wait, siblings: &BTreeSet<String>, mut account: Account) -> Option<Account> {
    // The scheduler names the nearest node, whatever it lacks.
    let is_cordoned = siblings.contains("NodeUnschedulable");
    let is_tainted = siblings.contains("UntoleratedTaint");
    let explains = |reason: &str| match &*wait.reason {
        "NearestNode" => is_cordoned && reason == "Cordoned" || is_tainted && NOT_READY.contains(&reason),
        "NodeNotReady" | "NodeSilent" => NOT_READY.contains(&reason),
        "StopOverdue" => reason == "NodeLate" || NOT_READY.contains(&reason) || STANDSTILLS.contains(&reason),
        own => reason == own,
    };
    account.causes.retain(|it| explains(&it.wait.reason));
    account.judge(None);
    (!account.causes.is_empty()).then_some(account)
}

/// The object a wait points at, in the namespace it names, else in that of the one that waits where its kind has one.
async fn target(reader: &Reader<'_>, kind: &Kind, from: &Key, wait: &Wait) -> Option<(&'static Kind, Key)> {
    let (on, name) = wait.on.as_deref()?.split_once('/')?;
    let on = custom::kind_named(reader, on).await?;
    if let Some((namespace, name)) = name.split_once('/') {
        return Some((on, Key::new(namespace, name)));
    }
    let namespace = match (on.resource.namespaced, &*kind.singular) {
        (false, _) => "",
        // A Namespace waits for what is in it.
        (true, "namespace") => &from.name,
        (true, _) => &from.namespace,
    };
    Some((on, Key::new(namespace, name)))
}

async fn steps(reader: &Reader<'_>, kind: &Kind, object: &Rc<Value>, decisions: &[Decision]) -> Vec<Step> {
    if kind.singular != "pod" {
        return decisions.iter().flat_map(|it| it.steps.clone()).collect();
    }
    let mut steps = pod_steps::of(object, decisions);
    for step in &mut steps {
        step.wait = step.wait.take().map(refusal::refined);
    }
    let pod = Key::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    // What a container wrote before it failed says more than anybody else can.
    let running_long = |it: &Step| it.wait.as_ref().is_some_and(|it| it.reason == "InitContainerRunning");
    for step in &mut steps {
        let Some(container) = step.name.strip_prefix("container ").filter(|_| step.log.is_empty()) else { continue };
        if step.state == StepState::Failed || running_long(step) {
            step.log = reader.log(&pod, container, false).await;
        }
    }
    steps
}

/// What the loops failed with, unless a wait says it already.
fn errors(decisions: &[Decision], causes: &[Cause]) -> Vec<String> {
    let is_said = |by: &str| causes.iter().any(|it| it.by == by && it.wait.actor != corten_reconcile::Actor::Cluster);
    let error = |it: &Decision| {
        let error = one_line(it.error.as_ref()?);
        Some(match it.retries {
            0 | 1 => format!("{}: {error}", it.by),
            n => format!("{}: {error} ({n} times in a row)", it.by),
        })
    };
    decisions.iter().filter(|it| !is_said(&it.by)).filter_map(error).collect()
}

/// All that warn of the object.
pub(super) async fn warning_events(reader: &Reader<'_>, object: &Value) -> Rc<Vec<Value>> {
    let uid = text(object, "/metadata/uid");
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    reader.list_where(&EVENTS, namespace, &format!("involvedObject.uid={uid},type=Warning")).await
}

/// What the newest of these events says that `is_it`.
pub(super) fn newest_event(events: &[Value], is_it: impl Fn(&Value) -> bool) -> Option<String> {
    let newest = events.iter().filter(|it| is_it(it)).max_by_key(|it| when(it))?;
    Some(text(newest, "/message").to_owned())
}

/// The newest warnings about the object, oldest first; of each reason the newest says enough.
async fn warnings(reader: &Reader<'_>, object: &Value) -> Vec<String> {
    let events = warning_events(reader, object).await;
    let mut by_reason: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in events.iter() {
        let newest = by_reason.entry(text(event, "/reason")).or_insert(event);
        if when(event) >= when(newest) {
            *newest = event;
        }
    }
    let mut events: Vec<&Value> = by_reason.into_values().collect();
    events.sort_by_key(|it| when(it));
    events.iter().skip(events.len().saturating_sub(WARNINGS_MAX)).map(|it| line(it)).collect()
}

/// Takes out what the object itself is at fault for as long as it stays as it is: that is worth saying though nothing waits for it.
fn standing(warnings: &mut Vec<String>) -> Vec<String> {
    const REASON: &str = "OwnerRefInvalidNamespace";
    let said = |it: &String| it.split_once(' ').map(|it| it.1.to_owned()).filter(|it| it.starts_with(REASON));
    let standing: Vec<String> = warnings.iter().filter_map(said).collect();
    warnings.retain(|it| !standing.iter().any(|said| it.ends_with(said.as_str())));
    standing
}

pub(super) fn when(event: &Value) -> String {
    let at = |name: &str| event[name].as_str().filter(|it| !it.is_empty());
    at("lastTimestamp").or(at("eventTime")).or(at("firstTimestamp")).unwrap_or_default().to_owned()
}

pub(super) fn line(event: &Value) -> String {
    let count = event["count"].as_i64().filter(|it| *it > 1).map(|it| format!(" (x{it})")).unwrap_or_default();
    let (reason, message) = (text(event, "/reason"), one_line(text(event, "/message")));
    format!("{} {reason}: {message}{count}", when(event))
}

/// The events about a name, whichever object had it: what is left to read of one that is gone.
pub(super) async fn events_of(reader: &Reader<'_>, kind: &Kind, key: &Key) -> Vec<String> {
    let fields = format!("involvedObject.kind={},involvedObject.name={}", kind.resource.kind, key.name);
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    let events = reader.list_where(&EVENTS, namespace, &fields).await;
    let mut events: Vec<&Value> = events.iter().collect();
    events.sort_by_key(|it| when(it));
    events.iter().skip(events.len().saturating_sub(WARNINGS_MAX)).map(|it| line(it)).collect()
}

/// The names there are of a kind, for whoever mistyped one.
pub(super) async fn names(reader: &Reader<'_>, kind: &Kind, namespace: &str) -> Vec<String> {
    let objects = reader.list(&kind.resource, namespace).await;
    objects.iter().map(|it| text(it, "/metadata/name").to_owned()).collect()
}

/// The controlling owner an object names: kind and name.
pub(super) fn owner(object: &Value) -> Option<(&'static Kind, String)> {
    let owner = items(object, "/metadata/ownerReferences").iter().find(|it| it["controller"] == true)?;
    let kind = corten_kinds::by_kind(text(owner, "/apiVersion"), text(owner, "/kind"))?;
    Some((kind, text(owner, "/name").to_owned()))
}
