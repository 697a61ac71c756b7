//! How a pod's sandboxes are stopped and removed, and what is told where that cannot be done.

use std::time::Duration;

use corten_reconcile::EventType::Warning;

use crate::{
    Effect, Failure, HostEffect, NodeEffect, ObservedSandbox,
    pod::{context::Context, machine::PodMachine},
};

/// The reason of the kubelet's event, and here of the wait.
pub(crate) const FAILED_KILL_POD: &str = "FailedKillPod";

/// A stop that the runtime has not answered so often, minutes each, is not its to answer any more.
const TIMEOUTS_MAX: u32 = 2;

impl PodMachine {
    pub(crate) fn remove_sandboxes(&mut self, which: impl Fn(&ObservedSandbox) -> bool, cx: &mut Context<'_>) {
        if !cx.is_due(self.sandbox_step.end_retry_at) {
            return;
        }
        for known in self.sandboxes.iter().filter(|it| which(&it.it)) {
            if self.removing.insert(known.it.id.clone()) {
                cx.host(HostEffect::RemoveSandbox { pod: self.who.clone(), id: known.it.id.clone() });
            }
        }
    }

    pub(crate) fn stop_sandboxes(&mut self, cx: &mut Context<'_>) {
        if !cx.is_due(self.sandbox_step.end_retry_at) {
            return;
        }
        for known in self.sandboxes.iter().filter(|it| !it.is_stopped) {
            if self.removing.insert(known.it.id.clone()) {
                cx.host(HostEffect::StopSandbox { pod: self.who.clone(), id: known.it.id.clone() });
            }
        }
    }

    /// A sandbox was stopped (it stays, not ready) or removed (it is gone with all its containers).
    pub(crate) fn sandbox_ended(
        &mut self,
        id: &str,
        was_removed: bool,
        result: Result<(), Failure>,
        cx: &mut Context<'_>,
    ) {
        self.removing.remove(id);
        self.sandbox_step.end_retry_at = None;
        if let Err(failure) = result {
            // The next look tries again; a pause keeps that from being a loop.
            self.sandbox_step.end_retry_at = Some(cx.now.after(Duration::from_secs(5)));
            cx.wake_at(cx.now.after(Duration::from_secs(5)));
            self.sandbox_step.end_timeouts = if failure.is_timeout() { self.sandbox_step.end_timeouts + 1 } else { 0 };
            if self.sandbox_step.end_timeouts >= TIMEOUTS_MAX {
                self.end_by_force(cx);
            }
            return self.sandbox_stays(failure.message, cx);
        }
        (self.sandbox_step.end_problem, self.sandbox_step.end_timeouts) = (None, 0);
        if was_removed {
            self.sandboxes.retain(|it| it.it.id != id);
            let is_ending = self.ending.is_some();
            for record in self.container_records.values_mut() {
                record.retain(|it| it.it.sandbox_id != id || (is_ending && it.has_ended()));
            }
        } else if let Some(known) = self.sandboxes.iter_mut().find(|it| it.it.id == id) {
            (known.it.ready, known.is_stopped) = (false, true);
            known.learnt = Some(cx.now);
        }
    }

    /// A container could not be stopped. Where the runtime gives no answer again and again, as one whose shim is stuck, the
    /// pod is ended without it.
    pub(crate) fn container_stays(&mut self, name: &str, failure: &Failure, cx: &mut Context<'_>) {
        let stopping = self.container_records.get(name).and_then(|it| it.stopping.as_ref());
        let Some(timeouts) = stopping.map(|it| it.timeouts).filter(|_| self.ending.is_some()) else { return };
        let message = &failure.message;
        let shim = self.sandboxes.last().map(|it| it.it.id.clone()).unwrap_or_default();
        let shim = format!("its shim is containerd-shim-runc-v2 -id {shim}");
        let problem = match timeouts {
            0 => format!("does not end container {name}, and is asked every 5 s: {message}"),
            it if it < TIMEOUTS_MAX => {
                format!(
                    "does not end container {name}, is asked once more, and then all of the pod is killed: {message}"
                )
            }
            _ => format!("did not end container {name}: all of the pod was killed, and the shim: {message}"),
        };
        let since = self.stop_problem.as_ref().map(|it| it.1);
        self.stop_problem = Some((format!("the runtime {problem}; {shim}"), since.unwrap_or(cx.now)));
        if timeouts >= TIMEOUTS_MAX {
            self.end_by_force(cx);
        }
        if timeouts >= TIMEOUTS_MAX || since.is_none() {
            let text = format!(
                "error killing pod: failed to \"KillContainer\" for {name:?} with KillContainerError: {message:?}"
            );
            cx.event(&self.who, "", Warning, FAILED_KILL_POD, text);
        }
    }

    fn end_by_force(&mut self, cx: &mut Context<'_>) {
        for stopping in self.container_records.values_mut().filter_map(|it| it.stopping.as_mut()) {
            stopping.timeouts = 0;
        }
        self.sandbox_step.end_timeouts = 0;
        let sandboxes = self.sandboxes.iter().map(|it| it.it.id.clone()).collect();
        cx.effects.push(Effect::Node(NodeEffect::EndByForce { pod: self.who.clone(), sandboxes }));
    }

    /// Told once for each reason, however often it is tried again.
    fn sandbox_stays(&mut self, message: String, cx: &mut Context<'_>) {
        let since = match &self.sandbox_step.end_problem {
            Some((known, _)) if *known == message => return,
            Some((_, since)) => *since,
            None => cx.now,
        };
        let text = format!("error killing pod: failed to \"KillPodSandbox\" for \"{}\": {message}", self.who.uid);
        cx.event(&self.who, "", Warning, FAILED_KILL_POD, text);
        self.sandbox_step.end_problem = Some((message, since));
    }
}
