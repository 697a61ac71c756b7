//! Finds the containers a request is about, in the runtime.

use std::collections::BTreeMap;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{Body, PlainTextError, json_body, routes::Call};
use crate::{Cri, cri};

/// A Pod as the API has it.
pub(super) struct Pod(pub(super) Value);

impl Pod {
    pub(super) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The uid its containers know; of a mirror pod that is the static pod's.
    pub(super) fn uid(&self) -> &str {
        let metadata = &self.0["metadata"];
        let of_static = metadata["annotations"]["kubernetes.io/config.mirror"].as_str();
        of_static.or(metadata["uid"].as_str()).unwrap_or_default()
    }

    fn container(&self, name: &str) -> Option<&Value> {
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        lists.iter().filter_map(|it| self.0["spec"][*it].as_array()).flatten().find(|it| it["name"] == name)
    }

    pub(super) fn has_container(&self, name: &str) -> bool {
        self.container(name).is_some()
    }

    /// Was it started with a terminal? That cannot be changed later.
    pub(super) fn has_terminal(&self, container: &str) -> bool {
        self.container(container).is_some_and(|it| it["tty"] == true)
    }

    pub(super) fn container_status(&self, name: &str) -> Option<&Value> {
        let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
        lists.iter().filter_map(|it| self.0["status"][*it].as_array()).flatten().find(|it| it["name"] == name)
    }
}

/// The Pod of that name.
pub(super) async fn pod(call: &Call, namespace: &str, name: &str) -> Result<Pod, PlainTextError> {
    let found =
        call.server.cluster().pod(namespace.to_owned(), name.to_owned()).await.map_err(PlainTextError::internal)?;
    let message = || format!("pod {name:?} not found\n");
    found.map(Pod).ok_or_else(|| PlainTextError::new(StatusCode::NOT_FOUND, message()))
}

/// The attempts of one container, the newest first.
pub(super) async fn attempts(
    cri: &Cri,
    namespace: &str,
    pod: &str,
    uid: &str,
    container: &str,
) -> Result<Vec<cri::Container>, PlainTextError> {
    let mut labels = identity(namespace, pod, uid);
    labels.insert("io.kubernetes.container.name".to_owned(), container.to_owned());
    let filter = cri::ContainerFilter { label_selector: labels, ..cri::ContainerFilter::default() };
    let mut found = cri.list_containers(Some(filter)).await.map_err(PlainTextError::internal)?;
    found.sort_by_key(|it| std::cmp::Reverse((it.created_at, it.metadata.as_ref().map_or(0, |it| it.attempt))));
    Ok(found)
}

/// The container that runs now.
pub(super) async fn running(
    cri: &Cri,
    namespace: &str,
    pod: &str,
    uid: &str,
    container: &str,
) -> Result<cri::Container, PlainTextError> {
    let found = attempts(cri, namespace, pod, uid, container).await?;
    let newest = found.into_iter().next();
    newest
        .filter(|it| it.state == i32::from(cri::ContainerState::Running))
        // 500: the kubelet's `RunInContainer` has no other word for it.
        .ok_or_else(|| PlainTextError::internal(format!("container not found ({container:?})")))
}

/// The pod's sandbox that is ready.
pub(super) async fn sandbox(cri: &Cri, namespace: &str, pod: &str, uid: &str) -> Result<String, PlainTextError> {
    let filter =
        cri::PodSandboxFilter { label_selector: identity(namespace, pod, uid), ..cri::PodSandboxFilter::default() };
    let found = cri.list_pod_sandboxes(Some(filter)).await.map_err(PlainTextError::internal)?;
    let ready = found.into_iter().filter(|it| it.state == i32::from(cri::PodSandboxState::Ready));
    let newest = ready.max_by_key(|it| it.created_at);
    newest.map(|it| it.id).ok_or_else(|| PlainTextError::new(StatusCode::NOT_FOUND, "pod does not exist"))
}

/// The labels of what belongs to a Pod; an empty uid is any.
fn identity(namespace: &str, pod: &str, uid: &str) -> BTreeMap<String, String> {
    let uid = (!uid.is_empty()).then(|| ("io.kubernetes.pod.uid".to_owned(), uid.to_owned()));
    let mut labels = BTreeMap::from([
        ("io.kubernetes.pod.namespace".to_owned(), namespace.to_owned()),
        ("io.kubernetes.pod.name".to_owned(), pod.to_owned()),
    ]);
    labels.extend(uid);
    labels
}

/// The node's Pods, as the API has them.
pub(super) async fn pods(call: Call) -> Result<Response<Body>, PlainTextError> {
    let list = call.server.cluster().pods().await.map_err(PlainTextError::internal)?;
    Ok(json_body(&list))
}

/// Every pod that has a sandbox here, with what the runtime knows of its containers.
pub(super) async fn running_pods(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let sandboxes = cri.list_pod_sandboxes(None).await.map_err(PlainTextError::internal)?;
    let containers = cri.list_containers(None).await.map_err(PlainTextError::internal)?;
    let mut pods: BTreeMap<String, Value> = BTreeMap::new();
    for sandbox in sandboxes.iter().filter(|it| it.labels.contains_key("io.kubernetes.pod.uid")) {
        let label = |name: &str| sandbox.labels.get(name).cloned().unwrap_or_default();
        let uid = label("io.kubernetes.pod.uid");
        let of_pod = || containers.iter().filter(|it| it.labels.get("io.kubernetes.pod.uid") == Some(&uid));
        let running = of_pod().filter(|it| it.state == i32::from(cri::ContainerState::Running)).map(running_container);
        let pod = json!({
            "metadata": {
                "name": label("io.kubernetes.pod.name"),
                "namespace": label("io.kubernetes.pod.namespace"),
                "uid": uid,
            },
            "spec": {"containers": running.collect::<Vec<_>>()},
            "status": {"containerStatuses": of_pod().map(status).collect::<Vec<_>>()},
        });
        pods.insert(uid, pod);
    }
    let pods: Vec<Value> = pods.into_values().collect();
    Ok(json_body(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})))
}

fn running_container(container: &cri::Container) -> Value {
    let image = container.image.as_ref().map(|it| it.image.clone()).unwrap_or_default();
    json!({ "name": container.metadata.as_ref().map(|it| &it.name), "image": image, "resources": {} })
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

/// `GET /journals/NAMESPACE/RESOURCE.NAME`: what the loops of this node decided last about an object, for `corten why`.
pub(super) async fn journal(call: Call) -> Result<Response<Body>, PlainTextError> {
    let journal = call.server.journals().of(call.name(0), call.name(1));
    let missing = || PlainTextError::new(StatusCode::NOT_FOUND, format!("no journal {:?}", call.name(1)));
    journal.map(|it| json_body(&it)).ok_or_else(missing)
}

/// `GET /journals`: the same of all that waits for anything.
pub(super) async fn waiting(call: Call) -> Result<Response<Body>, PlainTextError> {
    Ok(json_body(&call.server.journals().waiting()))
}
