//! Carries out what the provisioner decides: has drivers do it, in the order it is written, and writes what came of that.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use corten_api::resources::{CSI_NODES, LEASES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS};
use corten_api::snapshots::{BEING_CREATED, CONTENT_FINALIZER, VOLUME_SNAPSHOT_CONTENTS};
use corten_api::storage::v1::CSINode;
use corten_api::volumes::SELECTED_NODE;
use corten_client::{Client, DeleteParams, Error, PatchType};
use corten_kubelet::Secrets;
use corten_meta::{Key, Resource, Time};
use corten_provisioner::{
    AttachedVolume, Attaching, ClaimFinalizers, Created, Failure, Finality, Finding, Grown, Growth, Handles, Job,
    MESSAGE, Modification, NODE_ID, NodeGrowth, Outcome, Request, Taking, leases, snapshot_failed, snapshot_found,
    snapshot_not_found, snapshot_status, volume_object,
};
use futures_util::FutureExt;
use serde_json::{Value, json};

use super::{Refusal, Unchanged, VolumeHands, answered::Answered};
use crate::node_volumes::secrets;

/// A driver may take minutes; one that hangs holds up its own volumes alone.
const JOB_PATIENCE: Duration = Duration::from_secs(300);
const CONFLICTS_MAX: u32 = 5;
/// gRPC's code.
const RESOURCE_EXHAUSTED: i32 = 8;
/// How often a volume is to be deleted that is not what was asked for, before that is told.
const DELETIONS_MAX: u32 = 5;

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
    let Refusal { message, is_exhausted, finality } = refusal;
    Failure { message, is_exhausted, finality, ..Failure::default() }
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
    Failure { finality: Finality::Unasked, ..failure }
}

/// What a Secret says, for a driver.
pub(crate) async fn told(client: &Client, secret: Option<&Key>) -> Result<Secrets, Failure> {
    secrets(client, secret.cloned()).await.map_err(failed).map_err(unasked)
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
        Job::Reschedule { claim, version } => {
            let patch = json!({ "metadata": {
                "resourceVersion": version,
                "annotations": { SELECTED_NODE: null },
            } });
            let patched = client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "", &PatchType::Merge, &patch).await;
            gone(patched).map_err(not_written)?;
        }
        Job::Remove { volume, driver, handle, secret, finalizers } => {
            let secrets = told(client, secret.as_ref()).await?;
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

/// Has the driver make a volume that is nobody's yet, and is what was asked for.
async fn create(
    client: &Client,
    hands: &dyn VolumeHands,
    answered: &Answered,
    request: &Request,
    others: &Handles,
) -> Result<Created, Failure> {
    let secrets = told(client, request.secrets.provisioner.as_ref()).await?;
    let created = hands.create(request.clone(), secrets.clone()).await.map_err(refused)?;
    let other = others.get(&created.handle).cloned();
    let taken = || answered.take(&request.driver, &created.handle, &request.name).err();
    if let Some(other) = other.or_else(taken) {
        let handle = &created.handle;
        let message = format!("the driver answers with volume {handle:?}, which is that of PersistentVolume {other}");
        return Err(Failure { message, finality: Finality::Refused, ..Failure::default() });
    }
    match created.refused {
        Some(why) => Err(clean_up(hands, answered, (request, &created.handle), secrets, why).await),
        None => Ok(created),
    }
}

/// As external-provisioner's `cleanupVolume`. What cannot be removed is asked for again, and removed then.
async fn clean_up(
    hands: &dyn VolumeHands,
    answered: &Answered,
    (request, handle): (&Request, &str),
    secrets: Secrets,
    why: String,
) -> Failure {
    let mut failure = None;
    for _ in 0..DELETIONS_MAX {
        match hands.delete(request.driver.clone(), handle.to_owned(), secrets.clone()).await {
            Ok(()) => {
                answered.forget(&request.driver, handle);
                return Failure { message: why, finality: Finality::Refused, ..Failure::default() };
            }
            Err(refusal) => failure = Some(refusal.message),
        }
    }
    let failure = failure.unwrap_or_default();
    failed(format!("{why}. Cleanup of volume {} failed, volume is orphaned: {failure}", request.name))
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

async fn write_status(client: &Client, claim: &Key, status: &Value) -> Result<(), Failure> {
    let patch = json!({ "status": status });
    let patched = client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "status", &PatchType::Merge, &patch).await;
    gone(patched).map_err(not_written)
}

/// The node's part: what is done with the driver, between what is written of it.
pub(crate) async fn grow_on_node(
    client: &Client,
    growth: &NodeGrowth,
    grown: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let write = async |status: &Option<Value>| match status {
        Some(status) => write_status(client, &growth.claim, status).await,
        None => Ok(()),
    };
    write(&growth.begun).await?;
    let Err(failure) = grown.await else { return write(&growth.done).await };
    let status = match failure.finality {
        Finality::Open | Finality::Unasked => &None,
        Finality::Refused => &growth.failed,
        Finality::Infeasible => &growth.infeasible,
    };
    let why = format!("failed to expand pvc with {}", failure.message);
    write(&status.as_ref().map(|it| with_message(it, &why))).await?;
    Err(failure)
}

async fn expand(client: &Client, hands: &dyn VolumeHands, growth: &Growth) -> Result<bool, Failure> {
    write_status(client, &growth.claim, &growth.begun).await.map_err(unasked)?;
    let secrets = told(client, growth.secret.as_ref()).await?;
    let expanded = match growth.is_asked {
        true => hands.expand(growth.driver.clone(), growth.told.clone(), growth.bytes, secrets).await,
        // As external-resizer's `trivialResizer`.
        false => Ok(Grown { bytes: 0, needs_node: true }),
    };
    match expanded {
        Ok(grown) => {
            let (size, status) = growth.ended(grown);
            if let Some(size) = size {
                let patch = json!({ "spec": { "capacity": { "storage": size } } });
                let key = Key::cluster(growth.volume.as_str());
                let patched = client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await;
                patched.map_err(not_written)?;
            }
            write_status(client, &growth.claim, &status).await?;
            Ok(grown.needs_node)
        }
        Err(refusal) => {
            let status = if refusal.finality == Finality::Infeasible { &growth.infeasible } else { &growth.failed };
            write_status(client, &growth.claim, &with_message(status, &refusal.message)).await?;
            Err(refused(refusal))
        }
    }
}

/// A status whose condition says why.
fn with_message(status: &Value, message: &str) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["message"] == MESSAGE {
            condition["message"] = message.into();
        }
    }
    status
}

