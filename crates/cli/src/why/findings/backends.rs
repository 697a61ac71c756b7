//! Services that something else names: an Ingress routes to them, the server asks them as a webhook or for another API.

use corten_api::resources::{ENDPOINT_SLICES, INGRESS_CLASSES, SECRETS, SERVICES};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{found::Findings, own_pods, refusers, services};
use crate::why::{
    fields::{items, key_of, text, time},
    reader::Reader,
};

/// A port of a Service, as it is named.
enum Port<'a> {
    Number(i64),
    Name(&'a str),
}

impl std::fmt::Display for Port<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

const CLASS: &str = "kubernetes.io/ingress.class";
const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) async fn ingress(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let namespace = text(object, "/metadata/namespace");
    if items(object, "/status/loadBalancer/ingress").is_empty() {
        let mut wait = no_controller(reader, object).await;
        wait.since = time(&object["metadata"]["creationTimestamp"]);
        found.wait(wait);
    }
    let paths = items(object, "/spec/rules").iter().flat_map(|it| items(it, "/http/paths")).map(|it| &it["backend"]);
    let backends = std::iter::once(&object["spec"]["defaultBackend"]).chain(paths);
    for service in backends.map(|it| &it["service"]).filter(|it| it.is_object()) {
        let port = match service["port"]["number"].as_i64() {
            Some(number) => Port::Number(number),
            None => Port::Name(text(service, "/port/name")),
        };
        backend(reader, namespace, text(service, "/name"), &port, found).await;
    }
    for name in items(object, "/spec/tls").iter().map(|it| text(it, "/secretName")).filter(|it| !it.is_empty()) {
        if reader.is_missing(&SECRETS, &Key::new(namespace, name)).await {
            let message = format!("it takes its certificate from the secret {name:?}, which is not there");
            found.add_once(Wait::new("SecretNotFound", message, Actor::Author));
        }
    }
}

/// It has no address: nobody has taken it yet, or nobody ever will.
async fn no_controller(reader: &Reader<'_>, object: &Value) -> Wait {
    let classes = reader.list(&INGRESS_CLASSES, "").await;
    let named = object["spec"]["ingressClassName"].as_str().or(object["metadata"]["annotations"][CLASS].as_str());
    let is_it = |it: &&Value| match named {
        Some(name) => text(it, "/metadata/name") == name,
        None => it["metadata"]["annotations"][DEFAULT_CLASS] == "true",
    };
    let class = classes.iter().find(is_it);
    match (class, named) {
        (Some(class), _) => {
            let (name, controller) = (text(class, "/metadata/name"), text(class, "/spec/controller"));
            let message = format!(
                "the controller {controller:?} of its class {name:?} has given it no address: it routes nothing until that \
                 program does"
            );
            Wait::new("NoIngressController", message, Actor::External)
        }
        (None, Some(name)) if reader.unlisted(&INGRESS_CLASSES).is_none() => {
            let message = format!("there is no ingress class {name:?}: no controller takes it");
            Wait::new("IngressClassNotFound", message, Actor::Author)
        }
        _ => {
            let message = "no ingress controller runs here: it routes nothing until one is installed";
            Wait::new("NoIngressController", message, Actor::Operator)
        }
    }
}

pub(super) async fn webhooks(reader: &Reader<'_>, kind: &str, object: &Value, found: &mut Findings) {
    for webhook in items(object, "/webhooks") {
        if let Some(wait) = own_pods::refused(reader, webhook).await {
            // That it does not answer, and nothing is ready behind its Service, follows from that.
            found.explains.push("WebhookFailing");
            found.wait(wait);
            continue;
        }
        let n_before = found.waits.len();
        of_client(reader, &webhook["clientConfig"]["service"], found).await;
        if found.waits.len() > n_before {
            let is_it =
                |it: &Wait| it.reason == "WebhookFailing" && refusers::webhook_of(it) == webhook["name"].as_str();
            found.begun(n_before, asked_in_vain_since(reader, kind, object, is_it).await);
        }
    }
}

