//! Carries out what the provisioner decides: has drivers do it, in the order it is written, and writes what came of that.

mod attaching;
mod changing;
mod making;
mod snapshots;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use corten_api::resources::{LEASES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS};
use corten_api::volumes::{SELECTED_NODE, SOURCE_NODE};
use corten_client::{Client, DeleteParams, Error, PatchType};
use corten_kubelet::Secrets;
use corten_meta::{Key, Resource, Time};
use corten_provisioner::{
    ClaimFinalizers, Failure, FailureKind, Growth, Job, Modification, NodeGrowth, Outcome, Request, is_own_condition,
    leases, volume_object,
};
use futures_util::FutureExt;
use serde_json::{Value, json};

use self::{
    attaching::{attach, detach},
    changing::{expand, modify},
    making::create,
    snapshots::{find_snapshot, remove_snapshot, take_snapshot},
};
use super::{
    answered::Answered,
    hands::{Refusal, VolumeHands},
};
use crate::node_volumes::secrets;
pub(crate) use changing::grow_on_node;

/// A driver may take minutes; one that hangs holds up its own volumes alone.
const JOB_PATIENCE: Duration = Duration::from_secs(300);
const CONFLICTS_MAX: u32 = 5;

/// It is there, whoever made it.
pub(super) fn there<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

fn gone<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