/// As external-resizer's `controllerModifyVolumeWithTarget`: the volume's object before the claim's.
async fn modify(client: &Client, hands: &dyn VolumeHands, it: &Modification) -> Result<(), Failure> {
    let secrets = told(client, it.secret.as_ref()).await?;
    write_status(client, &it.claim, &it.begun).await.map_err(unasked)?;
    let changed = hands.modify(it.driver.clone(), it.handle.clone(), it.parameters.clone(), secrets).await;
    if let Err(Unchanged { message, finality }) = changed {
        let status = if finality == Finality::Infeasible { &it.infeasible } else { &it.failed };
        let why = format!("ModifyVolume failed with error: {message}. Waiting for retry.");
        write_status(client, &it.claim, &with_message(status, &why)).await?;
        return Err(Failure { message, finality, ..Failure::default() });
    }
    let patch = json!({ "spec": { "volumeAttributesClassName": it.class } });
    let key = Key::cluster(it.volume.as_str());
    client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await.map_err(not_written)?;
    write_status(client, &it.claim, &it.done).await
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

/// As external-attacher's `csiHandler`: marked, attached, told; what fails is told, too.
async fn attach(client: &Client, hands: &dyn VolumeHands, it: &Attaching) -> Result<(), Failure> {
    let attached = async {
        let volume = it.volume.clone().map_err(failed)?;
        let node_id = node_id(client, it).await?;
        mark(client, it, &volume, &node_id).await?;
        if !it.is_asked {
            return Ok(Default::default());
        }
        let secrets = told(client, it.secret.as_ref()).await?;
        hands.attach(it.driver.clone(), volume, node_id, secrets).await.map_err(refused)
    };
    match attached.await {
        Ok(metadata) => {
            let status = json!({ "attached": true, "attachmentMetadata": metadata, "attachError": null });
            write_attachment(client, it, "status", json!({ "status": status })).await
        }
        Err(failure) => tell_refused(client, it, "attachError", failure).await,
    }
}

async fn detach(client: &Client, hands: &dyn VolumeHands, it: &Attaching) -> Result<(), Failure> {
    let detached = async {
        if !it.is_asked {
            return Ok(());
        }
        let volume = it.volume.clone().map_err(failed)?;
        let node_id = node_id(client, it).await?;
        let secrets = told(client, it.secret.as_ref()).await?;
        hands.detach(it.driver.clone(), volume.handle, node_id, secrets).await.map_err(refused)
    };
    if let Err(failure) = detached.await {
        return tell_refused(client, it, "detachError", failure).await;
    }
    let status = json!({ "attached": false, "attachmentMetadata": null, "detachError": null });
    write_attachment(client, it, "status", json!({ "status": status })).await?;
    // Somebody's finalizer may have come in between: then it is looked at again.
    let seen = client.get_as::<Value>(&VOLUME_ATTACHMENTS, &Key::cluster(it.attachment.as_str())).await;
    let mut found = match seen {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other.map_err(not_written)?,
    };
    let held = found["metadata"]["finalizers"].take();
    let own = format!("external-attacher/{}", it.driver.replace('/', "-"));
    let left: Vec<Value> = held.as_array().into_iter().flatten().filter(|it| **it != *own).cloned().collect();
    let version = found["metadata"]["resourceVersion"].take();
    write_attachment(client, it, "", json!({ "metadata": { "resourceVersion": version, "finalizers": left } })).await
}

/// Says in the attachment and the volume that they are held, before the driver does anything.
async fn mark(client: &Client, it: &Attaching, volume: &AttachedVolume, node_id: &str) -> Result<(), Failure> {
    let marks =
        json!({ "annotations": { NODE_ID: node_id }, "finalizers": it.finalizers, "resourceVersion": it.version });
    let (key, patch) = (Key::cluster(it.attachment.as_str()), json!({ "metadata": marks }));
    // One that is gone is attached no more: nobody would detach it.
    let marked = client.patch(&VOLUME_ATTACHMENTS, &key, "", &PatchType::Merge, &patch).await;
    marked.map_err(not_written)?;
    let Some((version, finalizers)) = &volume.hold else { return Ok(()) };
    let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
    let key = Key::cluster(volume.volume.as_str());
    client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await.map(drop).map_err(not_written)
}

async fn write_attachment(client: &Client, it: &Attaching, subresource: &str, patch: Value) -> Result<(), Failure> {
    let key = Key::cluster(it.attachment.as_str());
    gone(client.patch(&VOLUME_ATTACHMENTS, &key, subresource, &PatchType::Merge, &patch).await).map_err(not_written)
}

async fn tell_refused(client: &Client, it: &Attaching, field: &str, failure: Failure) -> Result<(), Failure> {
    let time: Time = it.now;
    // The one code that kubelets look at. An earlier one goes.
    let code = failure.is_exhausted.then_some(RESOURCE_EXHAUSTED);
    let patch = json!({ "status": { field: { "time": time, "message": failure.message, "errorCode": code } } });
    write_attachment(client, it, "status", patch).await?;
    Err(failure)
}

/// The driver's name for the node.
async fn node_id(client: &Client, it: &Attaching) -> Result<String, Failure> {
    if let Some(known) = &it.node_id {
        return Ok(known.clone());
    }
    let found = client.get_as::<CSINode>(&CSI_NODES, &Key::cluster(it.node.as_str())).await;
    let found = found.map_err(|error| failed(format!("CSINode {}: {error}", it.node)))?;
    let driver = found.spec.drivers.into_iter().find(|driver| driver.name == it.driver);
    let missing = || failed(format!("CSINode {} does not contain driver {}", it.node, it.driver));
    driver.map(|it| it.node_id).ok_or_else(missing)
}

/// True: it is ready.
async fn take_snapshot(client: &Client, hands: &dyn VolumeHands, taking: &Taking) -> Result<bool, Failure> {
    let secrets = told(client, taking.secret.as_ref()).await?;
    mark_content(client, &taking.content, &json!("yes")).await?;
    match hands.create_snapshot(taking.clone(), secrets).await {
        Ok(taken) => {
            tell_content(client, &taking.content, &snapshot_status(&taken)).await?;
            mark_content(client, &taking.content, &Value::Null).await?;
            Ok(taken.is_ready)
        }
        Err(refusal) => {
            tell_content(client, &taking.content, &snapshot_failed(taking, &refusal.message)).await?;
            if refusal.is_final {
                mark_content(client, &taking.content, &Value::Null).await?;
            }
            Err(failed(refusal.message))
        }
    }
}

/// True: it is ready.
async fn find_snapshot(client: &Client, hands: &dyn VolumeHands, finding: &Finding) -> Result<bool, Failure> {
    let found = match told(client, finding.secret.as_ref()).await {
        Ok(secrets) => {
            let (driver, handle) = (finding.driver.clone(), finding.handle.clone());
            hands.find_snapshot(driver, handle, secrets).await.map_err(refused)
        }
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) => {
            tell_content(client, &finding.content, &snapshot_found(finding, found.as_ref())).await?;
            Ok(found.is_none_or(|it| it.is_ready))
        }
        Err(failure) => {
            tell_content(client, &finding.content, &snapshot_not_found(finding, &failure.message)).await?;
            Err(failure)
        }
    }
}

