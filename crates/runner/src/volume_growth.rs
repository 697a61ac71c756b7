//! Has the drivers of one node do the node's part in growing the volumes that its Pods have: as the node, on whichever machine that
//! is and whoever else grows volumes.
//!
//! A node may not watch claims: it gets each one again and again, as the kubelet does at each sync of a Pod.

use std::{
    collections::{BTreeMap, VecDeque},
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES},
};
use corten_client::{BoxFuture, Client};
use corten_kubelet::{GrowableVolume, Secrets};
use corten_meta::{Key, ObjectReference};
use corten_provisioner::{AttachedVolume, Failure, NodeExpansion, NodeGrowth};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    Clock, EventRecorder,
    provisioner::{grow_on_node, told},
};

/// How long after a look the next begins. A kubelet looks once a minute.
const PERIOD: Duration = Duration::from_secs(15);
/// So many volumes are looked at side by side.
const AT_ONCE: usize = 8;
/// As the kubelet's `csiTimeout`.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks the drivers of one node.
pub trait VolumeGrowthHands: Send + Sync + 'static {
    fn growable(&self) -> BoxFuture<'_, Vec<GrowableVolume>>;
    fn grow(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Failure>>;
}

/// What the loop is given.
pub struct VolumeGrowthSettings {
    pub node_name: String,
    /// As the node.
    pub client: Client,
    pub hands: Arc<dyn VolumeGrowthHands>,
    pub clock: Clock,
}

/// A driver's name, and a volume's handle.
type VolumeId = (String, String);

fn id(volume: &GrowableVolume) -> VolumeId {
    (volume.driver.clone(), volume.handle.clone())
}

/// Runs until `shutdown` is ready.
pub async fn run_volume_growth(settings: VolumeGrowthSettings, shutdown: impl Future<Output = ()> + Send) {
    let recorder = EventRecorder::on_node(settings.client.clone(), "kubelet", &settings.node_name);
    let node = Node { settings, recorder: Mutex::new(recorder) };
    let (mut shutdown, mut looks) = (pin!(shutdown), pin!(node.look_again_and_again()));
    poll_fn(|context| {
        if shutdown.as_mut().poll(context).is_ready() || looks.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let _: Poll<()> = node.recorder.lock().poll(context);
        Poll::Pending
    })
    .await;
}

struct Node {
    settings: VolumeGrowthSettings,
    recorder: Mutex<EventRecorder>,
}

impl Node {
    async fn look_again_and_again(&self) {
        // `None`: it is being looked at.
        let mut known: BTreeMap<VolumeId, Option<NodeExpansion>> = BTreeMap::new();
        let (mut waiting, mut running) = (VecDeque::<GrowableVolume>::new(), FuturesUnordered::new());
        let mut next_look = Instant::now();
        loop {
            while running.len() < AT_ONCE
                && let Some(volume) = waiting.pop_front()
            {
                let found = known.entry(id(&volume)).or_insert_with(|| Some(NodeExpansion::default()));
                // One that hangs holds up its own volume alone.
                if let Some(expansion) = found.take() {
                    running.push(self.look_at(volume, expansion));
                }
            }
            tokio::select! {
                () = tokio::time::sleep_until(next_look) => {
                    let there = self.settings.hands.growable().await;
                    // What no Pod has any more is forgotten, also that it was in use.
                    known.retain(|id, it| it.is_none() || there.iter().any(|volume| self::id(volume) == *id));
                    // Who has waited longest is looked at first, however long a look takes.
                    waiting.retain(|it| there.iter().any(|volume| id(volume) == id(it)));
                    let is_new = |it: &GrowableVolume| !waiting.iter().any(|queued| id(queued) == id(it));
                    let new: Vec<_> = there.into_iter().filter(is_new).collect();
                    waiting.extend(new);
                    next_look = Instant::now() + PERIOD;
                }
                Some((volume, expansion)) = running.next() => {
                    known.insert(volume, Some(expansion));
                }
            }
        }
    }

    async fn look_at(&self, volume: GrowableVolume, mut expansion: NodeExpansion) -> (VolumeId, NodeExpansion) {
        if expansion.is_due((self.settings.clock)())
            && let Some((claim, growth)) = self.wanted(&volume, &mut expansion).await
        {
            let result = self.carry_out(&growth).await;
            expansion.ended(&growth, &result, (self.settings.clock)());
            self.tell(&volume, &claim, &growth, &result);
        }
        (id(&volume), expansion)
    }

    /// What there is to do; where the API does not answer, the next look asks again.
    async fn wanted(
        &self,
        volume: &GrowableVolume,
        expansion: &mut NodeExpansion,
    ) -> Option<(PersistentVolumeClaim, NodeGrowth)> {
        let VolumeGrowthSettings { client, clock, .. } = &self.settings;
        let claim = client.get_as::<PersistentVolumeClaim>(&PERSISTENT_VOLUME_CLAIMS, &volume.claim).await.ok()?;
        if !expansion.may_grow(&claim) {
            return None;
        }
        let name = claim.spec.as_ref().and_then(|it| it.volume_name.clone())?;
        let found = client.get_as::<PersistentVolume>(&PERSISTENT_VOLUMES, &Key::cluster(name)).await.ok()?;
        let growth = expansion.growth(&claim, &found, (&volume.driver, &volume.handle), clock())?;
        Some((claim, growth))
    }

    async fn carry_out(&self, growth: &NodeGrowth) -> Result<(), Failure> {
        let VolumeGrowthSettings { client, hands, .. } = &self.settings;
        let grown = async {
            let secrets = told(client, growth.secret.as_ref()).await?;
            let asked = hands.grow(growth.driver.clone(), growth.told.clone(), growth.bytes, secrets);
            let late = || "rpc error: code = DeadlineExceeded desc = context deadline exceeded".to_owned();
            match tokio::time::timeout(PATIENCE, AssertUnwindSafe(asked).catch_unwind()).await {
                Ok(Ok(grown)) => grown,
                Ok(Err(_)) => Err(Failure { message: "internal error of the node".into(), ..Failure::default() }),
                Err(_) => Err(Failure { message: late(), ..Failure::default() }),
            }
        };
        grow_on_node(client, growth, grown).await
    }

    /// As the kubelet: that it failed, at the Pods; that it was done, at the claim, too.
    fn tell(
        &self,
        volume: &GrowableVolume,
        claim: &PersistentVolumeClaim,
        growth: &NodeGrowth,
        result: &Result<(), Failure>,
    ) {
        let told = NodeExpansion::told(growth, &self.settings.node_name, result);
        let Some((event_type, reason, message)) = told else { return };
        let pods = volume.pods.iter().map(|(uid, key)| reference("Pod", key, uid));
        let of_claim = result.is_ok().then(|| {
            reference("PersistentVolumeClaim", &volume.claim, claim.metadata.uid.as_deref().unwrap_or_default())
        });
        let (mut recorder, now) = (self.recorder.lock(), (self.settings.clock)());
        pods.chain(of_claim).for_each(|it| recorder.record(&it, event_type, reason, &message, now));
    }
}

fn reference(kind: &str, key: &Key, uid: &str) -> ObjectReference {
    ObjectReference {
        kind: kind.into(),
        api_version: "v1".into(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: uid.into(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
