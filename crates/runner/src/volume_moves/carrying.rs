//! One step of one volume's move, after a look at claim and volume as they are now.

use std::{sync::Arc, time::Duration};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES},
    volumes::MOVE_TO,
};
use corten_client::{Client, Error, PatchType};
use corten_meta::{Key, ObjectReference};
use corten_provisioner::{
    FailureKind,
    moves::{self, MoveStep, MoveView, VolumeTransfer},
};
use corten_reconcile::EventType::{self, Normal, Warning};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    About, Leaving, MoveHands,
    move_informers::{Used, pod_of},
};
use crate::{Clock, Refusal};

/// So much is copied before both are compared, and is copied anew after an interruption.
const RANGE_BYTES: u64 = 64 << 20;
/// How often the claim is told how far it is.
const TOLD_PERIOD: Duration = Duration::from_secs(1);

pub(super) type News = (ObjectReference, EventType, &'static str, String);

pub(super) struct Carrier {
    pub(super) driver: &'static str,
    pub(super) client: Client,
    pub(super) hands: Arc<dyn MoveHands>,
    pub(super) clock: Clock,
    pub(super) used: Used,
    /// What users are to be told.
    pub(super) news: Mutex<Vec<News>>,
}

/// Why a step did not come to its end.
struct Stopped {
    reason: &'static str,
    message: String,
    is_final: bool,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self { reason: "MoveRetrying", message: error.to_string(), is_final: false }
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        let Refusal { message, is_exhausted, kind } = refusal;
        let reason = if is_exhausted { "MoveNoRoom" } else { "MoveRetrying" };
        Self { reason, message, is_final: kind == FailureKind::Infeasible && !is_exhausted }
    }
}

impl Carrier {
    /// True: nothing is left to be tried again.
    pub(super) async fn carry(&self, about: About) -> bool {
        match self.attempt(&about).await {
            Ok(is_done) => is_done,
            Err(Stopped { reason, message, is_final }) => {
                let told = match (&about.claim, is_final) {
                    (Some(key), true) => self.refuse(key, &message).await,
                    (Some(key), false) => self.tell(key, Some((true, reason, &message))).await.map(|_| false),
                    (None, _) => Ok(false),
                };
                told.inspect_err(|error| tracing::debug!(%error, "a claim is not told of its move")).unwrap_or(false)
            }
        }
    }

