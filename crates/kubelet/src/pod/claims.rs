//! What is known of a pod's volumes that outlive it: each is asked for at the API until it can be mounted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use corten_meta::Time;

use crate::{
    ApiEffect, Backend, Effect, Failure, HostEffect, NodeEffect, PersistentMount, TokenWish, VolumeRead,
    backoff::pause,
    node::admission::Rejection,
    pod::{container_record::ContainerRecord, context::Context, machine::PodMachine, termination::Termination},
    spec::{
        claims::{exhausted, in_place, is_unattached, name, resolve},
        container::Persistent,
        pod::spec_of,
        volumes::{Lasting, Problem, ProblemKind},
    },
};

/// A claim may be bound any moment: it is asked for again after so many seconds at the latest.
const RETRY_SECONDS_MAX: u64 = 4;
/// So long upstream's kubelet waits for a volume to be attached before it says so, or gives the pod up (`podAttachAndMountTimeout`).
pub(super) const ATTACH_PATIENCE: Duration = Duration::from_secs(123);
/// The longest pause before drivers are asked again to take back what the pod had: they may be registering just now.
const RELEASE_SECONDS_MAX: u64 = 15;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    slots: BTreeMap<String, Slot>,
    /// Those that can be mounted, by their names in the pod.
    resolved: Arc<Persistent>,
    renewal: Renewal,
    release: Release,
    /// Why what outlives the pod is not given back, and since when.
    pub(crate) release_problem: Option<(String, Time)>,
    release_failures: u32,
}

/// What drivers are told is read anew before they are told it again: Secrets change.
#[derive(Debug, Default)]
enum Renewal {
    #[default]
    Done,
    Wanted,
    /// These are being read.
    InFlight(BTreeSet<String>),
}

/// What outlives a pod that is done is unmounted, for others to have it.
#[derive(Debug, Default)]
enum Release {
    #[default]
    Kept,
    InFlight,
    RetryAt(Time),
    Done,
}

#[derive(Debug, Default)]
struct Slot {
    in_flight: bool,
    failures: u32,
    retry_at: Option<Time>,
    problem: Option<String>,
}

impl Claims {
    pub(crate) fn resolved(&self) -> Arc<Persistent> {
        self.resolved.clone()
    }

    /// As `status.volumesInUse` names them: the volumes that may not be detached yet.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = String> {
        let mounts = self.resolved.values().filter(|_| !matches!(self.release, Release::Done));
        mounts.filter_map(|it| match &it.backend {
            Backend::Csi(it) if it.is_attached => Some(format!("kubernetes.io/csi/{}^{}", it.driver, it.handle)),
            _ => None,
        })
    }

    /// The tokens that drivers of these volumes ask for.
    pub(crate) fn token_wishes(&self) -> Vec<TokenWish> {
        let of = |it: &PersistentMount| match &it.backend {
            Backend::Csi(it) => it.token_wishes.clone(),
            _ => Vec::new(),
        };
        self.resolved.values().flat_map(of).collect()
    }

    fn resolve(&mut self, volume: &str, mount: PersistentMount) {
        Arc::make_mut(&mut self.resolved).insert(volume.to_owned(), mount);
    }
}

impl Lasting for Claims {
    fn mount(&self, volume: &str) -> Result<PersistentMount, Problem> {
        if let Some(it) = self.resolved.get(volume) {
            return Ok(it.clone());
        }
        let problem = self.slots.get(volume).and_then(|it| it.problem.clone());
        let (kind, message) = match problem {
            Some(it) if is_unattached(&it) => (ProblemKind::Unattached, it),
            Some(it) => (ProblemKind::Missing, it),
            None => (ProblemKind::Asked, format!("volume {volume:?} is asked for")),
        };
        Err(Problem { volume: volume.to_owned(), kind, message })
    }
}

impl PodMachine {
    /// Asks for the volumes of which it is not known yet what to mount.
    pub(crate) fn read_volumes(&mut self, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        for volume in spec_of(&pod).volumes.iter().flatten() {
            if self.claims.resolved.contains_key(&volume.name) {
                continue;
            }
            if let Some(mount) = in_place(volume) {
                self.claims.resolve(&volume.name, mount);
                continue;
            }
            let Some(name) = name(&pod, volume) else { continue };
            let slot = self.claims.slots.entry(volume.name.clone()).or_default();
            if slot.in_flight || !cx.is_due(slot.retry_at) {
                continue;
            }
            slot.in_flight = true;
            cx.api(ApiEffect::ReadVolume { pod: self.who.clone(), volume: volume.name.clone(), name });
        }
    }

    /// Once drivers are to be told again what they were told before.
    pub(crate) fn volumes_are_stale(&mut self) {
        self.claims.renewal = Renewal::Wanted;
    }

