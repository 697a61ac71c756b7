//! The certificate of the cluster's authority, where the loop that gives it to every namespace, and extension API servers,
//! look for it.

use corten_access::request_header;
use corten_api::resources::CONFIG_MAPS;
use corten_meta::{Key, Resource, Status};
use corten_pki::Authority;
use http::Method;
use serde_json::{Value, json};

use super::{Write, send};
use crate::state::State;

const NAMESPACE: &str = "kube-system";

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
        if let Some(write) = write(&resource, name, &data, stored) {
            send(state, write).await?;
        }
    }
    Ok(())
}

fn write(resource: &Resource, name: &str, data: &Value, stored: Option<Value>) -> Option<Write> {
    let Some(mut stored) = stored else {
        let metadata = json!({ "name": name, "namespace": NAMESPACE });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
        return Some(Write { method: Method::POST, path: resource.collection_path(NAMESPACE), object });
    };
    let mut is_same = true;
    for (entry, text) in data.as_object().into_iter().flatten() {
        is_same &= stored["data"][entry] == *text;
        stored["data"][entry] = text.clone();
    }
    let path = resource.path(&Key::new(NAMESPACE, name));
    (!is_same).then_some(Write { method: Method::PUT, path, object: stored })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_certificate_is_written() {
        let write = |stored: Option<Value>| {
            let write = write(&CONFIG_MAPS, "kube-root-ca.crt", &json!({ "ca.crt": "new" }), stored);
            write.map(|it| (it.method.to_string(), it.object["data"].clone()))
        };
        assert_eq!(write(None), Some(("POST".into(), json!({ "ca.crt": "new" }))));
        assert_eq!(write(Some(json!({ "data": { "ca.crt": "new", "mine": "1" } }))), None);
        let put = Some(("PUT".into(), json!({ "ca.crt": "new", "mine": "1" })));
        assert_eq!(write(Some(json!({ "data": { "ca.crt": "old", "mine": "1" } }))), put);
    }
}
