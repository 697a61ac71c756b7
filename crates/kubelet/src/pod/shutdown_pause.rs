//! A pod that is paused for the node's shutdown: its containers are stopped, and the pod stays what it is.
//!
//! Nothing is told to the API, and no container's exit counts: after the boot, or once the end is called off, each
//! container that was stopped runs again, with its volumes, whatever its exit code and the pod's restart policy. Only a
//! pod whose policy lets nothing run again cannot be paused.

use std::{collections::BTreeSet, time::Duration};

use corten_meta::Time;

use crate::{
    Exit,
    pod::{container_record::ContainerRecord, context::Context, machine::PodMachine},
    spec::pod::restarts,
};

/// How a container ends that heeds SIGTERM.
const STOPPED: i32 = 143;

/// Since when a pod is being paused for the node's shutdown, and how long its containers have to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShutdownPause {
    since: Time,
    grace_seconds: i64,
}

impl PodMachine {
    /// Its policy lets some container run again.
    pub(crate) fn can_pause(&self) -> bool {
        let stopped = Exit { code: STOPPED, ..Exit::default() };
        self.spec().containers.iter().any(|it| restarts(&self.pod, it, &stopped))
    }

    pub(crate) fn begin_shutdown_pause(&mut self, grace_seconds: i64, now: Time) {
        self.shutdown_pause = Some(ShutdownPause { since: now, grace_seconds });
    }

    /// Nothing of it runs, and its network is taken down.
    pub(crate) fn is_paused(&self) -> bool {
        let is_busy = self.sandbox_step.in_flight || self.volumes.in_flight || self.may_run();
        !is_busy && self.sandboxes.iter().all(|it| it.is_stopped)
    }

    /// Marks what runs as stopped for the machine's end; the ids of these containers.
    pub(crate) fn mark_stops(&mut self) -> Vec<String> {
        let running = self.container_records.values_mut().filter_map(|record| {
            let id = record.running()?.id.clone();
            record.restart_of = Some(id.clone());
            Some(id)
        });
        running.collect()
    }

    /// Takes in what was stopped for the end of the machine's run before this one.
    pub(crate) fn heed_stops(&mut self, stopped: &BTreeSet<String>) {
        let was_stopped = |it: &ContainerRecord| it.latest().is_some_and(|it| stopped.contains(&it.id));
        for record in self.container_records.values_mut().filter(|it| it.restart_of.is_none() && was_stopped(it)) {
            record.restart_of = record.latest().map(|it| it.id.clone());
        }
    }

    /// Containers stop, sidecars last, and then the network.
    pub(crate) fn pause_for_shutdown(&mut self, cx: &mut Context<'_>) {
        let Some(ShutdownPause { since, grace_seconds }) = self.shutdown_pause else { return };
        // What was begun must end first: a container that starts now would be missed.
        if self.sandbox_step.in_flight || self.volumes.in_flight || self.is_starting() {
            return;
        }
        let deadline = since.after(Duration::from_secs(u64::try_from(grace_seconds).unwrap_or(0)));
        if self.stop_containers(grace_seconds, deadline, cx) && cx.is_due(self.sandbox_step.end_retry_at) {
            self.stop_sandboxes(cx);
        }
    }
}

impl PodMachine {
    /// Something of it runs or is about to.
    pub(crate) fn is_active(&self) -> bool {
        let goes_on = match (&self.ending, &self.shutdown_pause) {
            (Some(_), _) => self.may_run(),
            (None, Some(_)) => !self.is_paused(),
            (None, None) => true,
        };
        self.is_admitted() && !self.is_terminal_in_api() && goes_on
    }
}