fn refused(refusal: Refusal) -> Failure {
    let Refusal { message, is_exhausted, kind } = refusal;
    Failure { message, is_exhausted, kind, ..Failure::default() }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn not_written(error: Error) -> Failure {
    failed(error.to_string())
}

fn failed(message: String) -> Failure {
    Failure { message, ..Failure::default() }
}

/// Nothing was asked of a driver.
fn unasked(failure: Failure) -> Failure {
    Failure { kind: FailureKind::Unasked, ..failure }
}

/// What a Secret says, for a driver.
pub(crate) async fn told(client: &Client, secret: Option<&Key>) -> Result<Secrets, Failure> {
    secrets(client, secret.cloned()).await.map_err(failed).map_err(unasked)
}

/// The same, of a Secret that may be gone with the namespace of what was made with it: the driver is asked without, as by
/// external-provisioner (`handleSecretsForDeletion`), and says itself whether it can do so.
async fn told_still(client: &Client, secret: Option<&Key>) -> Result<Secrets, Failure> {
    let told = told(client, secret).await;
    if told.is_err()
        && let Some(key) = secret
        && client.get_as::<Value>(&SECRETS, key).await.is_err_and(|it| it.is_not_found())
    {
        tracing::warn!(secret = %key, "a driver is to remove a volume, and its Secret is gone: it is asked without");
        return Ok(Secrets::default());
    }
    told
}

/// Carries out one job; whatever happens, the mind gets its answer.
pub(super) async fn carry_out(
    client: Client,
    hands: Arc<dyn VolumeHands>,
    answered: Arc<Answered>,
    job: Job,
) -> Outcome {
    let work = AssertUnwindSafe(attempt(&client, &*hands, &answered, &job)).catch_unwind();
    let result = match tokio::time::timeout(JOB_PATIENCE, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(failed("internal error of the node".into())),
        Err(_) => {
            let message = "rpc error: code = DeadlineExceeded desc = context deadline exceeded".into();
            Err(failed(message))
        }
    };
    let done = result.clone().map(drop);
    match job {
        Job::Provision { claim, request, .. } => {
            let of = |it: &Option<String>| it.clone().unwrap_or_default();
            let claim = Key::new(of(&claim.metadata.namespace), of(&claim.metadata.name));
            let Request { name, driver, .. } = *request;
            Outcome::Provisioned { claim, volume: name, driver, result: done }
        }
        Job::Select { claim, version, .. } => Outcome::Selected { claim, version, result: done },
        Job::Reschedule { claim, .. } => Outcome::Rescheduled { claim, result: done },
        Job::Remove { volume, driver, .. } => Outcome::Removed { volume, driver, result: done },
        Job::LetGo { volume, .. } => Outcome::LetGo { volume, result: done },
        Job::Attach(it) | Job::Detach(it) => Outcome::Attached { attachment: it.attachment, result: done },
        Job::Expand(it) => {
            let Growth { claim, volume, driver, bytes, .. } = *it;
            Outcome::Expanded { claim, volume, driver, bytes, result }
        }
        Job::ExpandOnNode(it) => {
            let NodeGrowth { claim, volume, driver, .. } = *it;
            Outcome::ExpandedOnNode { claim, volume, driver, result: done }
        }
        Job::Modify(it) => {
            let Modification { claim, class, driver, .. } = *it;
            Outcome::Modified { claim, class, driver, result: done }
        }
        Job::TakeSnapshot(taking) => Outcome::SnapshotTaken { taking, result },
        Job::RemoveSnapshot { content, driver, .. } => Outcome::SnapshotRemoved { content, driver, result: done },
        Job::FindSnapshot(finding) => Outcome::SnapshotFound { finding, result },
        Job::WriteStatus { claim, .. } => Outcome::StatusWritten { claim, result: done },
        Job::LookAtLease { claim, lease, .. } => Outcome::LeaseSeen { claim, lease, result },
        Job::WriteFinalizers(it) => Outcome::FinalizersWritten { claim: it.claim, result: done },
    }
}

/// True: of a growth the node's part is to be done yet.
async fn attempt(client: &Client, hands: &dyn VolumeHands, answered: &Answered, job: &Job) -> Result<bool, Failure> {
    match job {
        Job::Provision { claim, class, request, others, source } => {
            if let Some(source) = source {
                write_finalizers(client, source).await.map_err(not_written).map_err(unasked)?;
            }
            let created = create(client, hands, answered, request, others).await?;
            let volume = volume_object(claim, class, request, &created);
            there(client.create(&PERSISTENT_VOLUMES, "", &volume).await).map_err(not_written)?;
        }
        Job::Select { claim, version, node } => select(client, claim, version, node).await.map_err(not_written)?,
        Job::Reschedule { claim, version, source_node } => {
            let mut annotations = json!({ SELECTED_NODE: null });
            if let Some(node) = source_node {
                annotations[SOURCE_NODE] = node.as_str().into();
            }
            let patch = json!({ "metadata": { "resourceVersion": version, "annotations": annotations } });
            let patched = client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "", &PatchType::Merge, &patch).await;
            gone(patched).map_err(not_written)?;
        }
        Job::Remove { volume, driver, handle, secret, finalizers } => {
            let secrets = told_still(client, secret.as_ref()).await?;
            hands.delete(driver.clone(), handle.clone(), secrets).await.map_err(refused)?;
            answered.forget(driver, handle);
            remove(client, volume, finalizers).await.map_err(not_written)?;
        }
        Job::LetGo { volume, finalizer } => {
            let_go(client, &PERSISTENT_VOLUMES, &Key::cluster(volume.as_str()), std::slice::from_ref(finalizer))
                .await
                .map_err(not_written)?;
        }
        Job::TakeSnapshot(taking) => return take_snapshot(client, hands, taking).await,
        Job::RemoveSnapshot { content, driver, handle, secret } => {
            remove_snapshot(client, hands, (content, driver), handle.as_deref(), secret.as_ref()).await?;
        }
        Job::FindSnapshot(finding) => return find_snapshot(client, hands, finding).await,
        Job::Attach(it) => attach(client, hands, it).await?,
        Job::Detach(it) => detach(client, hands, it).await?,
        Job::Expand(growth) => return expand(client, hands, growth).await,
        Job::ExpandOnNode(it) => {
            grow_on_node(client, it, hands.expand_on_node(it.told.clone(), it.bytes)).await?;
        }
        Job::Modify(it) => modify(client, hands, it).await?,
        Job::WriteStatus { claim, status } => write_status(client, claim, status).await?,
        Job::LookAtLease { lease, now, .. } => return is_held(client, lease, *now).await.map_err(not_written),
        Job::WriteFinalizers(it) => gone(write_finalizers(client, it).await).map_err(not_written)?,
    }
    Ok(false)
}