/// When what is missing went nobody has written down: it is missed since it was first asked in vain, else since it was configured.
pub(super) async fn asked_in_vain_since(
    reader: &Reader<'_>,
    kind: &str,
    object: &Value,
    is_it: impl Fn(&Wait) -> bool,
) -> Option<Time> {
    let decisions = match corten_kinds::by_name(kind) {
        Some(kind) => reader.decisions_if_shown(kind, &key_of(object)).await,
        None => Vec::new(),
    };
    let in_vain = decisions.iter().flat_map(|it| &it.waits).filter(|it| is_it(it));
    in_vain.filter_map(|it| it.since).min().or_else(|| time(&object["metadata"]["creationTimestamp"]))
}

pub(super) async fn api_service(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let is_it = |it: &&Value| it["type"] == "Available" && OF_BACKEND.contains(&text(it, "/reason"));
    let condition = items(object, "/status/conditions").iter().find(is_it);
    let since = condition.and_then(|it| time(&it["lastTransitionTime"]));
    let since = since.or_else(|| time(&object["metadata"]["creationTimestamp"]));
    let n_before = found.waits.len();
    of_client(reader, &object["spec"]["service"], found).await;
    found.begun(n_before, since);
}

/// Why the server does not even ask who is to answer for an APIService.
const OF_BACKEND: [&str; 4] = ["ServiceNotFound", "ServicePortError", "EndpointsNotFound", "MissingEndpoints"];

pub(super) async fn of_client(reader: &Reader<'_>, service: &Value, found: &mut Findings) {
    if service.is_object() {
        let port = Port::Number(service["port"].as_i64().unwrap_or(443));
        backend(reader, text(service, "/namespace"), text(service, "/name"), &port, found).await;
    }
}

/// Is the Service there, does it have the port, and does anything answer behind it?
async fn backend(reader: &Reader<'_>, namespace: &str, name: &str, port: &Port<'_>, found: &mut Findings) {
    let key = Key::new(namespace, name);
    let Some(service) = reader.get(&SERVICES, &key).await else {
        if reader.is_missing(&SERVICES, &key).await {
            let message = format!("it sends requests to the service {name:?} in {namespace}, which is not there");
            found.add_once(Wait::new("ServiceNotFound", message, Actor::Author));
        }
        return;
    };
    // A name elsewhere is asked at the port that is wanted, whatever the Service says (`ResolveCluster`).
    if service["spec"]["type"] == "ExternalName" {
        return;
    }
    let ports = items(&service, "/spec/ports");
    let is_it = |it: &&Value| match port {
        Port::Number(number) => it["port"] == *number,
        Port::Name(name) => it["name"] == **name,
    };
    if !ports.iter().any(|it| is_it(&it)) {
        let has = ports.iter().map(|it| match text(it, "/name") {
            "" => it["port"].to_string(),
            name => format!("{} {name:?}", it["port"]),
        });
        let has = has.collect::<Vec<_>>().join(", ");
        let message = format!("it sends requests to port {port} of service/{name} in {namespace}, which has {has}");
        found.add_once(Wait::new("ServicePortMissing", message, Actor::Author));
        return;
    }
    if !has_endpoints(reader, &key).await {
        let message = format!("nothing is ready behind service/{name} in {namespace}");
        found.add_once(
            Wait::new("BackendNotReady", message, Actor::Cluster).on("Service", &format!("{namespace}/{name}")),
        );
    }
}

/// True as well where it cannot be seen.
async fn has_endpoints(reader: &Reader<'_>, service: &Key) -> bool {
    let slices = reader.list(&ENDPOINT_SLICES, &service.namespace).await;
    services::ready(&slices).contains(service) || reader.unlisted(&ENDPOINT_SLICES).is_some()
}
