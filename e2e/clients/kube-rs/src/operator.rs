//! An operator as they are written with kube-rs: a kind of its own by `derive`, children by server-side apply, a finalizer,
//! a status, and two candidates of which one leads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, KubeSchema, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::Action,
        finalizer::{Error as Finalizing, Event, finalizer},
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{task::JoinHandle, time::timeout};

use crate::{PATIENCE, Room, leading::Candidate, refusal};

const OPERATOR: &str = "sites.example.com";

#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced, shortname = "st", category = "all")]
#[kube(status = "SiteStatus", selectable = ".spec.greeting")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
#[kube(printcolumn(name = "Greeting", type_ = "string", json_path = ".spec.greeting"))]
#[serde(rename_all = "camelCase")]
struct SiteSpec {
    /// What every page begins with.
    #[schemars(length(min = 1, max = 80))]
    #[x_kube(validation = Rule::new("self != 'forbidden'").message("say something else"))]
    greeting: String,
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 9))]
    replicas: i32,
    #[serde(default)]
    pages: BTreeMap<String, String>,
}

fn two() -> i32 {
    2
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
struct SiteStatus {
    observed_generation: Option<i64>,
    replicas: i32,
    written_by: String,
}

/// What each reconciliation is given.
struct Operator {
    client: Client,
    identity: &'static str,
}

async fn reconcile(site: Arc<Site>, context: Arc<Operator>) -> Result<Action, Finalizing<kube::Error>> {
    let namespace = site.namespace().unwrap_or_default();
    let sites: Api<Site> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&sites, "sites.example.com/goodbye", site, |event| async {
        match event {
            Event::Apply(site) => apply(&context, &namespace, &site).await,
            Event::Cleanup(site) => say_goodbye(&context, &namespace, &site).await,
        }
    })
    .await
}

/// Pages and Pods of a site, and what is known of them.
async fn apply(context: &Operator, namespace: &str, site: &Site) -> kube::Result<Action> {
    let (name, owner) = (site.name_any(), site.controller_owner_ref(&()));
    let params = PatchParams::apply(OPERATOR).force();
    let mut pages = site.spec.pages.clone();
    pages.insert("index".into(), site.spec.greeting.clone());
    let pages = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": [owner] }, "data": pages });
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    config_maps.patch(&name, &params, &Patch::Apply(pages)).await?;

    let labels = json!({ "site": name });
    let pods = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "ownerReferences": [owner] },
        "spec": { "replicas": site.spec.replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } } } });
    let deployments: Api<Deployment> = Api::namespaced(context.client.clone(), namespace);
    let deployment = deployments.patch(&name, &params, &Patch::Apply(pods)).await?;

    let status = SiteStatus {
        observed_generation: site.metadata.generation,
        replicas: deployment.spec.replicas.unwrap_or_default(),
        written_by: context.identity.into(),
    };
    let status = json!({ "apiVersion": Site::api_version(&()), "kind": Site::kind(&()), "status": status });
    let sites: Api<Site> = Api::namespaced(context.client.clone(), namespace);
    sites.patch_status(&name, &params, &Patch::Apply(status)).await?;
    Ok(Action::requeue(Duration::from_secs(60)))
}

async fn say_goodbye(context: &Operator, namespace: &str, site: &Site) -> kube::Result<Action> {
    let name = format!("goodbye-{}", site.name_any());
    let goodbye = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    match config_maps.patch(&name, &PatchParams::apply(OPERATOR).force(), &Patch::Apply(goodbye)).await {
        // A namespace that goes takes nothing new.
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Action::await_change()),
        other => other.map(|_| Action::await_change()),
    }
}

/// Not in the namespace that goes in the end: who leads would lose its lease with it, before its last work is done.
fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "default")
}

/// One process of the operator, which works while it leads.
fn start(room: &Room, identity: &'static str) -> JoinHandle<Result<()>> {
    let (client, namespace) = (room.client.clone(), room.name.clone());
    tokio::spawn(async move {
        let leases = leases(&client);
        let sites: Api<Site> = Api::namespaced(client.clone(), &namespace);
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        let work = Controller::new(sites, watcher::Config::default().streaming_lists())
            .owns(config_maps, watcher::Config::default())
            .owns(deployments, watcher::Config::default())
            .run(reconcile, |_, _, _| Action::requeue(RETRY), Arc::new(Operator { client, identity }))
            .for_each(|_| async {});
        Candidate { leases, lease: OPERATOR, identity }.work_while_leading(work).await
    })
}

const RETRY: Duration = Duration::from_millis(200);

async fn define(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(OPERATOR).force();
    definitions.patch(Site::crd_name(), &params, &Patch::Apply(Site::crd())).await?;
    timeout(PATIENCE, await_condition(definitions, Site::crd_name(), conditions::is_crd_established())).await??;
    Ok(())
}

