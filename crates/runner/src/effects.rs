//! Carries out a plan's effects in their order, up to the first that fails, and says what the caches must show of them.
//!
//! Only creates, or deletes, that follow each other and are of one resource, fetches, and sequences go side by side: none of them
//! can rest on another.

use std::{collections::VecDeque, time::Duration};

use corten_api::resources::SUBJECT_ACCESS_REVIEWS;
use corten_client::{Client, DeleteParams, Error, PatchType, decode, version_number};
use corten_meta::{Key, ObjectMeta, Resource, Retry, Status, shortened};
use corten_reconcile::{Answer, ApiPath, Effect, Fetched};
use futures_util::{StreamExt, stream::FuturesOrdered};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::barrier::Need;

const CONCURRENT_ALIKE: usize = 32;
/// For all that one plan fetches.
const FETCH_DEADLINE: Duration = Duration::from_secs(10);
const FETCH_BYTES_MAX: usize = 16 << 20;
/// All answers of one plan are kept until the key is looked at again.
const FETCHES_BYTES_MAX: usize = 64 << 20;

/// What became of one plan.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) needs: Vec<Need>,
    /// The events of what was done: each tells of the effect before it.
    pub(crate) told: Vec<Effect>,
    pub(crate) answers: Vec<(Resource, Key, Answer)>,
    pub(crate) fetched: Vec<(ApiPath, Fetched)>,
    pub(crate) fetched_for_all: Vec<(ApiPath, Fetched)>,
    pub(crate) note: Option<Value>,
    /// Where one thing failed nothing more was begun; what was under way may have failed too. In the plan's order.
    pub(crate) failures: Vec<Failure>,
    /// Creates that a namespace which is being deleted did not take. They are no failures (`NamespaceTerminatingCause`):
    /// nothing is tried again, and what else was planned is done.
    pub(crate) moot: Vec<Failure>,
}

pub(crate) struct Failure {
    pub(crate) effect: Effect,
    pub(crate) error: Error,
    pub(crate) what_now: WhatNow,
}

/// What the caches must show before the key is looked at again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WhatNow {
    BackOff,
    /// The server knows a newer object.
    AwaitChange(Resource),
    /// The server has the object already, the cache does not.
    AwaitPresence(Resource, Key),
    /// A create may or may not have been done.
    ListAgain(Resource),
}

/// What goes one after the other.
struct Step {
    /// Without it there is one part.
    is_sequence: bool,
    parts: Vec<Part>,
}

/// One effect, and the events that tell of it.
struct Part {
    effect: Effect,
    events: Vec<Effect>,
}

/// What is left of one plan for each thing that it fetches.
#[derive(Clone, Copy)]
struct FetchBounds {
    until: Instant,
    bytes_max: usize,
}

impl FetchBounds {
    fn of(effects: &[Effect]) -> Self {
        let n_fetches = effects.iter().filter(|it| it.is_fetch()).count();
        let bytes_max = FETCH_BYTES_MAX.min(FETCHES_BYTES_MAX / n_fetches.max(1));
        Self { until: Instant::now() + FETCH_DEADLINE, bytes_max }
    }
}

pub(crate) async fn perform(client: &Client, effects: Vec<Effect>) -> Outcome {
    let bounds = FetchBounds::of(&effects);
    let mut outcome = Outcome::default();
    let mut steps = steps(effects, &mut outcome.told);
    while let Some(step) = steps.pop_front()
        && outcome.failures.is_empty()
    {
        let n_more = steps.iter().take_while(|it| are_alike(&step, it)).count();
        let alike = std::iter::once(step).chain(steps.drain(..n_more)).collect();
        all(client, alike, bounds, &mut outcome).await;
    }
    outcome
}

/// Events have their own queue, so that no plan waits for them; those that stand first tell of no effect. So it is with what
/// is counted.
fn steps(effects: Vec<Effect>, told: &mut Vec<Effect>) -> VecDeque<Step> {
    let mut steps: VecDeque<Step> = VecDeque::new();
    for effect in effects {
        let last = steps.back_mut().and_then(|it| it.parts.last_mut());
        match (effect, last) {
            (Effect::Sequence(parts), _) => {
                let parts = parts_of(parts, told);
                steps.extend((!parts.is_empty()).then_some(Step { is_sequence: true, parts }));
            }
            (event @ (Effect::Event { .. } | Effect::Count(_)), Some(part)) => part.events.push(event),
            (event @ (Effect::Event { .. } | Effect::Count(_)), None) => told.push(event),
            (effect, _) => {
                let parts = vec![Part { effect, events: Vec::new() }];
                steps.push_back(Step { is_sequence: false, parts });
            }
        }
    }
    steps
}

fn parts_of(effects: Vec<Effect>, told: &mut Vec<Effect>) -> Vec<Part> {
    steps(effects, told).into_iter().flat_map(|it| it.parts).collect()
}

