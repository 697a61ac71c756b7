//! What users and fate do to the cluster while it is watched: a script made from the seed.

use corten_api::resources::{DEPLOYMENTS, NAMESPACES, PODS};
use corten_client::{Client, DeleteParams, PatchType};
use corten_meta::Key;
use serde_json::{Value, json};

use crate::{again::again, contention, planes, storage, workloads, world::World};

const STEPS: u64 = 25;
const NAMESPACE_NAMES: [&str; 3] = ["default", "a", "b"];
const DEPLOYMENT_NAMES: [&str; 3] = ["big", "web", "api"];

/// Plays the whole script; gives a line for each thing that was done.
///
/// # Errors
/// A rule was broken, or the server refused something that is valid.
pub(crate) async fn play(world: &mut World, trail: &mut Vec<String>) -> Result<(), String> {
    let admin = world.admin();
    for _ in 0..STEPS {
        let at = world.elapsed().as_secs_f64();
        if world.has_several_planes() && world.dice.percent(60) {
            let done = planes::act(world).await;
            trail.push(format!("{at:9.3} s  {done}"));
        }
        let at = world.elapsed().as_secs_f64();
        let done = step(world, &admin).await?;
        trail.push(format!("{at:9.3} s  {done}"));
        let pause = if world.dice.percent(20) { world.dice.millis(20_000, 90_000) } else { world.dice.millis(0, 8000) };
        tokio::time::sleep(pause).await;
        world.check()?;
    }
    storage::provide(&admin, NAMESPACE_NAMES.len() as u64).await
}

async fn step(world: &mut World, admin: &Client) -> Result<String, String> {
    let dice = world.dice.clone();
    let namespace = *dice.pick(&NAMESPACE_NAMES).expect("not empty");
    let name = *dice.pick(&DEPLOYMENT_NAMES).expect("not empty");
    let key = Key::new(namespace, name);
    match dice.below(100) {
        0..18 => apply(world, admin, &key).await,
        18..24 => contention::act(world, admin).await,
        24..32 => storage::act(world, admin, namespace).await,
        32..40 => workloads::stateful_set(world, admin, namespace).await,
        40..50 => workloads::job(world, admin, namespace).await,
        50..55 => bare_pod(admin, namespace, dice.below(4)).await,
        55..68 => delete_pod(world, admin).await,
        68..76 => {
            let propagation = *dice.pick(&["Background", "Foreground", "Orphan"]).expect("not empty");
            let params = DeleteParams { propagation, ..DeleteParams::default() };
            let deleted = again(async || admin.delete(&DEPLOYMENTS, &key, &params).await).await?;
            Ok(format!("delete deployment {key} ({propagation}): {deleted}"))
        }
        76..80 if namespace != "default" => {
            let deleted =
                again(async || admin.delete(&NAMESPACES, &Key::cluster(namespace), &DeleteParams::default()).await)
                    .await?;
            Ok(format!("delete namespace {namespace}: {deleted}"))
        }
        76..82 => Ok(world.trouble_the_store()),
        82..94 => {
            let names = world.component_names();
            let name = dice.pick(&names).expect("not empty");
            world.crash(name).await;
            Ok(format!("crash {name}"))
        }
        _ if world.has_several_planes() => Ok(planes::act(world).await),
        _ => {
            world.stop_server().await;
            let down = dice.millis(0, 5000);
            tokio::time::sleep(down).await;
            world.start_server().await?;
            Ok(format!("restart the API server, down for {down:?}"))
        }
    }
}

/// Creates the deployment, or changes it where it is there.
async fn apply(world: &World, admin: &Client, key: &Key) -> Result<String, String> {
    let dice = &world.dice;
    // Few enough that all of them fit the nodes, with one more of each while they are replaced.
    let replicas = dice.below(if key.name == "big" { 3 } else { 5 });
    let version = dice.below(3);
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": key.namespace}});
    let made = again(async || admin.create(&NAMESPACES, "", &namespace).await).await?;
    let strategy = match dice.below(4) {
        0 => json!({"type": "Recreate"}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}),
        2 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
        _ => json!({"type": "RollingUpdate"}),
    };
    let object = deployment(key, replicas, version, &strategy);
    let created = again(async || admin.create(&DEPLOYMENTS, &key.namespace, &object).await).await?;
    if created != "AlreadyExists" {
        return Ok(format!("create deployment {key} with {replicas} replicas of v{version}: {created} ({made})"));
    }
    let spec =
        if dice.percent(50) { json!({"replicas": replicas}) } else { json!({"template": template(key, version)}) };
    let patch = json!({"spec": spec});
    let patched = again(async || admin.patch(&DEPLOYMENTS, key, "", &PatchType::Strategic, &patch).await).await?;
    Ok(format!(
        "patch deployment {key} {}: {patched}",
        if patch["spec"]["replicas"].is_null() { format!("v{version}") } else { format!("to {replicas}") }
    ))
}

fn deployment(key: &Key, replicas: u64, version: u64, strategy: &Value) -> Value {
    json!({
        "kind": "Deployment", "apiVersion": "apps/v1",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": key.name}},
            "strategy": strategy,
            "template": template(key, version),
        },
    })
}

fn template(key: &Key, version: u64) -> Value {
    let cpu = if key.name == "big" { "700m" } else { "100m" };
    let container = json!({"name": "c", "image": format!("app:v{version}"), "resources": {"requests": {"cpu": cpu}}});
    json!({"metadata": {"labels": {"app": key.name}}, "spec": {"containers": [container]}})
}

/// A pod that nobody owns: it is never replaced.
async fn bare_pod(admin: &Client, namespace: &str, number: u64) -> Result<String, String> {
    let key = Key::new(namespace, format!("bare-{number}"));
    let container = json!({"name": "c", "image": "app", "resources": {"requests": {"cpu": "50m"}}});
    let metadata = json!({"name": key.name, "namespace": namespace});
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": [container]}});
    let created = again(async || admin.create(&PODS, namespace, &pod).await).await?;
    Ok(format!("create pod {key}: {created}"))
}

async fn delete_pod(world: &World, admin: &Client) -> Result<String, String> {
    let keys: Vec<Key> = {
        let truth = world.truth.lock();
        let key = |it: &str| Some(Key::parse(it.strip_prefix("/registry/pods/")?));
        truth.of("pods").filter_map(|it| key(it.0)).collect()
    };
    let Some(key) = world.dice.pick(&keys) else { return Ok("no pod to delete".into()) };
    let deleted = again(async || admin.delete(&PODS, key, &DeleteParams::default()).await).await?;
    Ok(format!("delete pod {key}: {deleted}"))
}