/// Waits until the operator has seen to the site as it is now.
async fn seen_to(sites: &Api<Site>, name: &str, by: &'static str) -> Result<SiteStatus> {
    let is_seen = move |it: Option<&Site>| {
        it.and_then(|it| Some((it.metadata.generation, it.status.as_ref()?)))
            .is_some_and(|(generation, it)| it.observed_generation == generation && it.written_by == by)
    };
    let site = timeout(PATIENCE, await_condition(sites.clone(), name, is_seen)).await??;
    site.and_then(|it| it.status).context("a status")
}

#[tokio::test]
async fn an_operator_with_a_kind_of_its_own() -> Result<()> {
    let room = Room::new("operator").await?;
    define(&room.client).await?;
    let sites: Api<Site> = Api::namespaced(room.client.clone(), &room.name);
    let (first, create) = (start(&room, "first"), PostParams::default());
    let leases = leases(&room.client);
    let is_held = |it: Option<&Lease>| it.and_then(|it| it.spec.as_ref()?.holder_identity.as_deref()).is_some();
    timeout(PATIENCE, await_condition(leases.clone(), OPERATOR, is_held)).await??;
    let second = start(&room, "second");

    // The schema that was derived is kept: defaults, bounds, rules.
    let site =
        |greeting: &str| Site::new("home", serde_json::from_value(json!({ "greeting": greeting })).expect("a spec"));
    for bad in ["", "forbidden"] {
        assert_eq!(refusal(sites.create(&create, &site(bad)).await), (422, "Invalid".into()), "{bad:?}");
    }
    let bare = json!({ "apiVersion": "example.com/v1", "kind": "Site", "metadata": { "name": "home" },
        "spec": { "greeting": "hello" } });
    let made = sites.patch("home", &PatchParams::apply("somebody"), &Patch::Apply(bare)).await?;
    assert_eq!(made.spec.replicas, 2, "the default is the server's");
    assert_eq!(seen_to(&sites, "home", "first").await?.replicas, 2);

    children_follow(&room, &sites).await?;

    // The leader dies; the other one takes over when its lease is over.
    first.abort();
    sites
        .patch("home", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "greeting": "hello again" } })))
        .await?;
    seen_to(&sites, "home", "second").await?;
    let lease = leases.get(OPERATOR).await?.spec.context("a spec")?;
    assert_eq!((lease.holder_identity.as_deref(), lease.lease_transitions), (Some("second"), Some(1)));

    goes_with_all(&room, &sites).await?;
    second.abort();
    leases.delete(OPERATOR, &DeleteParams::default()).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(room.client.clone());
    let uid = definitions.get(Site::crd_name()).await?.uid().unwrap_or_default();
    definitions.delete(Site::crd_name(), &DeleteParams::default()).await?;
    timeout(PATIENCE, await_condition(definitions, Site::crd_name(), conditions::is_deleted(&uid))).await??;
    Ok(())
}

async fn children_follow(room: &Room, sites: &Api<Site>) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(room.client.clone(), &room.name);
    sites.patch_scale("home", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 3 } }))).await?;
    let has_three = |it: Option<&Deployment>| it.and_then(|it| it.spec.replicas) == Some(3);
    timeout(PATIENCE, await_condition(deployments, "home", has_three)).await??;

    // What others change of what it owns is put back; what it does not own stays.
    let config_maps = room.config_maps();
    let change = json!({ "data": { "index": "tampered", "theirs": "1" } });
    config_maps.patch("home", &PatchParams::default(), &Patch::Merge(change)).await?;
    let is_mended = |it: Option<&ConfigMap>| {
        let data = it.and_then(|it| it.data.as_ref());
        data.is_some_and(|it| it["index"] == "hello" && it.contains_key("theirs"))
    };
    timeout(PATIENCE, await_condition(config_maps, "home", is_mended)).await??;

    let found = sites.list(&ListParams::default().fields("spec.greeting=hello")).await?;
    assert_eq!(found.items.len(), 1, "the field is selectable");
    Ok(())
}

/// The finalizer does its work, and the children go with their owner; a namespace takes all that is left along.
async fn goes_with_all(room: &Room, sites: &Api<Site>) -> Result<()> {
    let config_maps = room.config_maps();
    let owner = sites.get("home").await?.uid().unwrap_or_default();
    let pages = config_maps.get("home").await?.uid().unwrap_or_default();
    sites.delete("home", &DeleteParams::default()).await?;
    timeout(PATIENCE, await_condition(sites.clone(), "home", conditions::is_deleted(&owner))).await??;
    timeout(PATIENCE, await_condition(config_maps.clone(), "home", conditions::is_deleted(&pages))).await??;
    config_maps.get("goodbye-home").await?;

    let spec = SiteSpec { greeting: "last".into(), replicas: 0, pages: BTreeMap::new() };
    sites.create(&PostParams::default(), &Site::new("last", spec)).await?;
    seen_to(sites, "last", "second").await?;
    let namespaces: Api<Namespace> = Api::all(room.client.clone());
    let uid = namespaces.get(&room.name).await?.uid().unwrap_or_default();
    namespaces.delete(&room.name, &DeleteParams::default()).await?;
    timeout(PATIENCE, await_condition(namespaces, &room.name, conditions::is_deleted(&uid))).await??;
    Ok(())
}