fn are_alike(a: &Step, b: &Step) -> bool {
    match (&*a.parts, &*b.parts) {
        ([a_part], [b_part]) if !a.is_sequence && !b.is_sequence => go_side_by_side(&a_part.effect, &b_part.effect),
        _ => a.is_sequence && b.is_sequence,
    }
}

/// Neither can rest on the other: both make, or both delete, an object of one resource, or both patch another one of it.
fn go_side_by_side(a: &Effect, b: &Effect) -> bool {
    match (a, b) {
        (a, b) if a.is_fetch() && b.is_fetch() => true,
        (Effect::Create { resource: a, .. }, Effect::Create { resource: b, .. })
        | (Effect::Delete { resource: a, .. }, Effect::Delete { resource: b, .. }) => a == b,
        (Effect::StrategicPatch { resource: a, key, .. }, Effect::StrategicPatch { resource: b, key: other, .. }) => {
            a == b && key != other
        }
        (Effect::Patch { resource: a, patch: one, .. }, Effect::Patch { resource: b, patch: other, .. }) => {
            a == b && is_of_owners(one) && is_of_owners(other)
        }
        _ => false,
    }
}

/// Does the patch only say whose the object is?
fn is_of_owners(patch: &Value) -> bool {
    let holds_only = |it: &Value, allowed: &[&str]| {
        it.as_object().is_some_and(|it| it.keys().all(|name| allowed.contains(&name.as_str())))
    };
    holds_only(patch, &["metadata"]) && holds_only(&patch["metadata"], &["ownerReferences", "resourceVersion", "uid"])
}

/// Carries out many that are alike, several at once: the first goes alone, and each that goes well lets one more go beside
/// it, so that a quota that is used up or a refusal by admission is met once and not by all.
async fn all(client: &Client, steps: Vec<Step>, bounds: FetchBounds, outcome: &mut Outcome) {
    let mut steps = steps.into_iter();
    // In the plan's order, whatever order they end in.
    let mut under_way = FuturesOrdered::new();
    let mut room = 1;
    loop {
        while under_way.len() < room
            && outcome.failures.is_empty()
            && let Some(step) = steps.next()
        {
            under_way.push_back(in_turn(client, step, bounds));
        }
        let Some(made) = under_way.next().await else { return };
        if made.failures.is_empty() && made.moot.is_empty() {
            room = CONCURRENT_ALIKE.min(room + 1);
        }
        outcome.add(made);
    }
}

async fn in_turn(client: &Client, step: Step, bounds: FetchBounds) -> Outcome {
    let mut outcome = Outcome::default();
    for Part { effect, events } in step.parts {
        if let Err(error) = one(client, &effect, bounds, &mut outcome).await {
            outcome.refused(effect, error);
            break;
        }
        outcome.told.extend(events);
    }
    outcome
}

impl Outcome {
    /// Is there something that the key's next plan waits for?
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty() || !self.fetched.is_empty() || !self.fetched_for_all.is_empty()
    }

    fn add(&mut self, other: Self) {
        let Self { needs, told, answers, fetched, fetched_for_all, note, failures, moot } = other;
        self.needs.extend(needs);
        self.told.extend(told);
        self.answers.extend(answers);
        self.fetched.extend(fetched);
        self.fetched_for_all.extend(fetched_for_all);
        self.note = note.or(self.note.take());
        self.failures.extend(failures);
        self.moot.extend(moot);
    }

    fn refused(&mut self, effect: Effect, error: Error) {
        let what_now = what_now(&effect, &error);
        let refusals = if error.is_namespace_terminating() { &mut self.moot } else { &mut self.failures };
        refusals.push(Failure { effect, error, what_now });
    }
}

