//! Loops that look at all kinds know those of definitions before they decide anything, however often they and the server begin
//! anew, and whatever becomes of their requests.

use corten_api::resources::{CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, RESOURCE_QUOTAS};
use corten_client::{Client, DeleteParams, PatchType};
use corten_meta::{Key, Resource};
use serde_json::{Value, json};

use super::*;
use crate::oracle::Oracle;

const WIDGETS: Resource = Resource::namespaced("acme.io", "v1", "Widget", "widgets");
const LOOPS: [&str; 3] = ["garbage-collector", "namespace", "resourcequota"];
const SEEDS: u64 = 2;
const ROUNDS: u64 = 8;

#[test]
fn loops_that_begin_anew_know_custom_objects_before_they_decide() {
    for seed in 0..SEEDS {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let played = runtime.expect("a runtime").block_on(play(0xc057_0000 + seed));
        played.unwrap_or_else(|it| panic!("seed {seed}: {it}"));
    }
}

async fn play(seed: u64) -> Result<(), String> {
    let mut world = World::begin(seed, 1).await?;
    let client = world.observer();
    define(&world, &client).await?;
    hold(&world, &client).await?;
    world.set_weather(true);
    for round in 0..ROUNDS {
        let owner = Key::new("default", format!("back-{round}"));
        make(&client, CONFIG_MAPS, "default", &owner.name, json!({})).await?;
        let owned = json!({ "metadata": { "ownerReferences": [reference(&client, &owner).await?] } });
        make(&client, WIDGETS, "default", &format!("kept-{round}"), owned).await?;
        if world.dice.percent(40) {
            world.stop_server().await;
            world.start_server().await?;
        }
        for name in LOOPS {
            world.crash(name).await;
        }
        delete(&client, CONFIG_MAPS, &owner, "Orphan").await?;
        let gone = format!("/registry/configmaps/{owner}");
        until(&world, "an orphaning owner goes", |it| !it.objects.contains_key(&gone)).await?;
        tokio::time::sleep(world.dice.millis(0, 60_000)).await;
        world.check()?;
        all_is_there(&world.truth.lock(), round)?;
    }
    world.set_weather(false);
    for (namespace, name) in [("held", "o"), ("default", "dependent")] {
        let patch = json!({ "metadata": { "finalizers": null } });
        let freed = client.patch(&WIDGETS, &Key::new(namespace, name), "", &PatchType::Merge, &patch).await;
        freed.map_err(|error| format!("cannot free {namespace}/{name}: {error}"))?;
    }
    converge(&world).await?;
    {
        let truth = world.truth.lock();
        let left = ["/registry/namespaces/held", "/registry/configmaps/default/front"];
        if let Some(left) = left.into_iter().find(|it| truth.objects.contains_key(*it)) {
            return Err(format!("{left} is still there, and nothing holds it"));
        }
    }
    world.end().await;
    Ok(())
}

async fn define(world: &World, client: &Client) -> Result<(), String> {
    let version = json!({ "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } });
    let names = json!({ "plural": "widgets", "singular": "widget", "kind": "Widget" });
    let spec = json!({ "group": "acme.io", "scope": "Namespaced", "names": names, "versions": [version] });
    make(client, CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.acme.io", json!({ "spec": spec })).await?;
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.acme.io";
    let is_established = |it: &Oracle| {
        let conditions = it.objects.get(key).and_then(|it| it["status"]["conditions"].as_array());
        conditions.is_some_and(|it| it.iter().any(|it| it["type"] == "Established" && it["status"] == "True"))
    };
    until(world, "the definition is established", is_established).await
}

/// A namespace and an owner in foreground deletion that wait for widgets, and a quota that is used up.
async fn hold(world: &World, client: &Client) -> Result<(), String> {
    for namespace in ["held", "counted"] {
        make(client, NAMESPACES, "", namespace, json!({})).await?;
    }
    let finalizers = json!(["acme.io/clean"]);
    make(client, WIDGETS, "held", "o", json!({ "metadata": { "finalizers": finalizers } })).await?;
    delete(client, NAMESPACES, &Key::cluster("held"), "Background").await?;
    let front = Key::new("default", "front");
    make(client, CONFIG_MAPS, "default", "front", json!({})).await?;
    let owners = [reference(client, &front).await?];
    let dependent = json!({ "metadata": { "finalizers": finalizers, "ownerReferences": owners } });
    make(client, WIDGETS, "default", "dependent", dependent).await?;
    delete(client, CONFIG_MAPS, &front, "Foreground").await?;
    let hard = json!({ "spec": { "hard": { "count/widgets.acme.io": "2" } } });
    make(client, RESOURCE_QUOTAS, "counted", "two", hard).await?;
    until(world, "the quota is counted", |it| used(it) == "0").await?;
    for name in ["a", "b"] {
        make(client, WIDGETS, "counted", name, json!({})).await?;
    }
    until(world, "both are charged", |it| used(it) == "2").await
}

fn all_is_there(truth: &Oracle, round: u64) -> Result<(), String> {
    for held in ["/registry/namespaces/held", "/registry/configmaps/default/front"] {
        if !truth.objects.contains_key(held) {
            return Err(format!("{held} went, and what holds it is there"));
        }
    }
    for n in 0..=round {
        let kept = truth.objects.get(&format!("/registry/acme.io/widgets/default/kept-{n}"));
        if kept.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string()) {
            return Err(format!("kept-{n} was deleted with an owner that was to orphan it"));
        }
    }
    let used = used(truth);
    if used == "2" { Ok(()) } else { Err(format!("two widgets are counted as {used:?}")) }
}

fn used(truth: &Oracle) -> &str {
    let quota = truth.objects.get("/registry/resourcequotas/counted/two");
    quota.and_then(|it| it["status"]["used"]["count/widgets.acme.io"].as_str()).unwrap_or_default()
}

async fn make(client: &Client, resource: Resource, namespace: &str, name: &str, more: Value) -> Result<(), String> {
    let mut object = json!({ "apiVersion": resource.api_version(), "kind": resource.kind });
    object.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
    object["metadata"]["name"] = json!(name);
    let made = client.create(&resource, namespace, &object).await;
    made.map(drop).map_err(|error| format!("cannot create {resource} {namespace}/{name}: {error}"))
}

async fn delete(client: &Client, resource: Resource, key: &Key, propagation: &'static str) -> Result<(), String> {
    let params = DeleteParams { propagation, ..DeleteParams::default() };
    let deleted = client.delete(&resource, key, &params).await;
    deleted.map(drop).map_err(|error| format!("cannot delete {resource} {key}: {error}"))
}

async fn reference(client: &Client, owner: &Key) -> Result<Value, String> {
    let object = client.get_as::<Value>(&CONFIG_MAPS, owner).await;
    let object = object.map_err(|error| format!("cannot read {owner}: {error}"))?;
    let uid = &object["metadata"]["uid"];
    Ok(json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": uid, "blockOwnerDeletion": true }))
}

async fn until(world: &World, what: &str, is_so: impl Fn(&Oracle) -> bool) -> Result<(), String> {
    let deadline = world.elapsed() + PATIENCE;
    while !is_so(&world.truth.lock()) {
        world.check()?;
        if world.elapsed() > deadline {
            return Err(format!("never: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
