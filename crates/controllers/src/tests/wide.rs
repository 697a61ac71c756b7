//! Objects whose lists are long, and are looked at for each of many others: so many that whoever goes through all of a list
//! for each of them does not come to an end.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES};
use corten_meta::{Key, Resource, Time};
use corten_reconcile::{Controller, Plan, Table, View, Wake};
use serde_json::{Value, json};

use crate::{Deployments, Disruption, EndpointSlices, EndpointsOfServices, LoadBalancers, ReplicaSets, VolumeBinder};

const MANY: usize = 10_000;

/// What the controller sees, and whom all of it wakes.
fn seen(controller: &dyn Controller, objects: &[(Resource, Value)]) -> (View, usize) {
    let (mut view, watches) = (View::default(), controller.watches());
    for watch in &watches {
        view.declare(&watch.resource);
        for (resource, object) in objects.iter().filter(|it| it.0 == watch.resource) {
            view.insert(resource, watch.decode(object.to_string().as_bytes()).expect("it has the shape"));
        }
    }
    let mut n_woken = 0;
    for watch in watches {
        let Wake::With(woken) = watch.wake else { continue };
        for object in view.table(&watch.resource).into_iter().flat_map(Table::iter) {
            n_woken += woken(&view, object.meta()).len();
        }
    }
    (view, n_woken)
}

fn plan(controller: &dyn Controller, objects: &[(Resource, Value)]) -> (Plan, usize) {
    let (view, n_woken) = seen(controller, objects);
    (controller.reconcile(&view, &Key::new("default", "web"), Time::from_unix_seconds(1_800_000_000)), n_woken)
}

fn named(name: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = "default".into();
    object["metadata"]["uid"] = name.into();
    object["metadata"]["labels"] = json!({ "app": "web" });
    object
}

