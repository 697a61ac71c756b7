//! How a pod ends: it is deleted, gone, too old, or simply done.
//!
//! ```text
//! containers stop (sidecars last, in reverse) ──► sandbox goes ──► files go ──► final status ──► API delete
//! ```
//! A pod that is only done keeps its dead containers and its files until it is deleted, for whoever reads its logs.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use corten_api::core::v1::Container;
use corten_meta::Time;
use corten_reconcile::EventType::Normal;

use crate::{
    ApiEffect, ApiFailure, Effect, Failure, HostEffect, NodeEffect, TerminationNote,
    pod::{
        container_record::{ContainerContext, ContainerRecord},
        containers,
        context::Context,
        machine::PodMachine,
    },
    spec::pod::{is_sidecar, is_system_critical, spec_of},
};

/// Why and how far a pod is being ended.
#[derive(Debug)]
pub(crate) struct Termination {
    pub(crate) why: Why,
    pub(crate) since: Time,
    grace_seconds: i64,
    /// Its files: being removed, removed.
    files: Files,
    /// What the node keeps of it for the next run of the kubelet.
    noted: Option<TerminationNote>,
    /// The API was asked to forget it.
    delete_sent: bool,
    retry_at: Option<Time>,
}

/// Why the node ends a pod that could go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KillPodOptions {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) grace_seconds: i64,
    /// The condition `DisruptionTarget` says so, too.
    pub(crate) tells_disruption: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// No container will run again.
    Finished,
    /// `activeDeadlineSeconds` have passed.
    Deadline,
    /// The node wants it gone: it is short of something, or is about to end.
    Terminated,
    /// `metadata.deletionTimestamp` is set.
    Deleted,
    /// The API does not have it, or no longer.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Kept,
    Removing,
    Removed,
}

pub(crate) const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

impl Termination {
    fn new(why: Why, grace_seconds: i64, since: Time) -> Self {
        Self { why, since, grace_seconds, files: Files::Kept, noted: None, delete_sent: false, retry_at: None }
    }

    fn deadline(&self) -> Time {
        self.since.after(Duration::from_secs(u64::try_from(self.grace_seconds).unwrap_or(0)))
    }

    /// Nothing of the pod is left on this machine.
    pub(crate) fn is_over(&self) -> bool {
        self.files == Files::Removed
    }
}

impl PodMachine {
    /// Notices that the pod must end, or end sooner or more thoroughly than it already does.
    pub(crate) fn note_ending(&mut self, cx: &mut Context<'_>) {
        let spec_grace = self.spec().termination_grace_period_seconds.unwrap_or(30);
        let (why, grace) = if !self.in_api {
            // Whoever forced it out of the API wants it gone at once; it gets the shortest grace there is.
            (Why::Gone, if self.is_static() { spec_grace } else { 2 })
        } else if self.pod.metadata.deletion_timestamp.is_some() {
            (Why::Deleted, self.pod.metadata.deletion_grace_period_seconds.unwrap_or(spec_grace))
        } else if self.ending.is_some() {
            return;
        } else if let Some(termination) = &self.termination {
            (Why::Terminated, termination.grace_seconds)
        } else if self.is_terminal_in_api() || self.is_finished() || self.rejection().is_some() {
            (Why::Finished, spec_grace)
        } else if self.is_too_old(cx) {
            cx.event(&self.who, "", Normal, "DeadlineExceeded", DEADLINE_MESSAGE.into());
            (Why::Deadline, spec_grace)
        } else {
            return;
        };
        match &mut self.ending {
            None => {
                // What an earlier run of the kubelet has begun goes on.
                let noted = cx.config.terminations.get(&self.who.uid).filter(|_| why == Why::Deleted);
                let since = noted.map_or(cx.now, |it| it.since.min(cx.now));
                self.ending = Some(Termination { noted: noted.cloned(), ..Termination::new(why, grace, since) });
            }
            Some(ending) if ending.why < why => {
                // What was begun for a milder reason goes on: only the grace may become shorter.
                let grace = if ending.why >= Why::Deleted { grace.min(ending.grace_seconds) } else { grace };
                let files = ending.files;
                *ending = Termination { files, ..Termination::new(why, grace, cx.now) };
            }
            Some(ending) => ending.grace_seconds = ending.grace_seconds.min(grace),
        }
    }

