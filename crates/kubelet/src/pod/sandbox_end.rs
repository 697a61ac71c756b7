//! How a pod's sandboxes are stopped and removed, and what is told where that cannot be done.

use std::time::Duration;

use corten_reconcile::EventType::Warning;

use crate::{
    Failure, HostEffect, ObservedSandbox,
    pod::{context::Context, machine::PodMachine},
};

/// As upstream: the reason of the event, and here of the wait.
pub(crate) const FAILED_KILL_POD: &str = "FailedKillPod";

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
            return self.sandbox_stays(failure.message, cx);
        }
        self.sandbox_step.end_problem = None;
        if was_removed {
            self.sandboxes.retain(|it| it.it.id != id);
            for track in self.tracks.values_mut() {
                track.attempts.retain(|it| it.it.sandbox_id != id);
            }
        } else if let Some(known) = self.sandboxes.iter_mut().find(|it| it.it.id == id) {
            (known.it.ready, known.is_stopped) = (false, true);
            known.learnt = Some(cx.now);
        }
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