async fn one(client: &Client, effect: &Effect, bounds: FetchBounds, outcome: &mut Outcome) -> Result<(), Error> {
    match effect {
        Effect::Create { resource, object } => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let created = client.create(resource, namespace, object).await?;
            outcome.needs.push(written(resource, &created)?);
        }
        // The API has no PATCH for this one subresource: what a patch would do is done by a conditional PUT.
        Effect::Patch { resource, key, subresource: Some("finalize"), patch } => {
            outcome.needs.extend(finalize(client, resource, key, patch).await?);
        }
        Effect::Patch { resource, key, subresource, patch } => {
            let subresource = subresource.unwrap_or_default();
            let patched = client.patch(resource, key, subresource, &PatchType::Merge, patch).await?;
            outcome.needs.push(written(resource, &patched)?);
        }
        Effect::StrategicPatch { resource, key, subresource, patch } => {
            let subresource = subresource.unwrap_or_default();
            let patched = client.patch(resource, key, subresource, &PatchType::Strategic, patch).await?;
            outcome.needs.push(written(resource, &patched)?);
        }
        Effect::Delete { resource, key, uid, propagation, grace_seconds } => {
            let params = DeleteParams {
                grace_seconds: *grace_seconds,
                propagation: propagation.as_str(),
                uid: Some(uid.clone()),
                resource_version: None,
            };
            delete(client, resource, key, &params).await?;
            outcome.needs.push(Need::Going { resource: resource.clone(), key: key.clone(), uid: uid.clone() });
        }
        Effect::Ask { resource, key } => {
            let answer = ask(client, resource, key).await?;
            outcome.answers.push((resource.clone(), key.clone(), answer));
        }
        Effect::AskAccess { about, spec } => {
            let review = json!({ "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version(), "kind": "SubjectAccessReview", "spec": spec });
            let reviewed: Value = decode(&client.create(&SUBJECT_ACCESS_REVIEWS, "", &review).await?)?;
            let answer = if reviewed["status"]["allowed"] == true { Answer::Allowed } else { Answer::Denied };
            outcome.answers.push((SUBJECT_ACCESS_REVIEWS, about.clone(), answer));
        }
        Effect::Fetch(path) => outcome.fetched.push((path.clone(), fetch(client, path, bounds).await)),
        Effect::FetchForAll(path) => outcome.fetched_for_all.push((path.clone(), fetch(client, path, bounds).await)),
        Effect::Remember { note } => outcome.note = Some(note.clone()),
        // Those are taken apart before.
        Effect::Event { .. } | Effect::Count(_) | Effect::Sequence(_) => {}
    }
    Ok(())
}

/// Others may serve it: one that hangs, or answers without end, holds up its own key for a while and nothing else.
async fn fetch(client: &Client, path: &ApiPath, bounds: FetchBounds) -> Fetched {
    let left = bounds.until.saturating_duration_since(Instant::now());
    let client = client.clone().with_deadline(left).with_answers_up_to(bounds.bytes_max);
    let asked = tokio::time::timeout_at(bounds.until, client.get_path_with(&path.path, &path.query)).await;
    let too_late = |_| format!("no answer within {} s, in which all is to be fetched", FETCH_DEADLINE.as_secs());
    let body = asked.map_err(too_late)?.map_err(|error| shortened(&error.to_string()).into_owned())?;
    Ok(body.as_ref().into())
}

/// `None`: the last finalizer was taken away already, and with it the object.
async fn finalize(client: &Client, resource: &Resource, key: &Key, patch: &Value) -> Result<Option<Need>, Error> {
    let mut object: Value = match client.get_as(resource, key).await {
        Err(error) if error.is_not_found() => return Ok(None),
        held => held?,
    };
    let uid = &patch["metadata"]["uid"];
    if !uid.is_null() && *uid != object["metadata"]["uid"] {
        return Err(Status::conflict(resource, &key.name, "another object has this name now").into());
    }
    merge(&mut object, patch);
    let replaced = client.replace(resource, key, "finalize", &object).await?;
    Ok(Some(written(resource, &replaced)?))
}

async fn delete(client: &Client, resource: &Resource, key: &Key, params: &DeleteParams) -> Result<(), Error> {
    match client.delete(resource, key, params).await {
        // A conflict says that another object has this name now: the one meant is gone.
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

async fn ask(client: &Client, resource: &Resource, key: &Key) -> Result<Answer, Error> {
    match client.get_as::<OnlyMeta>(resource, key).await {
        Ok(found) => Ok(Answer::Found { uid: found.metadata.uid }),
        // That nobody serves such objects at the moment does not say that this one is gone.
        Err(error) if error.is_not_found() && is_about(&error, key) => Ok(Answer::Missing),
        Err(error) => Err(error),
    }
}

fn is_about(error: &Error, key: &Key) -> bool {
    // Not every server fills in the details. The answer to a path that nobody serves may hold the letters of any name.
    let quoted = format!("{:?}", key.name);
    error
        .status()
        .is_some_and(|it| it.details.as_ref().is_some_and(|it| *it.name == *key.name) || it.message.contains(&quoted))
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in members {
        if value.is_null() {
            target.shift_remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

fn written(resource: &Resource, object: &[u8]) -> Result<Need, Error> {
    let object: OnlyMeta = decode(object)?;
    let version = version_number(&object.metadata.resource_version).unwrap_or(0);
    Ok(Need::Version { resource: resource.clone(), version })
}

fn what_now(effect: &Effect, error: &Error) -> WhatNow {
    match effect {
        Effect::Create { resource, object } if error.is_already_exists() => {
            let meta = &object["metadata"];
            let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
            match meta["name"].as_str() {
                Some(name) => WhatNow::AwaitPresence(resource.clone(), Key::new(text("namespace"), name)),
                None => WhatNow::BackOff,
            }
        }
        Effect::Create { resource, .. } if error.may_have_been_done() => WhatNow::ListAgain(resource.clone()),
        Effect::Patch { resource, .. } | Effect::StrategicPatch { resource, .. } if error.retry() == Retry::Now => {
            WhatNow::AwaitChange(resource.clone())
        }
        _ => WhatNow::BackOff,
    }
}

#[cfg(test)]
mod tests;
