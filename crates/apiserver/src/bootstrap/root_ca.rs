//! The certificate of the cluster's authority, where the loop that gives it to every namespace, and extension API servers,
//! look for it.

use corten_api::resources::CONFIG_MAPS;
use corten_meta::{Key, Resource, Status};
use http::Method;
use serde_json::{Value, json};

use super::{Write, send};
use crate::state::State;

const NAMESPACE: &str = "kube-system";

/// The names of ConfigMaps in kube-system, and what the certificate is called in them.
const PLACES: [(&str, &str); 2] =
    [("kube-root-ca.crt", "ca.crt"), ("extension-apiserver-authentication", "client-ca-file")];

/// Unlike the other first objects, these are the server's own: what they hold is put right at each start.
pub(super) async fn publish(state: &State, pem: &str) -> Result<(), Status> {
    let resource: Resource = CONFIG_MAPS;
    for (name, entry) in PLACES {
        let stored = state.caches().get(&resource).and_then(|it| it.get(NAMESPACE, name)).map(|it| it.parse());
        if let Some(write) = write(&resource, name, entry, pem, stored) {
            send(state, write).await?;
        }
    }
    Ok(())
}

fn write(resource: &Resource, name: &str, entry: &str, pem: &str, stored: Option<Value>) -> Option<Write> {
    let Some(mut stored) = stored else {
        let metadata = json!({ "name": name, "namespace": NAMESPACE });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { entry: pem } });
        return Some(Write { method: Method::POST, path: resource.collection_path(NAMESPACE), object });
    };
    if stored["data"][entry] == pem {
        return None;
    }
    stored["data"][entry] = json!(pem);
    Some(Write { method: Method::PUT, path: resource.path(&Key::new(NAMESPACE, name)), object: stored })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_certificate_is_written() {
        let write = |stored: Option<Value>| {
            let write = write(&CONFIG_MAPS, "kube-root-ca.crt", "ca.crt", "new", stored);
            write.map(|it| (it.method.to_string(), it.object["data"].clone()))
        };
        assert_eq!(write(None), Some(("POST".into(), json!({ "ca.crt": "new" }))));
        assert_eq!(write(Some(json!({ "data": { "ca.crt": "new", "mine": "1" } }))), None);
        let put = Some(("PUT".into(), json!({ "ca.crt": "new", "mine": "1" })));
        assert_eq!(write(Some(json!({ "data": { "ca.crt": "old", "mine": "1" } }))), put);
    }
}
