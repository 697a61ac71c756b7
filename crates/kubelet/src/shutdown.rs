//! The machine is about to end: pods end first, each with a grace, the important ones last.
//!
//! As upstream: a group of priorities after the other; a group that is done early leaves its time to nobody.

use std::time::Duration;

use corten_meta::Time;

use crate::{Effect, Kubelet, NodeEffect, evict::is_system_critical, pod::PodMachine};

pub(crate) const TERMINATED: &str = "Terminated";
pub(crate) const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";
pub(crate) const NOT_ADMITTED: &str = "NodeShutdown";
pub(crate) const NOT_ADMITTED_MESSAGE: &str = "Pod was rejected as the node is shutting down.";
/// Stands in the node's condition.
pub(crate) const PROBLEM: &str = "node is shutting down";

/// How long pods have when the machine is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// For all together.
    pub grace: Duration,
    /// Of these, for critical pods, which end after all others.
    pub grace_critical: Duration,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self { grace: Duration::from_secs(30), grace_critical: Duration::from_secs(10) }
    }
}

/// How far the end has come.
#[derive(Debug)]
pub(crate) struct Shutdown {
    group: Group,
    /// When the group has had its time.
    until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Ordinary,
    Critical,
    Done,
}

impl Group {
    fn holds(self, machine: &PodMachine) -> bool {
        match self {
            Self::Ordinary => !is_system_critical(&machine.pod),
            Self::Critical | Self::Done => is_system_critical(&machine.pod),
        }
    }
}

impl Kubelet {
    /// Takes note that the machine will end, or that it will not after all.
    pub(crate) fn shutdown_told(&mut self, is_imminent: bool, now: Time) {
        if !is_imminent {
            self.shutdown = None;
        } else if self.shutdown.is_none() {
            let time = self.config.shutdown.grace.saturating_sub(self.config.shutdown.grace_critical);
            self.shutdown = Some(Shutdown { group: Group::Ordinary, until: now.after(time) });
        }
    }

    /// Ends the pods whose turn it is; names those that must be looked at, and says when to come back.
    pub(crate) fn drive_shutdown(&mut self, now: Time, effects: &mut Vec<Effect>) -> (Vec<String>, Option<Time>) {
        let mut touched = Vec::new();
        loop {
            let Some(shutdown) = &self.shutdown else { return (touched, None) };
            let (group, until) = (shutdown.group, shutdown.until);
            if group == Group::Done {
                return (touched, None);
            }
            let mine = |it: &PodMachine| group.holds(it) && it.in_api;
            let alive: Vec<String> =
                self.pods.iter().filter(|(_, it)| mine(it) && it.is_active()).map(|(uid, _)| uid.clone()).collect();
            let is_told = |it: &PodMachine| it.termination.is_some() || it.ending.is_some();
            let untold = alive.iter().filter(|uid| !self.pods.get(*uid).is_some_and(is_told)).cloned();
            for uid in untold.collect::<Vec<_>>() {
                let seconds = i64::try_from(until.since(now).as_secs()).unwrap_or(0);
                if let Some(machine) = self.pods.get_mut(&uid) {
                    end(machine, seconds);
                }
                touched.push(uid);
            }
            // At the end the API must know of everyone.
            let is_untold = |it: &PodMachine| it.in_api && it.termination.is_some() && !it.is_terminal_in_api();
            let awaits = group == Group::Critical && self.pods.values().any(is_untold);
            if (awaits || !alive.is_empty()) && now < until {
                return (touched, Some(until));
            }
            let next = match group {
                Group::Ordinary => Group::Critical,
                Group::Critical | Group::Done => Group::Done,
            };
            if next == Group::Done {
                effects.push(Effect::Node(NodeEffect::ReadyToShutDown));
            }
            self.shutdown = Some(Shutdown { group: next, until: now.after(self.config.shutdown.grace_critical) });
        }
    }
}

/// The pod's own grace, as far as there is time for it.
fn end(machine: &mut PodMachine, seconds: i64) {
    let own = machine.spec().termination_grace_period_seconds.unwrap_or(30);
    machine.terminate(TERMINATED, MESSAGE.into(), own.min(seconds).max(1), true);
}

impl PodMachine {
    /// Something of it runs or is about to.
    fn is_active(&self) -> bool {
        self.is_admitted() && !self.is_terminal_in_api() && (self.ending.is_none() || self.may_run())
    }
}
