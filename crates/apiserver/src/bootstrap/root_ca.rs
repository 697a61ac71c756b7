//! The certificate of the cluster's authority, where the loop that gives it to every namespace, and extension API servers,
//! look for it.

use corten_access::request_header;
use corten_api::resources::CONFIG_MAPS;
use corten_meta::{Key, Resource, Status};
use corten_pki::{Authority, with_authorities};
use http::Method;
use serde_json::{Value, json};

use super::{Write, send};
use crate::state::State;

const NAMESPACE: &str = "kube-system";
/// As kubeadm has them (`kubeadm init`, phase `bootstrap-token`).
const PUBLIC: &str = "kube-public";
const CLUSTER_INFO: &str = "cluster-info";

/// The names of ConfigMaps in kube-system, and what the server says in them. By the second, other API servers know whom this one
/// takes for whom, and by what they know this one (`ClusterAuthenticationTrustController`).
fn places(pki: &Authority) -> [(&'static str, Value); 2] {
    let list = |names: &[&str]| json!(names).to_string();
    let clients = pki.ca_pem();
    let authentication = json!({
        "client-ca-file": clients,
        "requestheader-client-ca-file": pki.front_proxy().ca_pem(),
        "requestheader-allowed-names": list(&request_header::ALLOWED_NAMES),
        "requestheader-username-headers": list(&[request_header::USER]),
        "requestheader-uid-headers": list(&[request_header::UID]),
        "requestheader-group-headers": list(&[request_header::GROUP]),
        "requestheader-extra-headers-prefix": list(&[request_header::EXTRA_PREFIX]),
    });
    [("kube-root-ca.crt", json!({ "ca.crt": clients })), ("extension-apiserver-authentication", authentication)]
}

/// Unlike the other first objects, these are the server's own: what they hold is put right at each start, and when it is changed.
pub(crate) async fn publish(state: &State, pki: &Authority) -> Result<(), Status> {
    let resource: Resource = CONFIG_MAPS;
    for (name, data) in places(pki) {
        let stored = state.caches().get(&resource).and_then(|it| it.get(NAMESPACE, name)).map(|it| it.parse());
        if let Some(write) = write(&resource, NAMESPACE, name, &data, stored) {
            send(state, write).await?;
        }
    }
    publish_to_strangers(state, &resource, pki).await
}

/// Where machines join, they learn of the authorities as strangers. Who lets them join has made it, and said where the server is.
async fn publish_to_strangers(state: &State, resource: &Resource, pki: &Authority) -> Result<(), Status> {
    let stored = state.caches().get(resource).and_then(|it| it.get(PUBLIC, CLUSTER_INFO)).map(|it| it.parse());
    let Some(stored) = stored else { return Ok(()) };
    let Some(kubeconfig) = stored["data"]["kubeconfig"].as_str() else { return Ok(()) };
    let data = json!({ "kubeconfig": with_authorities(kubeconfig, &pki.ca_pem()) });
    match write(resource, PUBLIC, CLUSTER_INFO, &data, Some(stored)) {
        Some(write) => send(state, write).await,
        None => Ok(()),
    }
}

pub(super) fn write(
    resource: &Resource,
    namespace: &str,
    name: &str,
    data: &Value,
    stored: Option<Value>,
) -> Option<Write> {
    let Some(mut stored) = stored else {
        let metadata = json!({ "name": name, "namespace": namespace });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
        return Some(Write { method: Method::POST, path: resource.collection_path(namespace), object });
    };
    let mut is_same = true;
    for (entry, text) in data.as_object().into_iter().flatten() {
        is_same &= stored["data"][entry] == *text;
        stored["data"][entry] = text.clone();
    }
    let path = resource.path(&Key::new(namespace, name));
    (!is_same).then_some(Write { method: Method::PUT, path, object: stored })
}

#[cfg(test)]
mod tests;
