//! A Pod stays five minutes on a node that is not ready or cannot be reached, unless it says otherwise.

use corten_api::resources::PODS;
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::{Value, json};

use super::{Admission, Attributes, Operation};

pub(crate) struct DefaultTolerationSeconds;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

impl Admission for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource == PODS && writes && request.subresource.is_none() {
                tolerate(pod, Some(SECONDS));
            }
            Ok(())
        })
    }
}

/// Has the Pod stay so long, or without end, where it says nothing of a taint itself.
pub(crate) fn tolerate(pod: &mut Value, seconds: Option<i64>) {
    let tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let covers = |taint: &str, toleration: &Value| {
        let (key, effect) = (toleration["key"].as_str(), toleration["effect"].as_str());
        let same_key = matches!(key, None | Some("")) || key == Some(taint);
        same_key && matches!(effect, None | Some("" | "NoExecute"))
    };
    let missing = TAINTS.iter().filter(|taint| !tolerations.iter().any(|it| covers(taint, it)));
    let added: Vec<Value> = missing.map(|it| toleration(it, seconds)).collect();
    if !added.is_empty() {
        pod["spec"]["tolerations"] = tolerations.into_iter().chain(added).collect();
    }
}

fn toleration(taint: &str, seconds: Option<i64>) -> Value {
    let mut toleration = json!({ "key": taint, "operator": "Exists", "effect": "NoExecute" });
    if let Some(seconds) = seconds {
        toleration["tolerationSeconds"] = json!(seconds);
    }
    toleration
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_in_what_is_missing() {
        let both = TAINTS.map(|it| json!([it, 300]));
        for (given, expected) in [
            (json!(null), json!(both)),
            (json!([]), json!(both)),
            (json!([{ "key": "x", "operator": "Exists" }]), json!([["x", null], both[0], both[1]])),
            (
                json!([{ "key": TAINTS[0], "effect": "NoExecute", "tolerationSeconds": 5 }]),
                json!([[TAINTS[0], 5], both[1]]),
            ),
            (json!([{ "key": TAINTS[1], "effect": "NoSchedule" }]), json!([[TAINTS[1], null], both[0], both[1]])),
            (json!([{ "operator": "Exists" }]), json!([[null, null]])),
        ] {
            let mut pod = json!({ "spec": { "tolerations": given } });
            tolerate(&mut pod, Some(SECONDS));
            let found: Vec<Value> = pod["spec"]["tolerations"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|it| json!([it["key"], it["tolerationSeconds"]]))
                .collect();
            assert_eq!(json!(found), expected);
        }
    }
}
