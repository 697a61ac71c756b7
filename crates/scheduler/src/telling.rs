//! What is told to whoever observes the scheduler.

use corten_meta::{Key, Time};

use crate::{
    Effect, PodInfo, Scheduler,
    observer::{ExtensionPoint, Fact, Moment, PointStatus, Span, TryResult, ran},
    queue::Try,
};

impl Scheduler {
    /// The plugin that keeps the pod out of the queue, if one does.
    pub(crate) fn gate_of(&self, info: &PodInfo) -> Option<usize> {
        let from = self.observer.moment();
        let gate = self.profiles[&info.scheduler_name].gate_of(info, &self.snapshot.pod_groups);
        let status = if gate.is_some() { PointStatus::UnschedulableAndUnresolvable } else { PointStatus::Success };
        ran(&*self.observer, (ExtensionPoint::PreEnqueue, status), &info.scheduler_name, from);
        gate
    }

    /// The search for a node has ended, however it did.
    pub(crate) fn tell_searched(&self, from: Moment) {
        self.observer.tell(&Fact::Searched(Span { from, to: self.observer.moment() }));
    }

    /// The search that a pod's try began with has ended. Those for pods of a gang are told of one by one.
    pub(crate) fn tell_own_search(&self, key: &Key, tried: Option<Try>) {
        if let Some(tried) = tried.filter(|_| self.gang_of(&self.pods[key].info).is_none()) {
            self.tell_searched(tried.began);
        }
    }

    /// A try has ended with this. Nothing where the pod was not being tried.
    pub(crate) fn tell_tried(&self, info: &PodInfo, tried: Option<Try>, result: TryResult) {
        let Some(tried) = tried else { return };
        let span = Span { from: tried.began, to: self.observer.moment() };
        self.observer.tell(&Fact::Tried { result, profile: &info.scheduler_name, span });
    }

    /// The pod that had this node here is on this one: the try has ended, well where they are the same.
    pub(crate) fn tell_on_node(&self, key: &Key, (assumed, node): (&str, &str), now: Time) {
        if assumed != node {
            return self.tell_too_late(key);
        }
        let Some((entry, tried)) = self.pods.get(key).zip(self.queue.trying(key)) else { return };
        self.tell_tried(&entry.info, Some(tried), TryResult::Scheduled);
        let waited = now.since(tried.entered);
        self.observer.tell(&Fact::Scheduled { n_tries: tried.number, waited });
    }

    /// Another scheduler has bound the pod: the try has come to nothing.
    pub(crate) fn tell_too_late(&self, key: &Key) {
        if let Some((entry, tried)) = self.pods.get(key).zip(self.queue.trying(key)) {
            self.tell_tried(&entry.info, Some(tried), TryResult::Error);
        }
    }

    /// What had to be done before a pod is bound is done, where any of this binds one.
    pub(crate) fn tell_ready(&self, wanted: &[Effect]) {
        for it in wanted {
            if let Effect::Bind { pod, .. } = it {
                self.tell_prepared(pod, PointStatus::Success);
            }
        }
    }

    pub(crate) fn tell_prepared(&self, pod: &Key, status: PointStatus) {
        if let Some((entry, tried)) = self.pods.get(pod).zip(self.queue.trying(pod)) {
            let point = (ExtensionPoint::PreBind, status);
            ran(&*self.observer, point, &entry.info.scheduler_name, tried.reserved);
        }
    }
}
