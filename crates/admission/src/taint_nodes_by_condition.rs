//! A node that was just made is not ready yet: nothing is placed on it until its conditions say otherwise.

use corten_api::resources::NODES;
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::{Value, json};

use super::{Admission, Attributes};

pub(crate) struct TaintNodesByCondition;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl Admission for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, node: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.creates(&NODES) {
                taint(node);
            }
            Ok(())
        })
    }
}

fn taint(node: &mut Value) {
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    if taints.iter().any(|it| it["key"] == NOT_READY && it["effect"] == "NoSchedule") {
        return;
    }
    taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
    node["spec"]["taints"] = taints.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_taint_is_there_once() {
        let mut node = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoExecute" }] } });
        taint(&mut node);
        taint(&mut node);
        let wanted = json!([{ "key": "a", "effect": "NoExecute" }, { "key": NOT_READY, "effect": "NoSchedule" }]);
        assert_eq!(node["spec"]["taints"], wanted);
    }
}
