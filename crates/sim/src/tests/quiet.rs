//! A cluster that has all it wants, with objects of the kinds that loops look after, writes nothing but its nodes' leases.

use corten_api::resources::{
    CONFIG_MAPS, ENDPOINT_SLICES, ENDPOINTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    RESOURCE_QUOTAS, SERVICES, STATEFUL_SETS,
};
use corten_meta::Resource;
use serde_json::{Value, json};

use super::*;

/// Longer than every loop's resync, shorter than the hour after which events end.
const QUIET: Duration = Duration::from_secs(45 * 60);

#[test]
fn at_rest_only_leases_are_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(rest(0x9e57)).expect("silence");
}

async fn rest(seed: u64) -> Result<(), String> {
    let world = World::begin(seed, 1).await?;
    let admin = world.admin();
    for (resource, object) in objects() {
        let namespace = if resource.namespaced { "default" } else { "" };
        let created = admin.create(&resource, namespace, &object).await;
        created.map_err(|error| format!("cannot create {resource}: {error}"))?;
    }
    converge(&world).await?;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let before = world.truth.lock().revision;
    tokio::time::sleep(QUIET).await;
    world.check()?;
    everything_was_looked_after(&world)?;
    {
        let truth = world.truth.lock();
        let writes: Vec<&String> = truth.log.range(before + 1..).flat_map(|it| it.1).collect();
        let others: Vec<&&String> = writes.iter().filter(|it| !it.starts_with("/registry/leases/")).collect();
        if !others.is_empty() {
            return Err(format!("{} writes in {QUIET:?}: {others:?}", others.len()));
        }
        if writes.is_empty() {
            return Err("not even a lease was written: the nodes are dead".into());
        }
    }
    world.end().await;
    Ok(())
}

/// Otherwise the silence would be that of loops which do not run.
fn everything_was_looked_after(world: &World) -> Result<(), String> {
    let truth = world.truth.lock();
    let holds = |resource: &Resource, path: &str, expected: &Value| {
        let of_kind = truth.objects.values().filter(|it| it["kind"] == *resource.kind);
        let found: Vec<&Value> = of_kind.filter_map(|it| it.pointer(path)).collect();
        let is_there = found.contains(&expected);
        is_there.then_some(()).ok_or_else(|| format!("of {resource}, none has {expected} at {path}: {found:?}"))
    };
    holds(&ENDPOINT_SLICES, "/metadata/labels/kubernetes.io~1service-name", &json!("web"))?;
    holds(&ENDPOINTS, "/metadata/labels/endpoints.kubernetes.io~1managed-by", &json!("endpoint-controller"))?;
    holds(&POD_DISRUPTION_BUDGETS, "/status/disruptionsAllowed", &json!(2))?;
    holds(&RESOURCE_QUOTAS, "/status/used/pods", &json!("5"))?;
    holds(&CONFIG_MAPS, "/metadata/name", &json!("kube-root-ca.crt"))?;
    holds(&PERSISTENT_VOLUME_CLAIMS, "/metadata/finalizers/0", &json!("kubernetes.io/pvc-protection"))?;
    holds(&PERSISTENT_VOLUME_CLAIMS, "/status/phase", &json!("Bound"))
}

fn objects() -> Vec<(Resource, Value)> {
    let labels = json!({ "app": "web" });
    let container = json!({ "name": "c", "image": "app", "resources": { "requests": { "cpu": "10m" } } });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let selector = json!({ "matchLabels": labels });
    let named = |resource: Resource, name: &str, spec: Value| {
        let object = json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "metadata": { "name": name },
            "spec": spec,
        });
        (resource, object)
    };
    let storage = json!({ "requests": { "storage": "1Gi" } });
    vec![
        named(RESOURCE_QUOTAS, "all", json!({ "hard": { "pods": "10", "requests.cpu": "1" } })),
        named(POD_DISRUPTION_BUDGETS, "web", json!({ "minAvailable": 3, "selector": selector })),
        named(SERVICES, "web", json!({ "selector": labels, "ports": [{ "port": 80 }] })),
        named(SERVICES, "none", json!({ "selector": { "app": "none" }, "ports": [{ "port": 80 }] })),
        named(SERVICES, "headless", json!({ "selector": labels, "clusterIP": "None" })),
        named(
            PERSISTENT_VOLUMES,
            "disk",
            json!({ "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/srv" } }),
        ),
        named(PERSISTENT_VOLUME_CLAIMS, "data", json!({ "accessModes": ["ReadWriteOnce"], "resources": storage })),
        named(DEPLOYMENTS, "web", json!({ "replicas": 3, "selector": selector, "template": template })),
        named(
            STATEFUL_SETS,
            "web",
            json!({ "replicas": 2, "serviceName": "headless", "selector": selector, "template": template }),
        ),
    ]
}
