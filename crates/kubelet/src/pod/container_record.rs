//! What is known of one container by name: its attempts at the runtime, and what is under way about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::core::v1::{Container, Pod, ResourceRequirements};
use corten_meta::Time;

use crate::{
    Exit, HostEffect, Observed, ObservedContainer, PodRef, PreparedClaim, ProbeKind,
    backoff::BackOff,
    pod::{context::Context, image_state::ImageState, pinned::Pinned, probe::ProbeState, span::Span},
    spec::{container::Persistent, env_file::EnvFilesRead},
};

/// What is known of one container by name.
#[derive(Debug, Default)]
pub(crate) struct ContainerRecord {
    /// Every attempt the runtime still has, oldest first.
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) image: ImageState,
    /// What `image` and `pulls` are about; another image in the spec starts anew.
    image_name: String,
    pub(crate) image_span: Span,
    pub(crate) pulls: BackOff,
    pub(crate) restarts: BackOff,
    /// Why it does not run, where that is not plain.
    pub(crate) waiting: Option<WaitingState>,
    /// Since when it crashes: an attempt that runs for a while between two waits does not begin it anew.
    pub(crate) crashes_since: Option<Time>,
    /// A StartContainer is under way since then.
    pub(crate) starting: Option<Time>,
    /// The resources it was begun with.
    pub(crate) starting_with: Option<ResourceRequirements>,
    /// The id of an attempt and the resources it has.
    pub(crate) given: Option<(String, ResourceRequirements)>,
    /// The id of the attempt that runs again whatever its exit.
    pub(crate) restart_of: Option<String>,
    pub(crate) pinned: Pinned,
    pub(crate) stopping: Option<Stopping>,
    /// The id of the container whose postStart hook is under way.
    pub(crate) post_start: Option<String>,
    /// The id of the container whose postStart hook failed, and how.
    pub(crate) hook_failure: Option<(String, String)>,
    pub(crate) removing: BTreeSet<String>,
    pub(crate) retry_at: Option<Time>,
    /// Of the files its environment names: being read, or what they hold.
    pub(crate) env_files: EnvFilesRead,
    pub(crate) probes: BTreeMap<ProbeKind, ProbeState>,
    /// What it wrote last before it crashed.
    pub(crate) log_tail: String,
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) it: ObservedContainer,
    /// When it was learnt by an effect's outcome: an older snapshot may not have it.
    pub(crate) learnt: Option<Time>,
}

impl Attempt {
    /// How it ended is known: of a pod that is ended it stays, though the runtime forgets it with its sandbox, until the API
    /// knows it, too.
    pub(crate) fn has_ended(&self) -> bool {
        exit_of(&self.it).is_some()
    }
}

/// Reasons that take turns while one trouble lasts.
const ONE_TROUBLE: [[&str; 2]; 2] = [["ErrImagePull", "ImagePullBackOff"], ["PostStartHookError", "CrashLoopBackOff"]];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingState {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) since: Time,
}

#[derive(Debug)]
pub(crate) struct Stopping {
    pub(crate) id: String,
    pub(crate) deadline: Time,
    /// The preStop hook is still running.
    pub(crate) in_hook: bool,
    /// It was called, and is over.
    pub(crate) hook_ended: bool,
    pub(crate) retry_at: Option<Time>,
    /// So often the runtime gave no answer in time.
    pub(crate) timeouts: u32,
}

impl Stopping {
    /// The container whose preStop hook is over.
    pub(crate) fn ended_hook(&self) -> Option<&String> {
        self.hook_ended.then_some(&self.id)
    }
}

/// One container of one pod, and what the functions on its record need of both.
pub(crate) struct ContainerContext<'a> {
    pub(crate) who: &'a PodRef,
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    /// `spec.containers{web}`.
    pub(crate) field: &'a str,
    pub(crate) pod_ips: &'a [String],
    /// For an ephemeral container that has one: the id of its target, or why that is not known.
    pub(crate) target: Option<Result<String, String>>,
    /// The ids of the images that its pod's volumes are and that are there, by volume.
    pub(crate) images: &'a BTreeMap<String, String>,
    /// Its pod's volumes that outlive it, by their names in it.
    pub(crate) persistent: &'a Persistent,
    /// What drivers made of its pod's claims for devices.
    pub(crate) prepared: &'a [PreparedClaim],
}

impl ContainerRecord {
    pub(crate) fn latest(&self) -> Option<&ObservedContainer> {
        self.attempts.last().map(|it| &it.it)
    }

    pub(crate) fn latest_in(&self, sandbox: &str) -> Option<&ObservedContainer> {
        self.latest().filter(|it| it.sandbox_id == sandbox)
    }

    /// The exit before the present attempt's.
    pub(crate) fn last_exit(&self) -> Option<(&ObservedContainer, &Exit)> {
        self.attempts.iter().rev().find_map(|it| exit_of(&it.it).map(|exit| (&it.it, exit)))
    }

    pub(crate) fn running(&self) -> Option<&ObservedContainer> {
        self.attempts.iter().rev().map(|it| &it.it).find(|it| matches!(it.state, Observed::Running { .. }))
    }

