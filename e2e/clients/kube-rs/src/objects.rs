//! Objects one by one: verbs, patches, pages, errors, dynamic types, leases.

use anyhow::Result;
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Discovery, ResourceExt,
    api::{
        DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
    },
    discovery::{self, Scope},
};
use serde_json::json;

use crate::{Room, config_map, refusal};

#[tokio::test]
async fn verbs_and_errors() -> Result<()> {
    let room = Room::new("verbs").await?;
    let api = room.config_maps();
    let create = PostParams::default();
    let mut made = api.create(&create, &config_map("a", &[("k", "1")])).await?;
    assert!(made.uid().is_some());
    let stale = made.clone();
    made.data.get_or_insert_default().insert("k".into(), "2".into());
    api.replace("a", &create, &made).await?;
    assert_eq!(api.get("a").await?.data.unwrap_or_default()["k"], "2");
    assert_eq!(refusal(api.replace("a", &create, &stale).await), (409, "Conflict".into()));
    assert_eq!(refusal(api.create(&create, &config_map("a", &[])).await), (409, "AlreadyExists".into()));
    assert_eq!(refusal(api.create(&create, &config_map("Not A Name", &[])).await), (422, "Invalid".into()));
    let deleted = api
        .delete(
            "a",
            &DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() },
        )
        .await?;
    assert!(deleted.left().is_some() || api.get_opt("a").await?.is_none());
    assert!(api.get_opt("none").await?.is_none());
    room.leave().await
}

#[tokio::test]
async fn pages_and_collections() -> Result<()> {
    let room = Room::new("pages").await?;
    let api = room.config_maps();
    for n in 0..5 {
        api.create(&PostParams::default(), &config_map(&format!("m{n}"), &[])).await?;
    }
    let (mut params, mut names) = (ListParams::default().labels("test=yes").limit(2), Vec::new());
    loop {
        let page = api.list(&params).await?;
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["m0", "m1", "m2", "m3", "m4"]);
    let metadata = api.list_metadata(&ListParams::default().labels("test=yes")).await?;
    assert_eq!(metadata.items.len(), 5);
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("test=yes")).await?;
    assert!(api.list(&ListParams::default().labels("test=yes")).await?.items.is_empty());
    room.leave().await
}

#[tokio::test]
async fn patches_of_every_kind() -> Result<()> {
    let room = Room::new("patches").await?;
    let api = room.config_maps();
    api.create(&PostParams::default(), &config_map("a", &[("k", "1"), ("gone", "1")])).await?;
    let params = PatchParams::default();
    let data = |it: k8s_openapi::api::core::v1::ConfigMap| serde_json::to_value(it.data).expect("text");
    let patched = api.patch("a", &params, &Patch::Merge(json!({ "data": { "gone": null } }))).await?;
    assert_eq!(data(patched), json!({ "k": "1" }));
    let operations = serde_json::from_value(json!([{ "op": "replace", "path": "/data/k", "value": "2" }]))?;
    let patched = api.patch("a", &params, &Patch::Json::<()>(operations)).await?;
    assert_eq!(data(patched), json!({ "k": "2" }));
    let patched = api.patch("a", &params, &Patch::Strategic(json!({ "data": { "l": "3" } }))).await?;
    assert_eq!(data(patched), json!({ "k": "2", "l": "3" }));
    room.leave().await
}

#[tokio::test]
async fn server_side_apply() -> Result<()> {
    let room = Room::new("apply").await?;
    let api = room.config_maps();
    let wanted = |data: serde_json::Value| {
        Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data }))
    };
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    api.patch("a", &first, &wanted(json!({ "shared": "1", "mine": "1" }))).await?;
    assert_eq!(refusal(api.patch("a", &second, &wanted(json!({ "shared": "2" }))).await), (409, "Conflict".into()));
    let taken = api.patch("a", &second.clone().force(), &wanted(json!({ "shared": "2" }))).await?;
    assert_eq!(taken.data.unwrap_or_default()["shared"], "2");
    let owners = taken.metadata.managed_fields.unwrap_or_default();
    let mut owners: Vec<_> = owners.into_iter().filter_map(|it| it.manager).collect();
    owners.sort();
    assert_eq!(owners, ["first", "second"]);
    let left = api.patch("a", &first, &wanted(json!({}))).await?;
    assert_eq!(left.data.unwrap_or_default().into_keys().collect::<Vec<_>>(), ["shared"]);
    room.leave().await
}

#[tokio::test]
async fn subresources() -> Result<()> {
    let room = Room::new("subresources").await?;
    let api: Api<Deployment> = Api::namespaced(room.client.clone(), &room.name);
    let deployment = serde_json::from_value(json!({ "metadata": { "name": "d" }, "spec": {
        "replicas": 0, "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } } }))?;
    api.create(&PostParams::default(), &deployment).await?;
    api.patch_scale("d", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 2 } }))).await?;
    assert_eq!(api.get_scale("d").await?.spec.and_then(|it| it.replicas), Some(2));
    let condition = json!({ "type": "Tested", "status": "True" });
    let status = Patch::Merge(json!({ "spec": { "replicas": 9 }, "status": { "conditions": [condition] } }));
    let patched = api.patch_status("d", &PatchParams::default(), &status).await?;
    assert_eq!(patched.spec.replicas, Some(2), "the status does not reach the spec");
    room.leave().await
}

#[tokio::test]
async fn kinds_are_found() -> Result<()> {
    let room = Room::new("discovery").await?;
    let found = Discovery::new(room.client.clone()).run().await?;
    let gvk = GroupVersionKind::gvk("apps", "v1", "Deployment");
    let (_, capabilities) = found.resolve_gvk(&gvk).expect("Deployments are found");
    assert_eq!(capabilities.scope, Scope::Namespaced);
    let aggregated = Discovery::new(room.client.clone()).run_aggregated().await?;
    assert!(aggregated.resolve_gvk(&gvk).is_some());
    let (resource, _) =
        discovery::oneshot::pinned_kind(&room.client, &GroupVersionKind::gvk("", "v1", "ConfigMap")).await?;
    let api: Api<DynamicObject> = Api::namespaced_with(room.client.clone(), &room.name, &resource);
    let object = DynamicObject::new("dynamic", &resource).data(json!({ "data": { "k": "1" } }));
    assert_eq!(api.create(&PostParams::default(), &object).await?.data["data"]["k"], "1");
    assert!(room.client.apiserver_version().await?.git_version.starts_with("v1."));
    room.leave().await
}

#[tokio::test]
async fn a_lease_has_one_holder() -> Result<()> {
    let room = Room::new("lease").await?;
    let api: Api<Lease> = Api::namespaced(room.client.clone(), &room.name);
    let lease =
        serde_json::from_value(json!({ "metadata": { "name": "lead" }, "spec": { "leaseDurationSeconds": 5 } }))?;
    let free: Lease = api.create(&PostParams::default(), &lease).await?;
    let held = |by: &str| {
        let mut lease = free.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(by.into());
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        lease
    };
    let params = PostParams::default();
    let (first, second) = (held("first"), held("second"));
    // Both saw it free; one of them is too late.
    let (first, second) = tokio::join!(api.replace("lead", &params, &first), api.replace("lead", &params, &second));
    let (winner, loser) = if first.is_ok() { (first, second) } else { (second, first) };
    assert_eq!(refusal(loser), (409, "Conflict".into()));
    let holder = api.get("lead").await?.spec.and_then(|it| it.holder_identity);
    assert_eq!(winner?.spec.and_then(|it| it.holder_identity), holder);
    room.leave().await
}
