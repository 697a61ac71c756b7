//! Volumes that are not well: nodes and drivers tell by events, and their Pods and claims look as if all were fine.

use std::{collections::BTreeSet, time::Duration};

use corten_api::resources::EVENTS;
use corten_meta::{Key, Time};
use corten_reconcile::Actor;
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{one_line, text, time},
    gather::{warning_events, when},
    reader::Reader,
};

const REASON: &str = "VolumeConditionAbnormal";
/// It is told once a minute for as long as it lasts, and after half an hour every five minutes: events of one object are limited.
const LASTS: Duration = Duration::from_secs(390);

pub(super) async fn of(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let warnings = warning_events(reader, object).await;
    for event in warnings.iter().filter(|it| is_now(it, reader.now)) {
        let n_before = found.waits.len();
        found.add(REASON, one_line(text(event, "/message")), Actor::Operator);
        found.begun(n_before, time(&event["firstTimestamp"]));
        // It may be bound, and is not fine.
        found.verdict = None;
    }
}

/// The kind and the key of each that has a sick volume: nothing in the object tells it.
pub(in crate::why) async fn those_in(reader: &Reader<'_>, namespace: &str) -> BTreeSet<(String, Key)> {
    let events = reader.list_where(&EVENTS, namespace, &format!("reason={REASON}")).await;
    let about = |it: &Value| {
        let key = Key::new(text(it, "/involvedObject/namespace"), text(it, "/involvedObject/name"));
        (text(it, "/involvedObject/kind").to_owned(), key)
    };
    events.iter().filter(|it| is_now(it, reader.now)).map(about).collect()
}

fn is_now(event: &Value, now: Time) -> bool {
    let at = time(&Value::from(when(event)));
    text(event, "/reason") == REASON && at.is_some_and(|it| it.after(LASTS) >= now)
}
