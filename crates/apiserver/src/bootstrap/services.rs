//! The range of Services' addresses, and the Service by which Pods find this server.

use std::net::{IpAddr, SocketAddr};

use corten_api::resources::{ENDPOINT_SLICES, ENDPOINTS, SERVICE_CIDRS, SERVICES};
use corten_meta::{Key, Resource, Status, address::Cidr};
use http::Method;
use serde_json::{Value, json};

use super::{Write, send};
use crate::{filters::catch_up::caught_up, state::State};

const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
const HTTPS: u16 = 443;
/// Where the server is thought to listen while it does not say.
const PORT: u16 = 6443;

static RANGES_AT: Resource = SERVICE_CIDRS;
static SERVICES_AT: Resource = SERVICES;
static ENDPOINTS_AT: Resource = ENDPOINTS;
static SLICES_AT: Resource = ENDPOINT_SLICES;

pub(super) async fn run(state: &State) -> Result<(), Status> {
    range(state).await?;
    let advertised = state.config().advertise;
    let port = advertised.map_or(PORT, |it| it.port());
    if stored(state, &SERVICES_AT).is_none()
        && let Err(refusal) = create(state, &SERVICES_AT, service(state, port)).await
    {
        // Another server of the same cluster may have been faster, and then has given its address.
        caught_up(state).await?;
        stored(state, &SERVICES_AT).ok_or(refusal)?;
    }
    // A server may come back elsewhere. Of several over one store each says where it is while it runs, and this one is not alone.
    let Some(address) = advertised.filter(|_| !state.config().store.is_shared()) else { return Ok(()) };
    for (resource, wanted) in [(&ENDPOINTS_AT, endpoints(address)), (&SLICES_AT, slice(address))] {
        match stored(state, resource) {
            None => create(state, resource, wanted).await?,
            Some(stored) => correct(state, resource, stored, &wanted).await?,
        }
    }
    Ok(())
}

/// The addresses of the Service by which Pods find this server.
pub(crate) fn addresses(state: &State) -> Vec<IpAddr> {
    let Some(service) = stored(state, &SERVICES_AT) else { return Vec::new() };
    let texts = service["spec"]["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(|it| it.parse().ok()).collect()
}

fn key(resource: &Resource) -> Key {
    if resource.namespaced { Key::new(NAMESPACE, NAME) } else { Key::cluster(NAME) }
}

fn stored(state: &State, resource: &Resource) -> Option<Value> {
    let key = key(resource);
    state.caches().get(resource)?.get(&key.namespace, &key.name).map(|it| it.parse())
}

async fn create(state: &State, resource: &Resource, mut object: Value) -> Result<(), Status> {
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    let path = resource.collection_path(&key(resource).namespace);
    send(state, Write { method: Method::POST, path, object }).await
}

/// The first range is ready from the start, in the words of the loop that says so of others: the first Service needs an
/// address before loops run.
async fn range(state: &State) -> Result<(), Status> {
    let network = &state.config().network;
    let texts = |ranges: &[Cidr]| json!(ranges.iter().map(ToString::to_string).collect::<Vec<_>>());
    let wanted = texts(&network.services_where(state.config().has_ipv6));
    match stored(state, &RANGES_AT) {
        None => create(state, &RANGES_AT, json!({"metadata": {"name": NAME}, "spec": {"cidrs": wanted}})).await?,
        // A second family can come to a cluster, and then stays.
        Some(mut object)
            if object["spec"]["cidrs"] != wanted
                && object["spec"]["cidrs"] == texts(&network.services_where(false)) =>
        {
            object["spec"]["cidrs"] = wanted;
            send(state, Write { method: Method::PUT, path: RANGES_AT.path(&key(&RANGES_AT)), object }).await?;
        }
        Some(_) => {}
    }
    let Some(mut object) = stored(state, &RANGES_AT) else { return Ok(()) };
    if object["status"]["conditions"].as_array().is_some_and(|it| !it.is_empty()) {
        return Ok(());
    }
    object["status"]["conditions"] = json!([{
        "type": "Ready", "status": "True", "reason": "",
        "lastTransitionTime": state.now().to_string(),
        "message": "Kubernetes Service CIDR is ready",
    }]);
    let path = format!("{}/status", RANGES_AT.path(&key(&RANGES_AT)));
    send(state, Write { method: Method::PUT, path, object }).await
}

fn service(state: &State, port: u16) -> Value {
    let mut spec = json!({
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ports": [{"name": "https", "protocol": "TCP", "port": HTTPS, "targetPort": port}],
    });
    let network = &state.config().network;
    let first = network.service_cidrs.first().map(ToString::to_string);
    // Whoever made the range may have made another.
    if stored(state, &RANGES_AT).is_some_and(|it| it["spec"]["cidrs"][0].as_str() == first.as_deref()) {
        spec["clusterIP"] = json!(network.api_address());
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    json!({"metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels}, "spec": spec})
}

fn endpoints(address: SocketAddr) -> Value {
    json!({
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": address.ip().to_string()}],
            "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
        }],
    })
}

fn slice(address: SocketAddr) -> Value {
    json!({
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address.ip().to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
    })
}

/// Gives the stored object the parts of the wanted one. What another family of addresses would need is a new slice.
async fn correct(state: &State, resource: &Resource, stored: Value, wanted: &Value) -> Result<(), Status> {
    let path = resource.path(&key(resource));
    if stored["addressType"] != wanted["addressType"] {
        send(state, Write { method: Method::DELETE, path, object: json!({}) }).await?;
        return create(state, resource, wanted.clone()).await;
    }
    let mut object = stored.clone();
    for field in ["subsets", "endpoints", "ports"] {
        if let Some(value) = wanted.get(field) {
            object[field] = value.clone();
        }
    }
    for (name, value) in wanted["metadata"]["labels"].as_object().into_iter().flatten() {
        object["metadata"]["labels"][name] = value.clone();
    }
    if object == stored {
        return Ok(());
    }
    send(state, Write { method: Method::PUT, path, object }).await
}