    async fn attempt(&self, about: &About) -> Result<bool, Stopped> {
        let volume: Option<PersistentVolume> = match &about.volume {
            Some(name) => self.found(&PERSISTENT_VOLUMES, &Key::cluster(name.as_str())).await?,
            None => None,
        };
        self.refuse_strangers(about, volume.as_ref()).await?;
        if volume.as_ref().is_some_and(|it| claim_of(it) != about.claim) {
            // The volume says so by now; it is looked at again when that is seen.
            return Ok(true);
        }
        let claim: Option<PersistentVolumeClaim> = match &about.claim {
            Some(key) => self.found(&PERSISTENT_VOLUME_CLAIMS, key).await?,
            None => None,
        };
        let view = view(self.driver, about, claim.as_ref(), volume.as_ref());
        let key = about.claim.as_ref().filter(|_| claim.is_some());
        match (moves::next(&view), &volume, key) {
            (MoveStep::Rest, ..) => Ok(true),
            (MoveStep::Refuse(why), _, Some(key)) => Ok(self.refuse(key, &why).await?),
            (MoveStep::Wait { reason, message }, _, Some(key)) => {
                self.tell(key, Some((true, reason, &message))).await?;
                // What is waited for is seen.
                Ok(true)
            }
            (MoveStep::Begin(transfer), Some(volume), _) => {
                // Its mark is seen, and what comes next is looked at then.
                self.patch_volume(volume, &moves::begun(volume, &with_id(volume, transfer)?)).await?;
                Ok(true)
            }
            (MoveStep::Copy(transfer), Some(volume), Some(key)) => {
                self.copy(key, volume, &transfer).await?;
                Ok(true)
            }
            (MoveStep::CallOff { transfer, to }, Some(volume), key) => {
                self.call_off(volume, transfer, to).await?;
                if let Some(key) = key {
                    self.tell(key, None).await?;
                }
                Ok(true)
            }
            (MoveStep::RemoveOld { transfer, node }, Some(volume), _) => {
                if node.is_some() && !transfer.id.is_empty() {
                    self.hands.remove_left(transfer).await?;
                }
                self.patch_volume(volume, &moves::ended(volume)).await?;
                Ok(true)
            }
            (MoveStep::Fulfilled { node }, _, Some(key)) => {
                self.forget_wish(key).await?;
                if self.tell(key, None).await? {
                    self.told(claim.as_ref(), Normal, "VolumeMoved", format!("the volume is on node {node}"));
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Claims that name a volume that is another's.
    async fn refuse_strangers(&self, about: &About, volume: Option<&PersistentVolume>) -> Result<(), Stopped> {
        for key in &about.strangers {
            let claim: Option<PersistentVolumeClaim> = self.found(&PERSISTENT_VOLUME_CLAIMS, key).await?;
            let Some(claim) = claim else { continue };
            if let MoveStep::Refuse(why) = moves::next(&view(self.driver, about, Some(&claim), volume)) {
                self.refuse(key, &why).await?;
            }
        }
        Ok(())
    }

    /// Copies it, and has it be on the other node.
    async fn copy(&self, key: &Key, volume: &PersistentVolume, transfer: &VolumeTransfer) -> Result<(), Stopped> {
        let to = &transfer.to;
        let Leaving { bytes, record } = self.hands.leave(transfer.clone()).await?;
        let (mut here, is_settled) = self.hands.arrive(transfer.clone(), record).await?;
        let mut told_at: Option<Instant> = None;
        while here < bytes && !is_settled {
            if told_at.is_none_or(|it| it.elapsed() >= TOLD_PERIOD) {
                told_at = Some(Instant::now());
                let message = format!("{} of {} MiB are copied to node {to}", here >> 20, bytes >> 20);
                self.tell(key, Some((true, "MoveCopying", &message))).await?;
                if !self.is_still_wished(key, transfer).await? {
                    // It is called off at the next look.
                    return Ok(());
                }
            }
            let end = (here + RANGE_BYTES).min(bytes);
            self.hands.copy(transfer.clone(), (here, end)).await?;
            here = end;
        }
        if !is_settled {
            self.hands.settle(transfer.clone()).await?;
        }
        if self.is_still_wished(key, transfer).await? {
            self.patch_volume(volume, &moves::moved(volume, transfer)).await?;
        }
        Ok(())
    }

    /// The claim wishes for it, and no Pod waits for it where it is.
    async fn is_still_wished(&self, key: &Key, transfer: &VolumeTransfer) -> Result<bool, Error> {
        let claim: Option<PersistentVolumeClaim> = self.found(&PERSISTENT_VOLUME_CLAIMS, key).await?;
        Ok(claim.as_ref().and_then(moves::wish) == Some(transfer.to.as_str()) && pod_of(&self.used, key).is_none())
    }

    async fn call_off(
        &self,
        volume: &PersistentVolume,
        transfer: VolumeTransfer,
        to: Option<String>,
    ) -> Result<(), Stopped> {
        let transfer = with_id(volume, transfer)?;
        // From now on it cannot be on the other node: whoever is about to write that read the volume before this.
        let volume = self.patch_volume(volume, &moves::called_off(volume, &transfer)).await?;
        // A Pod may wait for it.
        self.hands.stay(transfer.clone()).await?;
        if to.is_some() {
            self.hands.give_up(transfer).await?;
        }
        self.patch_volume(&volume, &moves::ended(&volume)).await?;
        Ok(())
    }

    async fn refuse(&self, key: &Key, why: &str) -> Result<bool, Error> {
        self.tell(key, Some((false, "MoveRefused", why))).await?;
        let claim: Option<PersistentVolumeClaim> = self.found(&PERSISTENT_VOLUME_CLAIMS, key).await?;
        self.told(claim.as_ref(), Warning, "VolumeMoveRefused", why.to_owned());
        self.forget_wish(key).await?;
        Ok(true)
    }

    async fn forget_wish(&self, key: &Key) -> Result<(), Error> {
        let patch = json!({ "metadata": { "annotations": { MOVE_TO: null } } });
        match self.client.patch(&PERSISTENT_VOLUME_CLAIMS, key, "", &PatchType::Merge, &patch).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Writes the claim's condition. False: it says that already, or there is no claim.
    async fn tell(&self, key: &Key, told: Option<(bool, &str, &str)>) -> Result<bool, Error> {
        let claim: Option<PersistentVolumeClaim> = self.found(&PERSISTENT_VOLUME_CLAIMS, key).await?;
        let patch = claim.and_then(|it| moves::with_condition(&it, told, (self.clock)()));
        let Some(patch) = patch else { return Ok(false) };
        self.client.patch(&PERSISTENT_VOLUME_CLAIMS, key, "status", &PatchType::Merge, &patch).await.map(|_| true)
    }

    fn told(
        &self,
        claim: Option<&PersistentVolumeClaim>,
        event_type: EventType,
        reason: &'static str,
        message: String,
    ) {
        let Some(claim) = claim else { return };
        let of = |it: &Option<String>| it.clone().unwrap_or_default();
        let about = ObjectReference {
            kind: "PersistentVolumeClaim".into(),
            api_version: "v1".into(),
            namespace: of(&claim.metadata.namespace),
            name: of(&claim.metadata.name),
            uid: of(&claim.metadata.uid),
            ..ObjectReference::default()
        };
        self.news.lock().push((about, event_type, reason, message));
    }

    async fn patch_volume(&self, volume: &PersistentVolume, patch: &Value) -> Result<PersistentVolume, Error> {
        let key = Key::cluster(volume.metadata.name.clone().unwrap_or_default());
        let written = self.client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, patch).await?;
        corten_client::decode(&written)
    }

    async fn found<T: DeserializeOwned>(
        &self,
        resource: &corten_meta::Resource,
        key: &Key,
    ) -> Result<Option<T>, Error> {
        match self.client.get_as::<T>(resource, key).await {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        }
    }
}

fn view<'m>(
    driver: &'m str,
    about: &'m About,
    claim: Option<&'m PersistentVolumeClaim>,
    volume: Option<&'m PersistentVolume>,
) -> MoveView<'m> {
    MoveView { driver, claim, volume, pod: about.pod.as_deref(), nodes: &about.nodes }
}

/// Whose volume it is.
fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let of = volume.spec.as_ref()?.claim_ref.clone()?;
    Some(Key::new(of.namespace.unwrap_or_default(), of.name.unwrap_or_default()))
}

/// A move that has no id gets one that no other has.
fn with_id(volume: &PersistentVolume, transfer: VolumeTransfer) -> Result<VolumeTransfer, Stopped> {
    if !transfer.id.is_empty() {
        return Ok(transfer);
    }
    let mut nonce = [0; 8];
    let made = aws_lc_rs::rand::fill(&mut nonce);
    made.map_err(|_| Stopped { reason: "MoveRetrying", message: "no random numbers".into(), is_final: false })?;
    let id = moves::id_of(volume, &format!("{:016x}", u64::from_le_bytes(nonce)));
    Ok(VolumeTransfer { id, ..transfer })
}
