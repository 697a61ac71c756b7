//! Claims and volumes in the script, and what must hold of them.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES};
use corten_client::{Client, DeleteParams, PatchType};
use corten_meta::Key;
use serde_json::{Value, json};

use crate::{again::again, oracle::Oracle, world::World};

const CLASS: &str = "hand";
/// Names of claims in a namespace.
const CLAIMS: u64 = 3;
const SIZE_MAX: u64 = 3;

/// Makes or deletes a claim, or a volume that nobody has; a volume that was somebody's is given to others.
pub(crate) async fn act(world: &World, admin: &Client, namespace: &str) -> Result<String, String> {
    if world.dice.percent(50) { claim(world, admin, namespace).await } else { volume(world, admin).await }
}

async fn claim(world: &World, admin: &Client, namespace: &str) -> Result<String, String> {
    let dice = &world.dice;
    let key = Key::new(namespace, format!("data-{}", dice.below(CLAIMS)));
    let size = format!("{}Gi", 1 + dice.below(SIZE_MAX));
    let spec = json!({"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                      "resources": {"requests": {"storage": size}}});
    let metadata = json!({"name": key.name, "namespace": namespace});
    let object = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata, "spec": spec});
    let created = again(async || admin.create(&PERSISTENT_VOLUME_CLAIMS, namespace, &object).await).await?;
    if created == "AlreadyExists" && dice.percent(60) {
        let params = DeleteParams::default();
        let deleted = again(async || admin.delete(&PERSISTENT_VOLUME_CLAIMS, &key, &params).await).await?;
        return Ok(format!("delete claim {key}: {deleted}"));
    }
    Ok(format!("create claim {key} of {size}: {created}"))
}

async fn volume(world: &World, admin: &Client) -> Result<String, String> {
    let dice = &world.dice;
    let key = Key::cluster(format!("volume-{}", dice.below(5)));
    let size = format!("{}Gi", 1 + dice.below(SIZE_MAX));
    let created = make(admin, &key.name, &size).await?;
    if created != "AlreadyExists" {
        return Ok(format!("create volume {key} of {size}: {created}"));
    }
    let Ok(seen) = admin.get_as::<Value>(&PERSISTENT_VOLUMES, &key).await else { return Ok("nothing".into()) };
    let version = seen["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    if seen["status"]["phase"] == "Released" && dice.percent(70) {
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"claimRef": null}});
        let freed = again(async || admin.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await).await?;
        return Ok(format!("free volume {key}: {freed}"));
    }
    // A volume that is somebody's would go with its claim alone.
    if seen["spec"]["claimRef"].is_null() && dice.percent(50) {
        let params = DeleteParams { resource_version: Some(version), ..DeleteParams::default() };
        let deleted = again(async || admin.delete(&PERSISTENT_VOLUMES, &key, &params).await).await?;
        return Ok(format!("delete volume {key}: {deleted}"));
    }
    Ok(format!("leave volume {key}"))
}

async fn make(admin: &Client, name: &str, size: &str) -> Result<String, String> {
    let spec = json!({"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                      "persistentVolumeReclaimPolicy": "Retain", "capacity": {"storage": size},
                      "hostPath": {"path": "/srv"}});
    let metadata = json!({"name": name});
    let object = json!({"kind": "PersistentVolume", "apiVersion": "v1", "metadata": metadata, "spec": spec});
    again(async || admin.create(&PERSISTENT_VOLUMES, "", &object).await).await
}

/// At the end there is a volume for every claim that may be left: who has none is told of it for ever.
pub(crate) async fn provide(admin: &Client, n_namespaces: u64) -> Result<(), String> {
    for it in 0..n_namespaces * CLAIMS {
        make(admin, &format!("spare-{it}"), &format!("{SIZE_MAX}Gi")).await?;
    }
    Ok(())
}

/// Claims and volumes that are not yet as they should be.
pub(crate) fn unsettled(truth: &Oracle) -> Vec<String> {
    let claims =
        truth.of("persistentvolumeclaims").filter_map(|(key, it)| Some(format!("{key}: {}", claim_lacks(truth, it)?)));
    let volumes =
        truth.of("persistentvolumes").filter_map(|(key, it)| Some(format!("{key}: {}", volume_lacks(truth, it)?)));
    claims.chain(volumes).collect()
}

fn claim_lacks(truth: &Oracle, claim: &Value) -> Option<String> {
    let name = &claim["spec"]["volumeName"];
    if claim["status"]["phase"] != "Bound" {
        return Some(format!("is {}, and there are volumes for all", claim["status"]["phase"]));
    }
    let mut volumes = truth.of("persistentvolumes").map(|it| it.1);
    let is_whole =
        volumes.any(|it| it["metadata"]["name"] == *name && it["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]);
    (!is_whole).then(|| format!("is bound to {name}, which is not bound to it"))
}

fn volume_lacks(truth: &Oracle, volume: &Value) -> Option<String> {
    let (phase, uid) = (&volume["status"]["phase"], &volume["spec"]["claimRef"]["uid"]);
    let claim = truth.of("persistentvolumeclaims").map(|it| it.1).find(|it| it["metadata"]["uid"] == *uid);
    let wanted = match claim {
        _ if uid.is_null() => "Available",
        None => "Released",
        Some(claim) if claim["spec"]["volumeName"] == volume["metadata"]["name"] => "Bound",
        Some(claim) => return Some(format!("is of a claim that has {}", claim["spec"]["volumeName"])),
    };
    (*phase != *wanted).then(|| format!("is {phase}, not {wanted}"))
}