/// Another node may have been first, or somebody has changed the claim: what it is now is seen.
async fn select(client: &Client, claim: &Key, version: &str, node: &str) -> Result<(), Error> {
    let annotations = json!({ SELECTED_NODE: node });
    let patch = json!({ "metadata": { "resourceVersion": version, "annotations": annotations } });
    match client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "", &PatchType::Merge, &patch).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => gone(other),
    }
}

async fn is_held(client: &Client, lease: &str, now: Time) -> Result<bool, Error> {
    match client.get_as::<Value>(&LEASES, &Key::new(leases::NAMESPACE, lease)).await {
        Err(error) if error.is_not_found() => Ok(false),
        found => Ok(leases::is_held(found?.get("spec"), now)),
    }
}

async fn write_finalizers(client: &Client, it: &ClaimFinalizers) -> Result<(), Error> {
    let patch = json!({ "metadata": { "resourceVersion": it.version, "finalizers": it.finalizers } });
    client.patch(&PERSISTENT_VOLUME_CLAIMS, &it.claim, "", &PatchType::Merge, &patch).await.map(drop)
}

/// Conditions of others, which may have changed since the status was thought of, stay as they are.
async fn write_status(client: &Client, claim: &Key, status: &Value) -> Result<(), Failure> {
    let mut conflict = None;
    for _ in 0..CONFLICTS_MAX {
        let mut patch = json!({ "status": status });
        if let Some(own) = status["conditions"].as_array() {
            let found = match client.get_as::<Value>(&PERSISTENT_VOLUME_CLAIMS, claim).await {
                Err(error) if error.is_not_found() => return Ok(()),
                other => other.map_err(not_written)?,
            };
            patch["status"]["conditions"] = with_conditions_of_others(own, &found["status"]["conditions"]);
            patch["metadata"] = json!({ "resourceVersion": found["metadata"]["resourceVersion"] });
        }
        match client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "status", &PatchType::Merge, &patch).await {
            Err(error) if error.is_conflict() => conflict = Some(error),
            other => return gone(other).map_err(not_written),
        }
    }
    conflict.map_or(Ok(()), |it| Err(not_written(it)))
}

fn with_conditions_of_others(own: &[Value], found: &Value) -> Value {
    let is_own = |it: &Value| it["type"].as_str().is_some_and(is_own_condition);
    let others = found.as_array().into_iter().flatten().filter(|it| !is_own(it));
    others.chain(own.iter().filter(|it| is_own(it))).cloned().collect()
}

/// Deletes a PersistentVolume whose volume is gone, and lets it go.
async fn remove(client: &Client, volume: &str, finalizers: &[String]) -> Result<(), Error> {
    let key = Key::cluster(volume);
    gone(client.delete(&PERSISTENT_VOLUMES, &key, &DeleteParams::default()).await)?;
    let_go(client, &PERSISTENT_VOLUMES, &key, finalizers).await
}

/// Takes finalizers away.
async fn let_go(client: &Client, resource: &Resource, key: &Key, own: &[String]) -> Result<(), Error> {
    for _ in 0..CONFLICTS_MAX {
        let found = match client.get_as::<Value>(resource, key).await {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        let metadata = &found["metadata"];
        let Some(finalizers) = metadata["finalizers"].as_array() else { return Ok(()) };
        let left: Vec<_> = finalizers.iter().filter(|it| !own.iter().any(|own| *it == own)).collect();
        let patch = json!({ "metadata": { "resourceVersion": metadata["resourceVersion"], "finalizers": left } });
        match client.patch(resource, key, "", &PatchType::Merge, &patch).await {
            Err(error) if error.is_conflict() => {}
            other => return gone(other),
        }
    }
    // Others change it all the time: at the next try.
    Ok(())
}