    /// It was stopped to be started again.
    pub(crate) fn must_restart(&self) -> bool {
        self.restart_of.is_some() && self.restart_of.as_ref() == self.latest().map(|it| &it.id)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.attempts.iter().any(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown))
    }

    /// Takes in what the runtime shows of one attempt; a container never goes back to an earlier state.
    pub(crate) fn observe(&mut self, seen: ObservedContainer, learnt: Option<Time>) {
        let rank = |it: &Observed| match it {
            Observed::Created => 0,
            Observed::Unknown => 1,
            Observed::Running { .. } => 2,
            Observed::Exited(_) => 3,
        };
        match self.attempts.iter_mut().find(|it| it.it.id == seen.id) {
            Some(known) if rank(&seen.state) >= rank(&known.it.state) => known.it = seen,
            Some(_) => {}
            None => {
                self.attempts.push(Attempt { it: seen, learnt });
                self.attempts.sort_by(|a, b| (a.it.attempt, &a.it.id).cmp(&(b.it.attempt, &b.it.id)));
            }
        }
        self.settle();
    }

    /// Forgets the other attempts: the runtime does not have them any more.
    pub(crate) fn retain(&mut self, stays: impl Fn(&Attempt) -> bool) {
        self.attempts.retain(stays);
        self.settle();
    }

    /// A stop is over when its container no longer runs; so is a hook.
    fn settle(&mut self) {
        let alive = |id: &str| {
            let found = self.attempts.iter().find(|it| it.it.id == id);
            found.is_some_and(|it| matches!(it.it.state, Observed::Running { .. } | Observed::Unknown))
        };
        if self.stopping.as_ref().is_some_and(|it| !alive(&it.id)) {
            self.stopping = None;
        }
        if self.post_start.as_ref().is_some_and(|it| !alive(it)) {
            self.post_start = None;
        }
    }

    /// It is on its way to run, or its postStart hook is.
    pub(crate) fn is_beginning(&self) -> bool {
        let gets_image =
            matches!(self.image, ImageState::Inspecting | ImageState::Pulling { .. } | ImageState::Present(_));
        gets_image || self.starting.is_some() || self.post_start.is_some()
    }

    pub(crate) fn use_image(&mut self, name: &str) {
        if self.image_name != name {
            self.image_name = name.into();
            (self.image, self.pulls, self.waiting) = (ImageState::Idle, BackOff::default(), None);
        }
    }

    pub(crate) fn wait(&mut self, reason: &'static str, message: impl Into<String>, now: Time) {
        let is_same =
            |other: &str| other == reason || ONE_TROUBLE.iter().any(|it| it.contains(&other) && it.contains(&reason));
        let since = self.waiting.as_ref().filter(|it| is_same(it.reason)).map_or(now, |it| it.since.min(now));
        self.waiting = Some(WaitingState { reason, message: message.into(), since });
    }

    /// Its postStart hook is under way.
    pub(crate) fn is_in_post_start(&self) -> bool {
        self.post_start.is_some() && self.post_start.as_ref() == self.running().map(|it| &it.id)
    }

    pub(crate) fn is_stopping(&self, id: &str) -> bool {
        self.stopping.as_ref().is_some_and(|it| it.id == id)
    }

    /// The startup probe, where there is one, has passed.
    pub(crate) fn is_started(&self, container: &Container) -> bool {
        // Seen to run before its start was told: a postStart hook may still have to be called.
        if self.starting.is_some() {
            return false;
        }
        let Some(running) = self.running().filter(|it| self.post_start.as_ref() != Some(&it.id)) else { return false };
        container.startup_probe.is_none() || self.passed(ProbeKind::Startup, &running.id) == Some(true)
    }

    pub(crate) fn is_ready(&self, container: &Container) -> bool {
        let Some(running) = self.running() else { return false };
        self.is_started(container)
            && (container.readiness_probe.is_none() || self.passed(ProbeKind::Readiness, &running.id) == Some(true))
    }

    /// No row of answers was long enough yet to say anything of the running container.
    pub(crate) fn is_unprobed(&self, kind: ProbeKind) -> bool {
        self.running().is_some_and(|it| self.passed(kind, &it.id).is_none())
    }

    pub(crate) fn passed(&self, kind: ProbeKind, id: &str) -> Option<bool> {
        self.probes.get(&kind).filter(|it| it.id == id).and_then(|it| it.passed)
    }

    /// Lets go of dead attempts, all but the newest two: one to show, one for `logs --previous`.
    pub(crate) fn prune(&mut self, who: &PodRef, cx: &mut Context<'_>) {
        let surplus = self.attempts.len().saturating_sub(2);
        for known in &self.attempts[..surplus] {
            if exit_of(&known.it).is_some() && self.removing.insert(known.it.id.clone()) {
                cx.host(remove(who, &known.it));
            }
        }
    }

    /// Lets go of dead attempts that take room: all, or all but the newest.
    pub(crate) fn drop_dead(&mut self, who: &PodRef, keeps_newest: bool, cx: &mut Context<'_>) {
        let n_dropped = self.attempts.len().saturating_sub(usize::from(keeps_newest));
        for known in &self.attempts[..n_dropped] {
            if exit_of(&known.it).is_some() && self.removing.insert(known.it.id.clone()) {
                cx.host(remove(who, &known.it));
            }
        }
    }

    pub(crate) fn removed(&mut self, id: &str, is_gone: bool, now: Time) {
        self.removing.remove(id);
        if is_gone {
            self.attempts.retain(|it| it.it.id != id);
        } else {
            self.retry_at = Some(now.after(Duration::from_secs(5)));
        }
    }
}

pub(crate) fn exit_of(container: &ObservedContainer) -> Option<&Exit> {
    match &container.state {
        Observed::Exited(exit) => Some(exit),
        _ => None,
    }
}

pub(crate) fn remove(who: &PodRef, it: &ObservedContainer) -> HostEffect {
    HostEffect::RemoveContainer { pod: who.clone(), container: it.name.clone(), id: it.id.clone(), attempt: it.attempt }
}
