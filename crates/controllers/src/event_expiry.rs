//! Deletes Events that nothing has repeated for an hour: they are news, and what a store keeps of them must end.
//!
//! kube-apiserver gives each write of an Event a lease of this length (`--event-ttl`).

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, MicroTime, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Effect, Plan, Propagation, Verb, View, Wake, Watch, Write};

use crate::projections::Event;

const LIFETIME: Duration = Duration::from_secs(3600);

pub struct EventExpiry;

impl Controller for EventExpiry {
    fn name(&self) -> &'static str {
        "event-expiry"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Event>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Delete, resource: resources::EVENTS, fields: &[] }] }
    }

    /// An Event waits for nothing that anybody would ask about.
    fn about(&self) -> Option<Resource> {
        None
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(event) = view.get::<Event>(key) else { return Plan::default() };
        let end = last_seen(event).after(LIFETIME);
        if now < end {
            return Plan { wake_at: Some(end), ..Plan::default() };
        }
        let delete = Effect::Delete {
            resource: resources::EVENTS,
            key: key.clone(),
            uid: event.metadata.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: None,
        };
        Plan { effects: vec![delete], ..Plan::default() }
    }
}

/// Of the times an Event may carry, the last. One without any began with time itself.
fn last_seen(event: &Event) -> Time {
    let micro = |it: MicroTime| Time(it.0);
    let series = event.series.as_ref().and_then(|it| it.last_observed_time).map(micro);
    let ObjectMeta { creation_timestamp, .. } = event.metadata;
    [event.last_timestamp, event.event_time.map(micro), series, creation_timestamp]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(Time::from_unix_seconds(0))
}