    /// A static pod is over when its containers are, whatever became of an earlier one of its name.
    /// The node ends the pod, and says why.
    pub(crate) fn terminate(
        &mut self,
        reason: &'static str,
        message: String,
        grace_seconds: i64,
        tells_disruption: bool,
    ) {
        self.termination.get_or_insert(KillPodOptions { reason, message, grace_seconds, tells_disruption });
    }

    fn is_evicted(&self) -> bool {
        self.termination.as_ref().is_some_and(|it| it.reason == crate::node::admission::EVICTED)
    }

    /// What the pod has on the disk goes at once: the API may have to wait for that room before it can take note. What
    /// tells how the containers ended stays until it has.
    fn free_disk(&mut self, cx: &mut Context<'_>) {
        self.stop_sandboxes(cx);
        if self.sandboxes.iter().all(|it| it.is_stopped) {
            self.remove_files(cx);
        }
    }

    fn is_evicted_in_api(&self) -> bool {
        let status = self.pod.status.as_ref();
        self.is_terminal_in_api() && status.and_then(|it| it.reason.as_deref()) == Some(crate::node::admission::EVICTED)
    }

    pub(crate) fn is_terminal_in_api(&self) -> bool {
        if self.is_static() {
            return false;
        }
        let phase = self.pod.status.as_ref().and_then(|it| it.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    fn is_too_old(&self, cx: &mut Context<'_>) -> bool {
        let Some(seconds) = self.spec().active_deadline_seconds.and_then(|it| u64::try_from(it).ok()) else {
            return false;
        };
        cx.is_due(Some(self.started.after(Duration::from_secs(seconds))))
    }

    pub(crate) fn wind_down(&mut self, cx: &mut Context<'_>) {
        let Some(ending) = &self.ending else { return };
        let (why, grace, deadline) = (ending.why, ending.grace_seconds, ending.deadline());
        // What was begun must end first: a container that starts now would be missed.
        if self.sandbox_step.in_flight || self.volumes.in_flight || self.is_starting() {
            return;
        }
        let has_ended = self.stop_containers(grace, deadline, cx);
        self.note_termination(cx);
        if !has_ended || !cx.is_due(self.sandbox_step.end_retry_at) {
            return;
        }
        match why {
            // Nothing of an evicted pod may take any room.
            Why::Finished | Why::Deadline | Why::Terminated if self.is_evicted_in_api() => self.clear_away(cx),
            Why::Terminated if self.is_evicted() => self.free_disk(cx),
            Why::Finished | Why::Deadline | Why::Terminated => {
                self.stop_sandboxes(cx);
                self.release_volumes(cx);
            }
            Why::Deleted | Why::Gone => self.clear_away(cx),
        }
    }

    /// True once none is alive. Sidecars are stopped after all others, the last one first.
    pub(crate) fn stop_containers(&mut self, grace: i64, deadline: Time, cx: &mut Context<'_>) -> bool {
        let pod = self.pod.clone();
        let spec = spec_of(&pod);
        let sidecar =
            |name: &str| spec.init_containers.iter().flatten().rev().position(|it| is_sidecar(it) && it.name == name);
        let mut names: Vec<(usize, String)> = self
            .container_records
            .iter()
            .filter(|(_, record)| record.is_alive())
            .map(|(name, _)| (sidecar(name).map_or(0, |it| it + 1), name.clone()))
            .collect();
        names.sort();
        let Some((first, _)) = names.first().cloned() else { return true };
        for (_, name) in names.iter().filter(|(order, _)| *order == first) {
            let stranger = || Cow::Owned(Container { name: name.clone(), ..Container::default() });
            let container = crate::spec::pod::any_container_named(&pod, name).unwrap_or_else(stranger);
            let left = i64::try_from(deadline.since(cx.now).as_secs()).unwrap_or(grace).min(grace);
            self.with_container_record(&container, cx, |record, context: &ContainerContext<'_>, cx| {
                if record.stopping.is_none() {
                    containers::stop(record, context, None, Some(left), cx);
                } else {
                    containers::keep_stopping(record, context, Some(deadline), cx);
                }
            });
        }
        false
    }

    /// For the next run of the kubelet, where this one ends before the pod does.
    fn note_termination(&mut self, cx: &mut Context<'_>) {
        let Some(ending) = self.ending.as_mut().filter(|it| it.why == Why::Deleted) else { return };
        if !self.container_records.values().any(ContainerRecord::is_alive) {
            return;
        }
        let mut note =
            ending.noted.clone().unwrap_or_else(|| TerminationNote { since: ending.since, hooks: BTreeSet::new() });
        let ended = self.container_records.values().filter_map(|it| it.stopping.as_ref()?.ended_hook());
        note.hooks.extend(ended.cloned());
        if ending.noted.as_ref() != Some(&note) {
            ending.noted = Some(note.clone());
            cx.effects.push(Effect::Node(NodeEffect::NoteTermination { uid: self.who.uid.clone(), note }));
        }
    }

    /// Sandboxes, then files, then the API object.
    fn clear_away(&mut self, cx: &mut Context<'_>) {
        self.remove_sandboxes(|_| true, cx);
        if self.sandboxes.is_empty() {
            self.remove_files(cx);
        }
    }

    fn remove_files(&mut self, cx: &mut Context<'_>) {
        let Some(ending) = &mut self.ending else { return };
        if ending.files == Files::Kept && cx.is_due(ending.retry_at) {
            ending.files = Files::Removing;
            cx.host(HostEffect::RemovePod { pod: self.who.clone() });
        }
    }

    pub(crate) fn files_removed(&mut self, result: &Result<(), Failure>, cx: &mut Context<'_>) {
        let retry_at = self.release_retry(result, cx);
        let Some(ending) = &mut self.ending else { return };
        ending.files = if retry_at.is_none() { Files::Removed } else { Files::Kept };
        ending.retry_at = retry_at;
    }

    /// Lets the API forget a deleted pod, once its final status is there and nothing of it is left here.
    pub(crate) fn delete_from_api(&mut self, cx: &mut Context<'_>) {
        let Some(ending) = &mut self.ending else { return };
        if ending.why == Why::Deleted && ending.is_over() && !ending.delete_sent && cx.is_due(ending.retry_at) {
            ending.delete_sent = true;
            cx.api(ApiEffect::DeletePod { pod: self.who.clone() });
        }
    }

    /// The watch tells when it is really gone: finalizers may hold it.
    pub(crate) fn deleted_from_api(&mut self, result: Result<(), ApiFailure>, cx: &mut Context<'_>) {
        let Some(ending) = &mut self.ending else { return };
        if let Err(ApiFailure::Conflict | ApiFailure::Other(_)) = result {
            ending.delete_sent = false;
            ending.retry_at = Some(cx.now.after(Duration::from_secs(1)));
            cx.wake_at(cx.now.after(Duration::from_secs(1)));
        }
    }
}

impl PodMachine {
    /// It is this node's, and neither over nor on its way out.
    pub(crate) fn is_evictable(&self) -> bool {
        self.in_api
            && self.is_admitted()
            && !self.is_terminal_in_api()
            && self.ending.is_none()
            && self.termination.is_none()
    }

    /// `IsCriticalPod`: static pods, and those of a priority that the system keeps for itself.
    pub(crate) fn is_critical(&self) -> bool {
        self.is_static() || is_system_critical(&self.pod)
    }
}
