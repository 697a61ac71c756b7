//! Pods that fight for room: a Deployment of low priority that fills the nodes, Pods of high priority that evict its Pods, budgets, gangs
//! that come whole or not at all, and one that is too large for the cluster. None of them stays to the end but a gang that fits.

use corten_api::resources::{DEPLOYMENTS, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, PRIORITY_CLASSES};
use corten_client::{Client, DeleteParams, PatchType};
use corten_meta::{Key, Resource};
use serde_json::{Value, json};

use crate::{again::again, fights::HUGE, world::World};

const NAMESPACE: &str = "default";
const FILLER: &str = "filler";
const HUGE_SIZE: u64 = 5;
const GANG_SIZE: u64 = 3;

/// Does one thing of it.
pub(crate) async fn act(world: &World, admin: &Client) -> Result<String, String> {
    for (name, value) in [("high", 1000), ("low", -10)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        again(async || admin.create(&PRIORITY_CLASSES, "", &class).await).await?;
    }
    let dice = &world.dice;
    match dice.below(10) {
        0..4 => filler(world, admin).await,
        4..6 => {
            let name = format!("vip-{}", dice.below(3));
            make_or_delete(world, admin, &PODS, pod(&name, "700m", "high", None)).await
        }
        6 => {
            let spec = json!({"maxUnavailable": dice.below(2), "selector": {"matchLabels": {"app": FILLER}}});
            make_or_delete(world, admin, &POD_DISRUPTION_BUDGETS, json!({"metadata": {"name": FILLER}, "spec": spec}))
                .await
        }
        7..9 => {
            let (name, priority) = *dice.pick(&[("team-a", "high"), ("team-b", "low")]).expect("not empty");
            gang(world, admin, name, (GANG_SIZE, "600m"), priority).await
        }
        _ => gang(world, admin, HUGE, (HUGE_SIZE, "2"), "high").await,
    }
}

/// More than the nodes have room for, now and then.
async fn filler(world: &World, admin: &Client) -> Result<String, String> {
    let (key, replicas) = (Key::new(NAMESPACE, FILLER), world.dice.below(14));
    let mut template = json!({"metadata": {"labels": {"app": FILLER}}});
    template["spec"] = pod(FILLER, "600m", "low", None)["spec"].take();
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": FILLER}}, "template": template});
    let object = json!({"metadata": {"name": FILLER}, "spec": spec});
    let created = again(async || admin.create(&DEPLOYMENTS, NAMESPACE, &object).await).await?;
    let patch = json!({"spec": {"replicas": replicas}});
    let patched = again(async || admin.patch(&DEPLOYMENTS, &key, "", &PatchType::Merge, &patch).await).await?;
    Ok(format!("fill with {replicas} pods of low priority: {created}, {patched}"))
}

/// Makes a gang, its Pods in any order with their group, or deletes it.
async fn gang(
    world: &World,
    admin: &Client,
    name: &str,
    (size, cpu): (u64, &str),
    priority: &str,
) -> Result<String, String> {
    if world.dice.percent(30) {
        return delete_gang(admin, name, size).await;
    }
    let mut done = Vec::new();
    for it in 0..size {
        if it == size / 2 {
            done.push(make(admin, &POD_GROUPS, &group(name, size, priority)).await?);
        }
        done.push(make(admin, &PODS, &pod(&format!("{name}-{it}"), cpu, priority, Some(name))).await?);
    }
    Ok(format!("create gang {name}: {}", done.join(", ")))
}

async fn delete_gang(admin: &Client, name: &str, size: u64) -> Result<String, String> {
    let mut done = vec![delete(admin, &POD_GROUPS, name).await?];
    for it in 0..size {
        done.push(delete(admin, &PODS, &format!("{name}-{it}")).await?);
    }
    Ok(format!("delete gang {name}: {}", done.join(", ")))
}

/// The fight is over: all that does not fit goes, and a gang comes that does, where gangs are placed: not beside an extender that is asked
/// about all Pods.
pub(crate) async fn end(admin: &Client, has_extender: bool) -> Result<(), String> {
    delete(admin, &DEPLOYMENTS, FILLER).await?;
    for (name, size) in [("team-a", GANG_SIZE), ("team-b", GANG_SIZE), (HUGE, HUGE_SIZE)] {
        delete_gang(admin, name, size).await?;
    }
    for it in 0..3 {
        delete(admin, &PODS, &format!("vip-{it}")).await?;
    }
    if has_extender {
        return Ok(());
    }
    make(admin, &POD_GROUPS, &group("late", GANG_SIZE, "low")).await?;
    for it in 0..GANG_SIZE {
        make(admin, &PODS, &pod(&format!("late-{it}"), "100m", "low", Some("late"))).await?;
    }
    Ok(())
}

fn pod(name: &str, cpu: &str, priority: &str, group: Option<&str>) -> Value {
    let container = json!({"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}});
    let mut spec = json!({"containers": [container], "priorityClassName": priority});
    if let Some(group) = group {
        spec["schedulingGroup"] = json!({"podGroupName": group});
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn group(name: &str, size: u64, priority: &str) -> Value {
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": size}}, "priorityClassName": priority});
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn make(admin: &Client, resource: &Resource, object: &Value) -> Result<String, String> {
    again(async || admin.create(resource, NAMESPACE, object).await).await
}

async fn delete(admin: &Client, resource: &Resource, name: &str) -> Result<String, String> {
    let key = Key::new(NAMESPACE, name);
    again(async || admin.delete(resource, &key, &DeleteParams::default()).await).await
}

async fn make_or_delete(world: &World, admin: &Client, resource: &Resource, object: Value) -> Result<String, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if world.dice.percent(30) {
        return Ok(format!("delete {} {name}: {}", resource.kind, delete(admin, resource, name).await?));
    }
    Ok(format!("create {} {name}: {}", resource.kind, make(admin, resource, &object).await?))
}
