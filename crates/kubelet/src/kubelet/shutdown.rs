//! The machine is about to end: containers end first, each with its grace, those of important pods last.
//!
//! ```text
//! told ──► stops are noted on disk ──► ordinary pods ──► critical pods ──► the machine may end
//!                                            │ each: is paused (see `shutdown_pause`), or fails where the node is told to fail pods
//! ```
//! As KEP-2712 has it: a group of priorities after the other; a group that is done early leaves its time to nobody. Unlike
//! upstream, pods stay what they are, unless `fails_pods` says otherwise.

use std::time::Duration;

use corten_meta::Time;

use crate::{
    Effect, Kubelet, NodeEffect, ShutdownConfig,
    node::shutdown::{MESSAGE, TERMINATED},
    pod::machine::PodMachine,
    spec::pod::is_system_critical,
};

/// How far the end has come.
#[derive(Debug)]
pub(crate) struct Shutdown {
    told: Time,
    stage: Stage,
    /// When the stage has had its time.
    until: Time,
}

/// A disk that takes longer to note a few names shall not take the containers' time.
const NOTING: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Told,
    /// The host was asked to write down what will be stopped, and has not answered.
    Noting,
    Ordinary,
    Critical,
    Done,
}

impl Stage {
    fn holds(self, machine: &PodMachine) -> bool {
        match self {
            Self::Told | Self::Noting | Self::Ordinary => !is_system_critical(&machine.pod),
            Self::Critical | Self::Done => is_system_critical(&machine.pod),
        }
    }
}

impl Kubelet {
    /// Takes note that the machine will end, or that it will not after all; names the pods that must be looked at.
    pub(crate) fn shutdown_told(&mut self, is_imminent: bool, now: Time) -> Vec<String> {
        if is_imminent {
            self.shutdown.get_or_insert(Shutdown { told: now, stage: Stage::Told, until: now.after(NOTING) });
            return Vec::new();
        }
        self.shutdown = None;
        for machine in self.pods.values_mut() {
            machine.shutdown_pause = None;
        }
        self.all()
    }

    /// What is about to be stopped stands on the disk, or could not be written there.
    pub(crate) fn stops_noted(&mut self) {
        if let Some(shutdown) = self.shutdown.as_mut().filter(|it| it.stage == Stage::Noting) {
            shutdown.until = shutdown.told;
        }
    }

    /// Nothing begins any more; what this node takes is decided after the boot.
    pub(crate) fn waits_for_boot(&self) -> bool {
        self.shutdown.is_some() && !self.config.shutdown.fails_pods
    }

    /// Ends the pods whose turn it is; names those that must be looked at, and says when to come back.
    pub(crate) fn drive_shutdown(&mut self, now: Time, effects: &mut Vec<Effect>) -> (Vec<String>, Option<Time>) {
        let mut touched = Vec::new();
        loop {
            let Some(shutdown) = &self.shutdown else { return (touched, None) };
            let (told, stage, until) = (shutdown.told, shutdown.stage, shutdown.until);
            let next = match stage {
                Stage::Done => return (touched, None),
                Stage::Told if self.note_stops(effects) => Stage::Noting,
                Stage::Noting if now < until => return (touched, Some(until)),
                Stage::Told | Stage::Noting => Stage::Ordinary,
                Stage::Ordinary | Stage::Critical => {
                    if self.is_ending(stage, until, now, &mut touched) && now < until {
                        return (touched, Some(until));
                    }
                    if stage == Stage::Ordinary { Stage::Critical } else { Stage::Done }
                }
            };
            if next == Stage::Done {
                effects.push(Effect::Node(NodeEffect::ReadyToShutDown));
            }
            let ShutdownConfig { grace, grace_critical, .. } = self.config.shutdown;
            let until = match next {
                Stage::Ordinary => told.after(grace.saturating_sub(grace_critical)),
                Stage::Critical => now.after(grace_critical),
                _ => until,
            };
            self.shutdown = Some(Shutdown { told, stage: next, until });
        }
    }

    /// Has the host write down which containers will be stopped for the machine's end: they run again after it, however
    /// they exit. False where there is nothing to write.
    fn note_stops(&mut self, effects: &mut Vec<Effect>) -> bool {
        let fails_all = self.config.shutdown.fails_pods;
        let pausing = self.pods.values_mut().filter(|it| it.in_api && it.is_active() && !fails_all && it.can_pause());
        let containers: Vec<String> = pausing.flat_map(PodMachine::mark_stops).collect();
        if containers.is_empty() {
            return false;
        }
        effects.push(Effect::Node(NodeEffect::NoteStops { containers }));
        true
    }

    /// Is there still somebody of this group who must end? Whoever has not been told yet is.
    fn is_ending(&mut self, stage: Stage, until: Time, now: Time, touched: &mut Vec<String>) -> bool {
        let fails_all = self.config.shutdown.fails_pods;
        let mut is_any_active = false;
        for (uid, machine) in self.pods.iter_mut().filter(|(_, it)| stage.holds(it) && it.in_api && it.is_active()) {
            is_any_active = true;
            if machine.termination.is_none() && machine.ending.is_none() && machine.shutdown_pause.is_none() {
                end(machine, until, now, fails_all);
                touched.push(uid.clone());
            }
        }
        // At the end the API must know of everyone who has failed.
        let is_untold = |it: &PodMachine| it.in_api && it.termination.is_some() && !it.is_terminal_in_api();
        is_any_active || (stage == Stage::Critical && self.pods.values().any(is_untold))
    }
}

/// With the pod's own grace, as far as there is time for it.
fn end(machine: &mut PodMachine, until: Time, now: Time, fails_all: bool) {
    let left = i64::try_from(until.since(now).as_secs()).unwrap_or(0);
    let own = machine.spec().termination_grace_period_seconds.unwrap_or(30);
    let grace_seconds = own.min(left).max(1);
    if !fails_all && machine.can_pause() {
        machine.begin_shutdown_pause(grace_seconds, now);
    } else {
        machine.terminate(TERMINATED, MESSAGE.into(), grace_seconds, true);
    }
}
