//! Watches that are going on, and the events that were sent to them.

use corten_kinds::Kind;
use corten_meta::Resource;
use corten_routes::RequestInfo;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use crate::{
    registered::{counter, gauge},
    requests::{COMPONENT, SCOPES, Underway, resource_labels, scope},
};

pub struct Watches {
    going_on: IntGaugeVec,
    events: IntCounterVec,
    schedulers: IntGauge,
    controllers: IntGauge,
}

/// One watch that is going on, and whether one of the cluster's own loops has it.
pub struct WatchGuard {
    _counted: (Underway, Option<Underway>),
    events: IntCounter,
}

impl WatchGuard {
    pub fn sent(&self, n_events: usize) {
        self.events.inc_by(n_events as u64);
    }
}

impl Watches {
    pub(crate) fn new(registry: &Registry) -> Self {
        let going_on = gauge(
            registry,
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component.",
            &["verb", "group", "version", "resource", "subresource", "scope", "component"],
        );
        let name = "apiserver_watch_events_total";
        let events =
            counter(registry, name, "Number of events sent in watch clients", &["group", "version", "resource"]);
        // Asked by `componentstatuses` only.
        let loops = |name| IntGauge::new(name, "Watches of the loop.").expect("a constant name");
        Self { going_on, events, schedulers: loops("schedulers"), controllers: loops("controllers") }
    }

    /// `info` asks for the watch, of objects of `kind`.
    pub fn begin(&self, kind: &Kind, info: &RequestInfo, user: &str) -> WatchGuard {
        let of_loop = match user {
            "system:kube-scheduler" => Some(&self.schedulers),
            "system:kube-controller-manager" => Some(&self.controllers),
            _ => None,
        };
        let (group, version, resource) = resource_labels(Some(kind));
        let labels = ["WATCH", &*group, &*version, &*resource, "", scope(info), COMPONENT];
        let watch = Underway::up(&self.going_on.with_label_values(&labels));
        let events = self.events.with_label_values(&[&*group, &*version, &*resource]);
        WatchGuard { _counted: (watch, of_loop.map(Underway::up)), events }
    }

    pub fn of_schedulers(&self) -> i64 {
        self.schedulers.get()
    }

    pub fn of_controllers(&self) -> i64 {
        self.controllers.get()
    }

    pub(crate) fn forget(&self, resource: &Resource) {
        let Resource { group, version, plural, .. } = resource;
        // Nothing of it may have been watched.
        for scope in SCOPES {
            let labels = ["WATCH", &**group, &**version, &**plural, "", scope, COMPONENT];
            let _ = self.going_on.remove_label_values(&labels);
        }
        let _ = self.events.remove_label_values(&[&**group, &**version, &**plural]);
    }
}
