//! Claims for devices: what each has been given, and which Pod it waits for.

use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{items, text, time},
};

pub(super) fn claim(object: &Value, found: &mut Findings) {
    let devices = items(object, "/status/allocation/devices/results");
    if object["status"]["allocation"].is_object() {
        let one = |it: &Value| format!("device {} of {}", text(it, "/device"), text(it, "/driver"));
        let all: Vec<String> = devices.iter().map(one).collect();
        let pods: Vec<&str> = items(object, "/status/reservedFor").iter().map(|it| text(it, "/name")).collect();
        let whom = if pods.is_empty() { "nobody uses it".to_owned() } else { format!("for {}", pods.join(", ")) };
        found.verdict = Some((State::Fine, format!("it has {}, {whom}", all.join(", "))));
        return;
    }
    let owners = items(object, "/metadata/ownerReferences");
    match owners.iter().find(|it| text(it, "/kind") == "Pod") {
        Some(pod) => {
            let message = "it is given devices when its pod is placed";
            let mut wait = Wait::new("PodNotPlaced", message, Actor::Cluster).on("Pod", text(pod, "/name"));
            wait.since = time(&object["metadata"]["creationTimestamp"]);
            found.wait(wait);
        }
        None => {
            let said = "it has no devices yet: it is given some when a pod that names it is placed";
            found.verdict = Some((State::Fine, said.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(object: &Value) -> String {
        let mut found = Findings::default();
        claim(object, &mut found);
        let waits = found.waits.into_iter().map(|(_, it)| format!("{} {}", it.reason, it.on.unwrap_or_default()));
        found.verdict.map(|it| it.1).into_iter().chain(waits).collect()
    }

    #[test]
    fn what_a_claim_has_or_waits_for() {
        let none = said(&json!({}));
        assert_eq!(none, "it has no devices yet: it is given some when a pod that names it is placed");
        let owned = json!({ "metadata": { "ownerReferences": [{ "kind": "Pod", "name": "web" }] } });
        assert_eq!(said(&owned), "PodNotPlaced pod/web");
        let devices = json!({ "results": [{ "driver": "gpu.example.com", "device": "a" }] });
        let given = json!({ "status": { "allocation": { "devices": devices }, "reservedFor": [{ "name": "web" }] } });
        assert_eq!(said(&given), "it has device a of gpu.example.com, for web");
    }
}
