//! Nodes: what they say of themselves, and whom a cordoned one cannot be rid of.

use std::time::Duration;

use corten_api::{
    api_servers::{LEASE_NAMESPACE, RELEASE},
    resources::LEASES,
    version::{VERSION, kubelet_skew},
};
use corten_meta::{Key, Time};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{evictions, found::Findings};
use crate::why::{
    duration::duration,
    fields::{condition, items, text, time},
    reader::Reader,
};

/// A Lease is renewed every ten seconds.
const RENEWED_WITHIN: Duration = Duration::from_secs(40);
const PRESSURES: [&str; 4] = ["DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure"];

pub(super) async fn node(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let name = text(object, "/metadata/name");
    if let Some(ready) = condition(object, "Ready").filter(|it| it["status"] != "True") {
        found.explains.push("NodeSilent");
        let mut wait = not_ready(ready, last_heard(reader, object, name).await, reader.now);
        wait.since = wait.since.or(time(&object["metadata"]["creationTimestamp"]));
        found.wait(wait);
    } else if condition(object, "Ready").is_none() {
        found.explains.push("NodeSilent");
        let message = never_told(last_heard(reader, object, name).await, reader.now);
        let mut wait = Wait::new("NodeSilent", message, Actor::Operator);
        wait.since = time(&object["metadata"]["creationTimestamp"]);
        found.wait(wait);
    }
    for r#type in PRESSURES {
        if let Some(it) = condition(object, r#type).filter(|it| it["status"] == "True") {
            let mut wait = Wait::new(r#type, text(it, "/message"), Actor::Operator);
            wait.since = time(&it["lastTransitionTime"]);
            found.wait(wait);
        }
    }
    if let Some(skew) = skew(reader, object).await {
        found.add("VersionSkew", skew, Actor::Operator);
    }
    let lacks = object["metadata"]["annotations"][corten_host::LACKS_ANNOTATION].as_str().unwrap_or_default();
    let lacks = corten_host::lacks_of(lacks);
    if !lacks.is_empty() {
        let lacks: Vec<String> = lacks.iter().map(|it| format!("{} ({})", it.id, it.without)).collect();
        found.notices.push(format!("its machine lacks {}", lacks.join("; ")));
    }
    if object["spec"]["unschedulable"] == true {
        cordoned(reader, object, name, found).await;
    }
}

/// Why its kubelet cannot count on some server of the cluster, by the releases that they say. Of a node of this program's own release that
/// is not asked.
async fn skew(reader: &Reader<'_>, node: &Value) -> Option<String> {
    let kubelet = text(node, "/status/nodeInfo/kubeletVersion");
    if matches!(kubelet, "" | VERSION) {
        return None;
    }
    let leases = reader.list(&LEASES, LEASE_NAMESPACE).await;
    let releases = leases.iter().filter_map(|it| it["metadata"]["annotations"][RELEASE].as_str());
    releases.filter_map(|it| kubelet_skew(kubelet, it)).next()
}

/// Of a Node without a status. Its kubelet may well run, and be refused.
fn never_told(heard: Option<Time>, now: Time) -> String {
    match heard.filter(|it| now.since(*it) < RENEWED_WITHIN) {
        Some(_) => {
            "its kubelet renews its Lease, and what it says of the node is not taken: its log names who refuses that"
                .to_owned()
        }
        None => "no kubelet has ever said anything of it".to_owned(),
    }
}

fn not_ready(ready: &Value, heard: Option<Time>, now: Time) -> Wait {
    let heard = heard.map(|it| format!("last heard of {} ago, at {}", duration(now.since(it)), it.whole_seconds()));
    let mut wait = if ready["status"] == "Unknown" {
        let heard = heard.map_or("nothing was ever heard of it".to_owned(), |it| format!("it was {it}"));
        let message = format!("{heard}: its kubelet has stopped or cannot reach the server");
        Wait::new("NodeSilent", message, Actor::Operator)
    } else {
        let said = match (text(ready, "/reason"), text(ready, "/message")) {
            ("", "") => "its kubelet says no more of it",
            (reason, "") => reason,
            (_, message) => message,
        };
        let heard = heard.map(|it| format!("; {it}")).unwrap_or_default();
        Wait::new("NotReady", format!("{said}{heard}"), Actor::Operator)
    };
    wait.since = time(&ready["lastTransitionTime"]);
    wait
}

/// The newest of its lease and its conditions.
pub(super) async fn last_heard(reader: &Reader<'_>, node: &Value, name: &str) -> Option<Time> {
    let lease = reader.get(&LEASES, &Key::new("kube-node-lease", name)).await;
    let renewed = lease.and_then(|it| time(&it["spec"]["renewTime"]));
    // The node loop writes the other conditions, too.
    let beat = condition(node, "Ready").and_then(|it| time(&it["lastHeartbeatTime"]));
    renewed.max(beat)
}

async fn cordoned(reader: &Reader<'_>, object: &Value, name: &str, found: &mut Findings) {
    let taint = items(object, "/spec/taints").iter().find(|it| it["key"] == "node.kubernetes.io/unschedulable");
    let since = taint.and_then(|it| time(&it["timeAdded"]));
    // Whoever drains it wants to know first what does not go.
    if let Some(refused) = evictions::refused(reader, name).await {
        found.wait(Wait { since: refused.since.max(since), ..refused });
    }
    found.wait(Wait { since, ..Wait::new("Cordoned", "it is cordoned: it takes no new pods", Actor::Operator) });
}