    /// True once what drivers are told again has been read anew; where that was not to be had it is what was read before.
    pub(crate) fn renew_volumes(&mut self, cx: &mut Context<'_>) -> bool {
        if matches!(self.claims.renewal, Renewal::Wanted) {
            let (pod, mut asked) = (self.pod.clone(), BTreeSet::new());
            for volume in spec_of(&pod).volumes.iter().flatten() {
                let of_driver = |it: &PersistentMount| matches!(it.backend, Backend::Csi(_));
                let is_known = self.claims.resolved.get(&volume.name).is_some_and(of_driver);
                if let Some(name) = name(&pod, volume).filter(|_| is_known) {
                    cx.api(ApiEffect::ReadVolume { pod: self.who.clone(), volume: volume.name.clone(), name });
                    asked.insert(volume.name.clone());
                }
            }
            self.claims.renewal = Renewal::InFlight(asked);
        }
        if let Renewal::InFlight(asked) = &self.claims.renewal
            && !asked.is_empty()
        {
            return false;
        }
        self.claims.renewal = Renewal::Done;
        true
    }

    /// `PodCouldHaveRunningContainers`: a pod that is done holds no volume, though it is deleted much later.
    pub(crate) fn release_volumes(&mut self, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        let is_lasting = |it: &corten_api::core::v1::Volume| name(&pod, it).is_some() || in_place(it).is_some();
        let has_some = self.has_device_claims() || spec_of(&pod).volumes.iter().flatten().any(is_lasting);
        let is_due = match self.claims.release {
            Release::Kept => true,
            Release::RetryAt(at) => cx.is_due(Some(at)),
            Release::InFlight | Release::Done => false,
        };
        if has_some && is_due && self.sandboxes.iter().all(|it| it.is_stopped) {
            self.claims.release = Release::InFlight;
            cx.host(HostEffect::ReleaseVolumes { pod: self.who.clone() });
        }
    }

    pub(crate) fn volumes_released(&mut self, result: &Result<(), Failure>, cx: &mut Context<'_>) {
        self.claims.release = self.release_retry(result, cx).map_or(Release::Done, Release::RetryAt);
    }

    /// When it is tried again, where it failed.
    pub(crate) fn release_retry(&mut self, result: &Result<(), Failure>, cx: &mut Context<'_>) -> Option<Time> {
        let since = self.claims.release_problem.take().map_or(cx.now, |it| it.1);
        let Err(failure) = result else {
            self.claims.release_failures = 0;
            return None;
        };
        self.claims.release_problem = Some((failure.message.clone(), since));
        self.claims.release_failures += 1;
        let retry_at = cx.now.after(pause(self.claims.release_failures, RELEASE_SECONDS_MAX));
        cx.wake_at(retry_at);
        Some(retry_at)
    }

    /// Its drivers may have devices prepared that they have not taken back.
    pub(crate) fn holds_device_claims(&self) -> bool {
        let is_gone = self.ending.as_ref().is_some_and(Termination::is_over);
        self.has_device_claims() && !is_gone && !matches!(self.claims.release, Release::Done)
    }

    pub(crate) fn volume_read(&mut self, volume: &str, result: Result<Box<VolumeRead>, String>, cx: &mut Context<'_>) {
        let pod = self.pod.clone();
        let Some(wanted) = spec_of(&pod).volumes.iter().flatten().find(|it| it.name == volume) else { return };
        let runs = self.container_records.values().any(ContainerRecord::is_alive);
        if let Renewal::InFlight(asked) = &mut self.claims.renewal
            && asked.remove(volume)
        {
            // What cannot be read now is told as it was: the pod has the volume.
            if let Ok(mount) = result.and_then(|read| resolve(&pod, wanted, &read, runs)) {
                self.claims.resolve(volume, mount);
            }
            return;
        }
        let exhausted = result.as_ref().ok().and_then(|it| exhausted(it)).map(str::to_owned);
        let slot = self.claims.slots.entry(volume.to_owned()).or_default();
        slot.in_flight = false;
        match result.and_then(|read| resolve(&pod, wanted, &read, runs)) {
            Ok(mount) => {
                self.claims.slots.remove(volume);
                self.claims.resolve(volume, mount);
            }
            Err(problem) => {
                slot.failures += 1;
                slot.retry_at = Some(cx.now.after(pause(slot.failures, RETRY_SECONDS_MAX)));
                slot.problem = Some(problem);
                if let Some(driver) = exhausted {
                    self.lacks_place(driver, cx);
                }
            }
        }
    }

    /// Gives the pod up, once it has waited for as long as `WaitForAttachAndMount` does: whoever made it makes another one, which the
    /// scheduler places by the number of volumes that the driver says then.
    fn lacks_place(&mut self, driver: String, cx: &mut Context<'_>) {
        let has_waited = self.volumes.span.started.is_some_and(|it| cx.now.since(it) >= ATTACH_PATIENCE);
        if has_waited && self.ending.is_none() && !self.has_containers() {
            cx.effects.push(Effect::Node(NodeEffect::AskVolumeLimit { driver }));
            let message = "Node has reached its volume attachment limit, rejecting pod".to_owned();
            let rejection = Rejection { reason: "VolumeAttachmentLimitExceeded", message };
            self.admission.verdict = Some(Err(rejection));
            self.note_rejection(cx);
        }
    }
}
