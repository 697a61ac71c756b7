//! What every part of the mind is given in one step: what is known beside the pod, the time, and where effects go.

use corten_meta::{ObjectReference, Time};
use corten_reconcile::EventType;

use crate::{
    ApiEffect, Config, Effect, HostEffect, NodeFacts, PodRef,
    node::{devices::Devices, managers::Managers},
    spec::{
        downward::DownwardContext, runtime_class::RuntimeClasses, services::Services, sources::Sources,
        trust_bundles::TrustBundles,
    },
};

pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) facts: Option<&'a NodeFacts>,
    pub(crate) sources: &'a Sources,
    pub(crate) services: &'a Services,
    pub(crate) runtime_classes: &'a RuntimeClasses,
    pub(crate) devices: &'a Devices,
    pub(crate) trust_bundles: &'a TrustBundles,
    pub(crate) managers: &'a Managers,
    pub(crate) now: Time,
    pub(crate) effects: Vec<Effect>,
    /// The earliest time at which this pod must be looked at again.
    pub(crate) wake: Option<Time>,
}

impl<'a> Context<'a> {
    pub(crate) fn host(&mut self, effect: HostEffect) {
        self.effects.push(Effect::Host(effect));
    }

    pub(crate) fn api(&mut self, effect: ApiEffect) {
        self.effects.push(Effect::Api(effect));
    }

    /// Looks at the pod again at `time` at the latest; the past counts as now.
    pub(crate) fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |it| it.min(time)));
    }

    /// True where `time` has come; else the pod is looked at again then.
    pub(crate) fn is_due(&mut self, time: Option<Time>) -> bool {
        match time {
            Some(time) if time > self.now => {
                self.wake_at(time);
                false
            }
            _ => true,
        }
    }

    /// `field` is empty, or the container as `spec.containers{web}`.
    pub(crate) fn event(&mut self, who: &PodRef, field: &str, kind: EventType, reason: &'static str, message: String) {
        let about = ObjectReference {
            kind: "Pod".into(),
            namespace: who.key.namespace.clone(),
            name: who.key.name.clone(),
            uid: who.uid.clone(),
            api_version: "v1".into(),
            field_path: field.into(),
            ..ObjectReference::default()
        };
        self.api(ApiEffect::Event { about, event_type: kind, reason, message });
    }

    pub(crate) fn downward_context<'b>(&self, pod_ips: &'b [String]) -> DownwardContext<'b>
    where
        'a: 'b,
    {
        DownwardContext { config: self.config, facts: self.facts, services: self.services, pod_ips }
    }
}
