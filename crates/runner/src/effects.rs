//! Carries out a plan's effects in their order, up to the first that fails, and says what the caches must show of them.
//!
//! Only creates that follow each other and are of one resource go side by side: none of them can rest on another.

use std::collections::VecDeque;

use corten_client::{Client, DeleteParams, Error, PatchType, decode, version_number};
use corten_meta::{Key, ObjectMeta, Resource, Retry, Status};
use corten_reconcile::{Answer, Effect};
use futures_util::{StreamExt, stream::FuturesOrdered};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::barrier::Need;

const CONCURRENT_CREATES: usize = 32;

/// What became of one plan.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) needs: Vec<Need>,
    pub(crate) answers: Vec<(Resource, Key, Answer)>,
    /// Where one thing failed nothing more was begun; what was under way may have failed too. In the plan's order.
    pub(crate) failures: Vec<Failure>,
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

pub(crate) async fn perform(client: &Client, effects: Vec<Effect>) -> Outcome {
    let mut outcome = Outcome::default();
    // Events have their own queue, so that no plan waits for them.
    let mut effects: VecDeque<_> = effects.into_iter().filter(|it| !matches!(it, Effect::Event { .. })).collect();
    while let Some(effect) = effects.pop_front()
        && outcome.failures.is_empty()
    {
        if let Effect::Create { resource, .. } = &effect {
            let n_more =
                effects.iter().take_while(|it| matches!(it, Effect::Create { resource: of, .. } if of == resource));
            let n_more = n_more.count();
            let creates = std::iter::once(effect).chain(effects.drain(..n_more)).collect();
            create_all(client, creates, &mut outcome).await;
        } else if let Err(error) = one(client, &effect, &mut outcome).await {
            outcome.failed(effect, error);
        }
    }
    outcome
}

/// Creates many of one resource, several at once: the first goes alone, and each that goes well lets one more go beside
/// it, so that a quota that is used up or a refusal by admission is met once and not by all.
async fn create_all(client: &Client, creates: Vec<Effect>, outcome: &mut Outcome) {
    let mut creates = creates.into_iter();
    // In the plan's order, whatever order they end in.
    let mut under_way = FuturesOrdered::new();
    let mut room = 1;
    loop {
        while under_way.len() < room
            && outcome.failures.is_empty()
            && let Some(effect) = creates.next()
        {
            under_way.push_back(async move {
                let mut made = Outcome::default();
                let result = one(client, &effect, &mut made).await;
                (effect, made.needs, result)
            });
        }
        let Some((effect, needs, result)) = under_way.next().await else { return };
        outcome.needs.extend(needs);
        match result {
            Ok(()) => room = CONCURRENT_CREATES.min(room + 1),
            Err(error) => outcome.failed(effect, error),
        }
    }
}

impl Outcome {
    fn failed(&mut self, effect: Effect, error: Error) {
        let what_now = what_now(&effect, &error);
        self.failures.push(Failure { effect, error, what_now });
    }
}

async fn one(client: &Client, effect: &Effect, outcome: &mut Outcome) -> Result<(), Error> {
    match effect {
        Effect::Create { resource, object } => {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let created = client.create(resource, namespace, object).await?;
            outcome.needs.push(written(resource, &created)?);
        }
        // The API has no PATCH for this one subresource: what a patch would do is done by a conditional PUT.
        Effect::Patch { resource, key, subresource: Some("finalize"), patch } => {
            let mut object: Value = client.get_as(resource, key).await?;
            let uid = &patch["metadata"]["uid"];
            if !uid.is_null() && *uid != object["metadata"]["uid"] {
                return Err(Status::conflict(resource, &key.name, "another object has this name now").into());
            }
            merge(&mut object, patch);
            let replaced = client.replace(resource, key, "finalize", &object).await?;
            outcome.needs.push(written(resource, &replaced)?);
        }
        Effect::Patch { resource, key, subresource, patch } => {
            let subresource = subresource.unwrap_or_default();
            let patched = client.patch(resource, key, subresource, &PatchType::Merge, patch).await?;
            outcome.needs.push(written(resource, &patched)?);
        }
        Effect::Delete { resource, key, uid, propagation, grace_seconds } => {
            let params = DeleteParams {
                grace_seconds: *grace_seconds,
                propagation: propagation.as_str(),
                uid: Some(uid.clone()),
                resource_version: None,
            };
            match client.delete(resource, key, &params).await {
                // A conflict says that another object has this name now: the one meant is gone.
                Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
                _ => {}
            }
            outcome.needs.push(Need::Going { resource: resource.clone(), key: key.clone(), uid: uid.clone() });
        }
        Effect::Ask { resource, key } => {
            let answer = match client.get_as::<Written>(resource, key).await {
                Ok(found) => Answer::Found { uid: found.metadata.uid },
                Err(error) if error.is_not_found() => Answer::Missing,
                Err(error) => return Err(error),
            };
            outcome.answers.push((resource.clone(), key.clone(), answer));
        }
        Effect::Event { .. } => {}
    }
    Ok(())
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
struct Written {
    metadata: ObjectMeta,
}

fn written(resource: &Resource, object: &[u8]) -> Result<Need, Error> {
    let object: Written = decode(object)?;
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
        Effect::Patch { resource, .. } if error.retry() == Retry::Now => WhatNow::AwaitChange(resource.clone()),
        _ => WhatNow::BackOff,
    }
}

#[cfg(test)]
mod tests;
