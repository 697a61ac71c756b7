//! Stateful sets and jobs in the script, and what must hold of them.

use corten_api::resources::{JOBS, STATEFUL_SETS};
use corten_client::{Client, DeleteParams, PatchType};
use corten_meta::Key;
use serde_json::{Value, json};

use crate::{again::again, oracle::Oracle, successes::is_tracked, world::World};

/// Creates the stateful set, or changes it where it is there.
pub(crate) async fn stateful_set(world: &World, admin: &Client, namespace: &str) -> Result<String, String> {
    let dice = &world.dice;
    let key = Key::new(namespace, "db");
    if dice.percent(15) {
        return delete(world, admin, &STATEFUL_SETS, &key).await;
    }
    let (replicas, version) = (dice.below(4), dice.below(3));
    let policy = if dice.percent(50) { "Parallel" } else { "OrderedReady" };
    let metadata = json!({"name": key.name, "namespace": namespace});
    let spec = json!({"replicas": replicas, "serviceName": "db", "podManagementPolicy": policy,
                      "selector": {"matchLabels": {"app": "db"}}, "template": template("db", version)});
    let object = json!({"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": metadata, "spec": spec});
    let created = again(async || admin.create(&STATEFUL_SETS, namespace, &object).await).await?;
    if created != "AlreadyExists" {
        return Ok(format!("create stateful set {key} with {replicas} replicas of v{version}: {created}"));
    }
    let patch = if dice.percent(50) {
        json!({"spec": {"replicas": replicas}})
    } else {
        json!({"spec": {"template": template("db", version)}})
    };
    let patched = again(async || admin.patch(&STATEFUL_SETS, &key, "", &PatchType::Strategic, &patch).await).await?;
    Ok(format!("patch stateful set {key} to {patch}: {patched}"))
}

/// Creates a job, or deletes it where it is there.
pub(crate) async fn job(world: &World, admin: &Client, namespace: &str) -> Result<String, String> {
    let dice = &world.dice;
    let key = Key::new(namespace, format!("sum-{}", dice.below(3)));
    let (completions, parallelism) = (1 + dice.below(4), 1 + dice.below(3));
    let mode = if dice.percent(50) { "Indexed" } else { "NonIndexed" };
    let mut template = template(&key.name, 0);
    template["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({"completions": completions, "parallelism": parallelism, "completionMode": mode,
                      "backoffLimit": 20, "template": template});
    let metadata = json!({"name": key.name, "namespace": namespace});
    let object = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": spec});
    let created = again(async || admin.create(&JOBS, namespace, &object).await).await?;
    if created == "AlreadyExists" && dice.percent(40) {
        return delete(world, admin, &JOBS, &key).await;
    }
    Ok(format!("create job {key}, {completions} times, {parallelism} at once, {mode}: {created}"))
}

async fn delete(world: &World, admin: &Client, resource: &corten_meta::Resource, key: &Key) -> Result<String, String> {
    let propagation = *world.dice.pick(&["Background", "Foreground", "Orphan"]).expect("not empty");
    let params = DeleteParams { propagation, ..DeleteParams::default() };
    let deleted = again(async || admin.delete(resource, key, &params).await).await?;
    Ok(format!("delete {} {key} ({propagation}): {deleted}", resource.kind))
}

fn template(app: &str, version: u64) -> Value {
    let image = format!("app:v{version}");
    let container = json!({"name": "c", "image": image, "resources": {"requests": {"cpu": "50m"}}});
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}})
}

/// What is not yet as it should be.
pub(crate) fn unsettled(truth: &Oracle) -> Vec<String> {
    let mut missing = Vec::new();
    for (key, set) in truth.of("statefulsets") {
        let (spec, status) = (&set["spec"], &set["status"]);
        let wanted = spec["replicas"].as_i64().unwrap_or(1);
        let number = |name: &str| status[name].as_i64().unwrap_or(0);
        let counts = ["replicas", "readyReplicas", "updatedReplicas", "currentReplicas", "availableReplicas"];
        for count in counts.into_iter().filter(|it| number(it) != wanted) {
            missing.push(format!("{key}: {count} is {}, not {wanted}", number(count)));
        }
        if status["currentRevision"] != status["updateRevision"] {
            missing.push(format!("{key}: its update is not complete"));
        }
        let active = truth.active_pods(set["metadata"]["uid"].as_str().unwrap_or_default());
        if active != wanted {
            missing.push(format!("{key} wants {wanted} pods, has {active}"));
        }
    }
    for (key, job) in truth.of("jobs") {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let is_over =
            conditions.filter(|it| it["status"] == "True").any(|it| it["type"] == "Complete" || it["type"] == "Failed");
        if !is_over {
            missing.push(format!("{key} is not over: {}", job["status"]));
        }
    }
    for (key, pod) in truth.of("pods").filter(|it| is_tracked(it.1)) {
        missing.push(format!("{key} waits to be counted ({})", pod["status"]["phase"]));
    }
    missing
}
