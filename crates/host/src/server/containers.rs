//! Finds the containers a request is about, in the runtime.

use std::collections::BTreeMap;

use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::{Body, Refused, text};
use crate::{Cri, cri};

/// The attempts of one container, the newest first.
pub(super) async fn attempts(
    cri: &Cri,
    namespace: &str,
    pod: &str,
    container: &str,
) -> Result<Vec<cri::Container>, Refused> {
    let mut labels = identity(namespace, pod);
    labels.insert("io.kubernetes.container.name".to_owned(), container.to_owned());
    let filter = cri::ContainerFilter { label_selector: labels, ..cri::ContainerFilter::default() };
    let mut found = cri.list_containers(Some(filter)).await.map_err(Refused::internal)?;
    found.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.metadata.as_ref().map_or(0, |it| it.attempt))));
    Ok(found)
}

/// The container that runs now.
pub(super) async fn running(cri: &Cri, namespace: &str, pod: &str, container: &str) -> Result<cri::Container, Refused> {
    let found = attempts(cri, namespace, pod, container).await?;
    let newest = found.into_iter().next();
    newest
        .filter(|it| it.state == i32::from(cri::ContainerState::Running))
        .ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, format!("container not found ({container:?})")))
}

/// The pod's sandbox that is ready.
pub(super) async fn sandbox(cri: &Cri, namespace: &str, pod: &str) -> Result<String, Refused> {
    let filter = cri::PodSandboxFilter { label_selector: identity(namespace, pod), ..cri::PodSandboxFilter::default() };
    let found = cri.list_pod_sandboxes(Some(filter)).await.map_err(Refused::internal)?;
    let ready = found.into_iter().filter(|it| it.state == i32::from(cri::PodSandboxState::Ready));
    let newest = ready.max_by_key(|it| it.created_at);
    newest.map(|it| it.id).ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "pod does not exist"))
}

fn identity(namespace: &str, pod: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("io.kubernetes.pod.namespace".to_owned(), namespace.to_owned()),
        ("io.kubernetes.pod.name".to_owned(), pod.to_owned()),
    ])
}

/// Every pod that has a sandbox here, with what the runtime knows of its containers.
pub(super) async fn pods(cri: &Cri) -> Result<Response<Body>, Refused> {
    let sandboxes = cri.list_pod_sandboxes(None).await.map_err(Refused::internal)?;
    let containers = cri.list_containers(None).await.map_err(Refused::internal)?;
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    for sandbox in sandboxes.iter().filter(|it| it.labels.contains_key("io.kubernetes.pod.uid")) {
        let label = |name: &str| sandbox.labels.get(name).cloned().unwrap_or_default();
        let uid = label("io.kubernetes.pod.uid");
        let of_pod = containers.iter().filter(|it| it.labels.get("io.kubernetes.pod.uid") == Some(&uid));
        let statuses: Vec<Value> = of_pod.map(status).collect();
        let pod = json!({
            "metadata": {
                "name": label("io.kubernetes.pod.name"),
                "namespace": label("io.kubernetes.pod.namespace"),
                "uid": uid,
                "annotations": sandbox.annotations,
            },
            "spec": {"containers": []},
            "status": {"containerStatuses": statuses},
        });
        pods.insert(uid, pod);
    }
    let list =
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods.into_values().collect::<Vec<_>>()});
    let mut response = Response::new(text(list.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(response)
}

fn status(container: &cri::Container) -> Value {
    let metadata = container.metadata.clone().unwrap_or_default();
    let state = match cri::ContainerState::try_from(container.state) {
        Ok(cri::ContainerState::Running) => json!({"running": {}}),
        Ok(cri::ContainerState::Exited) => json!({"terminated": {}}),
        _ => json!({"waiting": {}}),
    };
    json!({
        "name": metadata.name,
        "restartCount": metadata.attempt,
        "containerID": format!("containerd://{}", container.id),
        "imageID": container.image_ref,
        "state": state,
    })
}