fn pods(n: usize, spec: &Value) -> Vec<(Resource, Value)> {
    let status = json!({ "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }] });
    let pod = |it: usize| named(&format!("p{it}"), json!({ "spec": spec, "status": status }));
    (0..n).map(|it| (corten_api::resources::PODS, pod(it))).collect()
}

#[test]
fn selectors_may_name_many_values() {
    let values: Vec<String> = (0..MANY).map(|it| format!("v{it}")).collect();
    let selector = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": values }] });
    let spec = json!({ "replicas": 0, "selector": selector, "template": {} });
    for (controller, owner) in [
        (&ReplicaSets as &dyn Controller, corten_api::resources::REPLICA_SETS),
        (&Deployments, corten_api::resources::DEPLOYMENTS),
        (&Disruption, corten_api::resources::POD_DISRUPTION_BUDGETS),
    ] {
        let mut objects = pods(MANY, &json!({}));
        objects.push((owner, named("web", json!({ "spec": spec }))));
        let sets = (0..MANY).map(|it| {
            (corten_api::resources::REPLICA_SETS, named(&format!("s{it}"), json!({ "spec": { "selector": {} } })))
        });
        if controller.name() == "deployment" {
            objects.extend(sets);
        }
        let (plan, n_woken) = plan(controller, &objects);
        assert!(n_woken >= MANY, "{}: {n_woken}", controller.name());
        assert!(plan.effects.len() <= 2 * MANY);
    }
}

#[test]
fn a_service_with_many_ports_at_many_pods_is_not_begun_with() {
    let ports = |n: usize| {
        (0..n).map(|it| json!({ "name": format!("p{it}"), "port": it + 1, "targetPort": format!("t{it}"), "protocol": "TCP" })).collect::<Vec<_>>()
    };
    let service = |n: usize| {
        named(
            "web",
            json!({ "spec": { "type": "ClusterIP", "clusterIP": "10.96.0.7", "ipFamilies": ["IPv4"], "selector": { "app": "web" }, "ports": ports(n) } }),
        )
    };
    let named_ports: Vec<Value> =
        (0..5_000).map(|it| json!({ "name": format!("t{it}"), "containerPort": it + 1 })).collect();
    let spec = json!({ "nodeName": "n1", "containers": [{ "name": "c", "ports": named_ports }] });
    let node = (corten_api::resources::NODES, json!({ "metadata": { "name": "n1" } }));
    let empty = json!({});
    for controller in [&EndpointSlices as &dyn Controller, &EndpointsOfServices] {
        for (n_ports, n_pods, is_kept) in [(5_000, 10, true), (MANY, 1_000, false)] {
            let mut objects = pods(n_pods, if is_kept { &spec } else { &empty });
            objects.push((corten_api::resources::SERVICES, service(n_ports)));
            objects.push(node.clone());
            let (plan, _) = plan(controller, &objects);
            let waits: Vec<&str> = plan.waits.iter().map(|it| &*it.reason).collect();
            assert_eq!(waits.contains(&"TooManyEndpoints"), !is_kept, "{waits:?}");
            assert_eq!(plan.effects.len(), usize::from(is_kept), "{}", controller.name());
        }
    }
}

#[test]
fn balancers_may_have_many_ports() {
    let balancer = |name: &str, protocol: &str, made: &str| {
        let ports: Vec<Value> = (0..MANY).map(|it| json!({ "port": it + 40_000, "protocol": protocol })).collect();
        let mut service =
            named(name, json!({ "spec": { "type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": ports } }));
        service["metadata"]["creationTimestamp"] = made.into();
        (corten_api::resources::SERVICES, service)
    };
    let objects = [balancer("older", "UDP", "2026-01-01T00:00:00Z"), balancer("web", "TCP", "2026-01-02T00:00:00Z")];
    assert!(plan(&LoadBalancers::default(), &objects).0.waits.iter().all(|it| it.reason != "PortTaken"));
}

/// As many claims as volumes, and claims whose selectors name as many values as may be written.
#[test]
fn claims_and_volumes() {
    let values: Vec<String> = (0..MANY).map(|it| format!("v{it}")).collect();
    let modes = vec!["ReadWriteOnce"; MANY];
    let volume = |it: usize| {
        let spec =
            json!({ "storageClassName": "hand", "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] });
        let mut volume = named(&format!("v{it}"), json!({ "spec": spec, "status": { "phase": "Available" } }));
        volume["metadata"].as_object_mut().expect("an object").shift_remove("namespace");
        (PERSISTENT_VOLUMES, volume)
    };
    let claim = |it: usize, more: Value| {
        let mut spec = json!({ "storageClassName": "hand", "resources": { "requests": { "storage": "1Gi" } },
            "accessModes": ["ReadWriteOnce"] });
        spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        (PERSISTENT_VOLUME_CLAIMS, named(&format!("c{it}"), json!({ "spec": spec })))
    };
    let fitting: Vec<_> = (0..MANY).map(volume).chain((0..MANY).map(|it| claim(it, json!({})))).collect();
    let (view, n_woken) = seen(&VolumeBinder, &fitting);
    let now = Time::from_unix_seconds(1_800_000_000);
    let plan = VolumeBinder.reconcile(&view, &Key::cluster("class:hand"), now);
    assert_eq!((plan.effects.len(), n_woken), (corten_reconcile::EFFECTS_MAX, 4 * MANY));

    let selector = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": values }] });
    let picky = claim(
        0,
        json!({ "selector": selector, "accessModes": modes, "resources": { "requests": { "storage": "2Gi" } } }),
    );
    let (view, _) = seen(&VolumeBinder, &(0..MANY).map(volume).chain([picky]).collect::<Vec<_>>());
    assert!(VolumeBinder.reconcile(&view, &Key::cluster("class:hand"), now).effects.is_empty());
    let plan = VolumeBinder.reconcile(&view, &Key::new("default", "c0"), now);
    assert_eq!(plan.waits[0].reason, "StorageClassNotFound");
}
