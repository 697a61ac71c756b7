//! What a scheduler wants written, and the writing of it.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{POD_GROUPS, PODS};
use corten_client::{Backoff, Client, DeleteParams, Error, PatchType};
use corten_meta::{Key, Resource, Retry};
use corten_scheduler::{ClaimRelease, ClaimReservation, Event, Eviction, ExtendedClaimWrite, Moment, Observer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument;

use super::{devices, extenders::Extenders};
use crate::scheduler_measures::{Binder, BindingConflict, SchedulerMeasures};

/// How long a binding may stay without a definite answer.
const BIND_PATIENCE: Duration = Duration::from_secs(300);
const TELL_TRIES: usize = 3;
const BIND_BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BIND_BACKOFF_MAX: Duration = Duration::from_secs(5);

pub(super) enum Job {
    Bind {
        pod: Key,
        uid: String,
        node: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
        extender: Option<usize>,
    },
    /// As far as the binding itself.
    Reserve {
        pod: Key,
        uid: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
    },
    ReleaseClaims {
        pod: Key,
        claims: Vec<ClaimRelease>,
    },
    /// One for extended resources, of which its pod made no use.
    DeleteClaim {
        pod: Key,
        claim: Key,
        uid: String,
        finalizers: Vec<String>,
    },
    Evict(Box<Eviction>),
    Patch {
        pod: Key,
        patch: Value,
    },
    PatchGroup {
        group: Key,
        patch: Value,
    },
    /// What gives a pod its volumes, in this order.
    Volumes {
        pod: Key,
        uid: String,
        patches: Vec<(Resource, Key, Value)>,
    },
}

pub(super) struct WriteResult {
    pub(super) pod: Key,
    pub(super) begun: Moment,
    /// What the scheduler is to be told.
    pub(super) event: Option<Event>,
}

impl Job {
    pub(super) fn pod(&self) -> Key {
        match self {
            Self::Bind { pod, .. }
            | Self::DeleteClaim { pod, .. }
            | Self::Patch { pod, .. }
            | Self::ReleaseClaims { pod, .. }
            | Self::Reserve { pod, .. }
            | Self::Volumes { pod, .. } => pod.clone(),
            Self::Evict(eviction) => eviction.victim_key(),
            // No pod has such a name: its writes are in order among themselves.
            Self::PatchGroup { group, .. } => Key::new(&*group.namespace, format!("podgroups/{}", group.name)),
        }
    }
}

pub(super) async fn write(
    client: Client,
    extenders: Arc<Extenders>,
    measures: Arc<SchedulerMeasures>,
    job: Job,
) -> WriteResult {
    let (pod, begun) = (job.pod(), measures.moment());
    let span = tracing::info_span!("pod", key = %pod);
    let event = written(client, &extenders, &measures, job).instrument(span).await;
    WriteResult { pod, begun, event }
}

async fn written(client: Client, extenders: &Extenders, measures: &SchedulerMeasures, job: Job) -> Option<Event> {
    match job {
        Job::Patch { pod, patch } => {
            if let Err(error) = tell(&client, &pod, patch).await {
                tracing::debug!(%error, "cannot tell that a pod is unschedulable");
            }
            None
        }
        Job::PatchGroup { group, patch } => {
            if let Err(error) = client.patch(&POD_GROUPS, &group, "status", &PatchType::Strategic, &patch).await {
                tracing::debug!(%group, %error, "cannot tell what became of a pod group");
            }
            None
        }
        Job::Evict(eviction) => Some(match evict(&client, &eviction).await {
            Ok(()) => Event::Evicted { eviction },
            Err(error) => {
                tracing::debug!(preemptor = %eviction.preemptor, %error, "cannot evict a pod of lower priority");
                Event::EvictionFailed { eviction, message: error.to_string() }
            }
        }),
        Job::Volumes { pod, uid, patches } => {
            let failed = give_volumes(&client, patches).await.err();
            failed.map(|error| {
                tracing::debug!(%error, "cannot give a pod its volumes");
                Event::VolumesFailed { pod, uid, message: error.to_string() }
            })
        }
        Job::Reserve { pod, uid, claims, extended } => {
            let failed = devices::reserve_all(&client, (&pod, &uid), claims, extended).await.err();
            failed.map(|error| {
                tracing::debug!(%error, "cannot reserve a pod's devices");
                Event::ReserveFailed { pod, uid, message: error.to_string() }
            })
        }
        Job::ReleaseClaims { claims, .. } => {
            devices::release(&client, claims).await;
            None
        }
        Job::DeleteClaim { claim, uid, finalizers, .. } => {
            if let Err(error) = devices::delete(&client, &claim, &uid, &finalizers).await {
                tracing::warn!(%claim, %error, "cannot delete the claim for extended resources that a try before has left");
            }
            None
        }
        Job::Bind { pod, uid, node, claims, extended, extender } => {
            let binder = extender.map(|it| (extenders, it));
            let bound = bind_with_devices(&client, binder, (&pod, &uid), &node, (claims, extended)).await;
            if let Some(conflict) = BindingConflict::of(&bound) {
                measures.conflicted(conflict);
            }
            Some(match bound {
                Ok(Binder::This) => Event::Bound { pod, uid, node },
                Ok(Binder::Another(node)) => Event::BoundByAnother { pod, uid, node },
                Err(error) => {
                    tracing::debug!(node, %error, "cannot bind");
                    Event::BindFailed { pod, uid, retry: error.retry(), message: error.to_string() }
                }
            })
        }
    }
}

/// Writes the condition into the revision it was meant for, or into a newer one of the pod if it still has no node.
pub(super) async fn tell(client: &Client, pod: &Key, mut patch: Value) -> Result<(), Error> {
    for _ in 0..TELL_TRIES {
        match client.patch(&PODS, pod, "status", &PatchType::Merge, &patch).await {
            Err(error) if error.is_conflict() => {}
            result => return result.map(drop),
        }
        let found: WaitingPod = client.get_as(&PODS, pod).await?;
        if patch["metadata"]["uid"] != found.metadata.uid || !found.spec.node_name.is_empty() {
            return Ok(());
        }
        patch["metadata"]["resourceVersion"] = json!(found.metadata.resource_version);
        let is_ours = |it: &Value| it["type"] == "PodScheduled";
        let ours = patch["status"]["conditions"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let others = found.status.conditions.into_iter().filter(|it| !is_ours(it));
        patch["status"]["conditions"] = others.chain(ours.into_iter().filter(is_ours)).collect();
    }
    // Whoever changes a pod that often is heard of; the next attempt tells it.
    Ok(())
}

/// Says in the Pod's status why it goes, then deletes it (`PreemptPod`).
async fn evict(client: &Client, eviction: &Eviction) -> Result<(), Error> {
    let pod = eviction.victim_key();
    client.patch(&PODS, &pod, "status", &PatchType::Strategic, &eviction.patch).await?;
    let params = DeleteParams { uid: Some(eviction.victim.uid.clone()), ..DeleteParams::default() };
    client.delete(&PODS, &pod, &params).await.map(drop)
}

/// Up to the first that is not taken.
async fn give_volumes(client: &Client, patches: Vec<(Resource, Key, Value)>) -> Result<(), Error> {
    for (resource, key, patch) in patches {
        client.patch(&resource, &key, "", &PatchType::Merge, &patch).await?;
    }
    Ok(())
}

/// Binds once all claims have their devices.
pub(super) async fn bind_with_devices(
    client: &Client,
    binder: Option<(&Extenders, usize)>,
    (pod, uid): (&Key, &str),
    node: &str,
    (claims, extended): (Vec<ClaimReservation>, Option<ExtendedClaimWrite>),
) -> Result<Binder, Error> {
    let made = devices::reserve_all(client, (pod, uid), claims, extended).await?;
    let bound = match binder {
        Some((extenders, idx)) => extenders.bind(client, idx, (pod, uid), node).await,
        None => bind(client, pod, uid, node).await,
    };
    // Where it is not known whether it is bound, its claim stays: it is stale at the next try if there is one.
    let is_elsewhere = match &bound {
        Ok(binder) => *binder != Binder::This,
        Err(error) => !error.may_have_been_done(),
    };
    if let Some(made) = made.filter(|_| is_elsewhere) {
        devices::take_back(client, made).await;
    }
    bound
}

/// Binds, and does not come back before it is certain where the pod is.
pub(super) async fn bind(client: &Client, pod: &Key, uid: &str, node: &str) -> Result<Binder, Error> {
    let binding = json!({
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
        "target": {"kind": "Node", "apiVersion": "v1", "name": node},
    });
    let give_up_at = Instant::now() + BIND_PATIENCE;
    let mut backoff = Backoff::new(BIND_BACKOFF_FIRST, BIND_BACKOFF_MAX, 0);
    let mut is_in_doubt = false;
    loop {
        let error = match client.create_subresource(&PODS, pod, "binding", &binding).await {
            Ok(_) => return Ok(Binder::This),
            Err(error) => error,
        };
        is_in_doubt |= error.may_have_been_done();
        let is_definite = !error.may_have_been_done() && error.retry() != Retry::After;
        if is_definite && (is_in_doubt || error.is_conflict()) {
            // The refusal may come of an earlier try whose answer was lost, or of another scheduler's binding.
            match client.get_as::<BoundPod>(&PODS, pod).await {
                Ok(found) if found.metadata.uid == uid && !found.spec.node_name.is_empty() => {
                    let is_ours = is_in_doubt && found.spec.node_name == node;
                    return Ok(if is_ours { Binder::This } else { Binder::Another(found.spec.node_name) });
                }
                Ok(_) => return Err(error),
                Err(missing) if missing.is_not_found() => return Err(missing),
                Err(_) => {}
            }
        } else if !is_in_doubt {
            return Err(error);
        }
        if Instant::now() >= give_up_at {
            return Err(error);
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

#[derive(Deserialize)]
struct WaitingPod {
    metadata: corten_meta::ObjectMeta,
    #[serde(default)]
    spec: BoundSpec,
    #[serde(default)]
    status: WaitingStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WaitingStatus {
    conditions: Vec<Value>,
}

#[derive(Deserialize)]
pub(super) struct BoundPod {
    pub(super) metadata: corten_meta::ObjectMeta,
    #[serde(default)]
    pub(super) spec: BoundSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BoundSpec {
    pub(super) node_name: String,
}