/// Says that the driver is asked, or that it has answered for good.
async fn mark_content(client: &Client, content: &str, mark: &Value) -> Result<(), Failure> {
    let patch = json!({ "metadata": { "annotations": { BEING_CREATED: mark } } });
    let key = Key::cluster(content);
    gone(client.patch(&VOLUME_SNAPSHOT_CONTENTS, &key, "", &PatchType::Merge, &patch).await).map_err(not_written)
}

async fn tell_content(client: &Client, content: &str, status: &Value) -> Result<(), Failure> {
    let (key, patch) = (Key::cluster(content), json!({ "status": status }));
    gone(client.patch(&VOLUME_SNAPSHOT_CONTENTS, &key, "status", &PatchType::Merge, &patch).await).map_err(not_written)
}

async fn remove_snapshot(
    client: &Client,
    hands: &dyn VolumeHands,
    (content, driver): (&str, &str),
    handle: Option<&str>,
    secret: Option<&Key>,
) -> Result<(), Failure> {
    if let Some(handle) = handle {
        let secrets = told(client, secret).await?;
        hands.delete_snapshot(driver.to_owned(), handle.to_owned(), secrets).await.map_err(refused)?;
    }
    let own = [CONTENT_FINALIZER.to_string()];
    let_go(client, &VOLUME_SNAPSHOT_CONTENTS, &Key::cluster(content), &own).await.map_err(not_written)
}
