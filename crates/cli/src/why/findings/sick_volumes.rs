//! Volumes that are not well: nodes and drivers tell by events, and their Pods and claims look as if all were fine.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::resources::EVENTS;
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{items, one_line, text, time},
    gather::{warning_events, when},
    reader::Reader,
};

const REASON: &str = "VolumeConditionAbnormal";
/// That it is over.
const OVER: &str = "VolumeConditionNormal";
/// It is told once a minute for as long as it lasts, and after half an hour every five minutes: events of one object are limited.
const LASTS: Duration = Duration::from_secs(390);

/// The kind and the key of an object.
type Id = (String, Key);

pub(super) async fn of(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let warnings = warning_events(reader, object).await;
    let mut sick: Vec<_> = warnings.iter().filter(|it| is_lately(it, reader.now)).collect();
    if let Some(first) = sick.first() {
        let over = over_in(reader, &about(first).1.namespace).await;
        sick.retain(|it| !is_over(it, &over));
    }
    for event in sick {
        let n_before = found.waits.len();
        let message = one_line(text(event, "/message"));
        let wait = Wait::new(REASON, &*message, Actor::Operator);
        found.wait(match claim_of(object, &message) {
            Some(claim) => wait.on("PersistentVolumeClaim", claim),
            None => wait,
        });
        found.begun(n_before, time(&event["firstTimestamp"]));
        // It may be bound, and is not fine.
        found.verdict = None;
    }
}

/// Which claim's volume a Pod is told of (`Volume NAME: …`): that is told so, too, and both are one cause.
fn claim_of<'a>(pod: &'a Value, message: &str) -> Option<&'a str> {
    let (name, _) = message.strip_prefix("Volume ")?.split_once(": ")?;
    let volume = items(pod, "/spec/volumes").iter().find(|it| it["name"] == name)?;
    Some(text(volume, "/persistentVolumeClaim/claimName")).filter(|it| !it.is_empty())
}

/// The kind and the key of each that has a sick volume: nothing in the object tells it.
pub(in crate::why) async fn those_in(reader: &Reader<'_>, namespace: &str) -> BTreeSet<Id> {
    let events = reader.list_where(&EVENTS, namespace, &format!("reason={REASON}")).await;
    let sick: Vec<_> = events.iter().filter(|it| is_lately(it, reader.now)).collect();
    if sick.is_empty() {
        return BTreeSet::new();
    }
    let over = over_in(reader, namespace).await;
    sick.into_iter().filter(|it| !is_over(it, &over)).map(about).collect()
}

/// When each was last told to be well again.
async fn over_in(reader: &Reader<'_>, namespace: &str) -> BTreeMap<Id, Time> {
    let mut over = BTreeMap::new();
    for event in reader.list_where(&EVENTS, namespace, &format!("reason={OVER}")).await.iter() {
        let Some(at) = at(event) else { continue };
        let last = over.entry(about(event)).or_insert(at);
        *last = at.max(*last);
    }
    over
}

fn is_over(event: &Value, over: &BTreeMap<Id, Time>) -> bool {
    at(event).zip(over.get(&about(event))).is_some_and(|(sick, well)| *well >= sick)
}

fn about(event: &Value) -> Id {
    let key = Key::new(text(event, "/involvedObject/namespace"), text(event, "/involvedObject/name"));
    (text(event, "/involvedObject/kind").to_owned(), key)
}

fn at(event: &Value) -> Option<Time> {
    time(&Value::from(when(event)))
}

fn is_lately(event: &Value, now: Time) -> bool {
    text(event, "/reason") == REASON && at(event).is_some_and(|it| it.after(LASTS) >= now)
}
