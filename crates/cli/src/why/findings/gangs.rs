//! Pods that are placed together: how many of a group there are and have nodes, and which of them fits nowhere.

use corten_api::resources::{POD_GROUPS, PODS};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{condition, text, time},
    pod_steps,
    reader::Reader,
};

pub(super) async fn group(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if !is_built_in(object) {
        return;
    }
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let pods = reader.list(&PODS, namespace).await;
    if !reader.is_whole(&PODS, &pods) {
        return;
    }
    let is_member = |it: &&Value| text(it, "/spec/schedulingGroup/podGroupName") == name && !pod_steps::is_over(it);
    let (waiting, placed): (Vec<&Value>, Vec<&Value>) =
        pods.iter().filter(is_member).partition(|it| text(it, "/spec/nodeName").is_empty());
    let (n_placed, n_all) = (placed.len(), placed.len() + waiting.len());
    let counts = format!("{n_placed} of {n_all} pods have nodes");
    let n_needed = object.pointer("/spec/schedulingPolicy/gang/minCount").and_then(Value::as_u64).unwrap_or(0);
    let n_needed = usize::try_from(n_needed).unwrap_or(usize::MAX);
    if n_placed >= n_needed {
        let needed = if n_needed > 0 { format!(", and its gang needs {n_needed}") } else { String::new() };
        found.verdict = Some((State::Fine, format!("{counts}{needed}")));
        return;
    }
    let mut wait = if n_all < n_needed {
        let message = format!("it has {n_all} of the {n_needed} pods that its gang needs: none is placed before");
        Wait::new("GangIncomplete", message, Actor::Author)
    } else {
        let message = format!("{counts}, and its gang needs {n_needed}: they are placed together or not at all");
        let wait = Wait::new("GangUnschedulable", message, Actor::Operator);
        // Those that would fit wait for the ones that do not.
        let hindering = waiting.iter().find(|it| fits_nowhere(it)).or(waiting.first());
        match hindering {
            Some(pod) => wait.on("Pod", text(pod, "/metadata/name")),
            None => wait,
        }
    };
    let told = condition(object, "PodGroupInitiallyScheduled").and_then(|it| time(&it["lastTransitionTime"]));
    wait.since = told.or(time(&object["metadata"]["creationTimestamp"]));
    found.wait(wait);
}

/// Others have kinds of these names, too, whose fields are their own.
fn is_built_in(object: &Value) -> bool {
    text(object, "/apiVersion").starts_with("scheduling.k8s.io/")
}

fn fits_nowhere(pod: &Value) -> bool {
    let said = condition(pod, "PodScheduled").map(|it| text(it, "/message")).unwrap_or_default();
    said.contains("nodes are available") || said.starts_with("no nodes available")
}

/// Nothing is placed by it, but by the groups that were made of it.
pub(super) async fn workload(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if !is_built_in(object) {
        return;
    }
    let groups = reader.list(&POD_GROUPS, text(object, "/metadata/namespace")).await;
    let name = text(object, "/metadata/name");
    let made: Vec<&str> = groups
        .iter()
        .filter(|it| text(it, "/spec/workloadRef/workloadName") == name)
        .map(|it| text(it, "/metadata/name"))
        .collect();
    if let Some(first) = made.first() {
        let more = if made.len() > 1 { format!(" and {} more are", made.len() - 1) } else { " is".to_owned() };
        found.verdict = Some((State::Fine, format!("podgroup/{first}{more} made of it")));
    }
}
