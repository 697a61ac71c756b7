//! Which Pod, and which container: read from the caches.

use corten_api::resources::PODS;
use corten_kubelets::{Node, cached};
use corten_meta::Status;
use serde::Deserialize;

use crate::context::Context;

#[derive(Deserialize)]
struct Pod {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    ephemeral_containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
}

/// The Pod that a request is about.
pub(super) struct TargetPod {
    pub(super) namespace: String,
    pub(super) name: String,
    spec: Spec,
}

impl TargetPod {
    pub(super) fn find(ctx: &Context) -> Result<Self, Status> {
        let (namespace, name) = (ctx.info.namespace.clone(), ctx.info.name.clone());
        let pod: Pod = cached(ctx.state.caches(), &PODS, &namespace, &name)?;
        Ok(Self { namespace, name, spec: pod.spec })
    }

    /// The container asked for, or the Pod's only one.
    pub(super) fn container<'a>(&'a self, asked: Option<&'a str>) -> Result<&'a str, Status> {
        let Spec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let Some(asked) = asked else {
            return match &**containers {
                [one] => Ok(&one.name),
                _ => Err(self.must_choose()),
            };
        };
        let mut all = containers.iter().chain(init_containers).chain(ephemeral_containers);
        if all.any(|it| it.name == asked) {
            return Ok(asked);
        }
        Err(Status::bad_request(format!("container {asked} is not valid for pod {}", self.name)))
    }

    fn must_choose(&self) -> Status {
        let Spec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let names = |list: &[Container]| list.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" ");
        let mut message = format!("a container name must be specified for pod {}", self.name);
        if !containers.is_empty() {
            message += &format!(", choose one of: [{}]", names(containers));
            for (list, kind) in [(init_containers, "init"), (ephemeral_containers, "ephemeral")] {
                if !list.is_empty() {
                    message += &format!(" or one of the {kind} containers: [{}]", names(list));
                }
            }
        }
        Status::bad_request(message)
    }

    /// The Pod's node; `None` where it has none yet.
    pub(super) fn node(&self, ctx: &Context) -> Result<Option<Node>, Status> {
        let name = &self.spec.node_name;
        if name.is_empty() {
            return Ok(None);
        }
        Node::find(ctx.state.caches(), name).map(Some)
    }
}

#[cfg(test)]
pub(super) fn of_spec(name: &str, spec: serde_json::Value) -> TargetPod {
    let spec = serde_json::from_value(spec).expect("a spec");
    TargetPod { namespace: "default".into(), name: name.into(), spec }
}
