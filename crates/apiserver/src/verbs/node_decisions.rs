//! What the loops of nodes in other processes say of objects, beside those of this one.
//!
//! A node is believed of itself and of the Pods that are bound to it. Of a Service or a policy each node says what it waits for itself.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::resources::{NODES, PODS};
use corten_cacher::watch_cache::Snapshot;
use corten_kubelets::Asking;
use corten_meta::{Key, Resource};
use corten_reconcile::{Decision, node_journal};
use serde::Deserialize;

use crate::context::Context;

/// What nodes say of one object.
#[derive(Default)]
pub(super) struct FromNodes {
    pub(super) decisions: Vec<Decision>,
    /// `m2 does not answer: …`
    pub(super) unanswered: Vec<String>,
}

pub(super) type Waiting = BTreeMap<(Resource, Key), Vec<Decision>>;

pub(super) async fn of(ctx: &Context, resource: &Resource, key: &Key) -> FromNodes {
    let Some(asking) = asking(ctx).filter(|_| node_journal::is_of_nodes(resource)) else { return FromNodes::default() };
    let Some(node) = node_of(ctx, resource, key) else {
        let decisions = all(ctx).await.remove(&(resource.clone(), key.clone())).unwrap_or_default();
        return FromNodes { decisions, unanswered: Vec::new() };
    };
    if node.is_empty() || is_own(ctx, &node) {
        return FromNodes::default();
    }
    match ctx.state.remote_journals().decisions(&asking, &node, (resource, key)).await {
        Ok(decisions) => FromNodes { decisions, unanswered: Vec::new() },
        Err(why) => FromNodes { decisions: Vec::new(), unanswered: vec![why] },
    }
}

/// What waits on other nodes, as far as each may say so. Those that do not answer in time say nothing.
pub(super) async fn all(ctx: &Context) -> Waiting {
    let Some(asking) = asking(ctx) else { return Waiting::new() };
    let nodes = snapshot(ctx, &NODES);
    let names: Vec<String> =
        nodes.range("", None).map(|it| it.name().to_owned()).filter(|it| !is_own(ctx, it)).collect();
    let mut all = Waiting::new();
    if names.is_empty() {
        return all;
    }
    for (node, waiting) in ctx.state.remote_journals().waiting(&asking, &names).await {
        for ((resource, key), decisions) in waiting.iter() {
            let said = match node_of(ctx, resource, key) {
                Some(own) if own == node => decisions.clone(),
                Some(_) => continue,
                None if snapshot(ctx, resource).get(&key.namespace, &key.name).is_none() => continue,
                None => {
                    decisions.iter().map(|it| Decision { by: format!("{} on {node}", it.by), ..it.clone() }).collect()
                }
            };
            add(all.entry((resource.clone(), key.clone())).or_default(), said);
        }
    }
    all
}

/// Puts what nodes say beside what is known. What is waited for on all nodes alike is said once.
pub(super) fn add(decisions: &mut Vec<Decision>, said: Vec<Decision>) {
    for mut decision in said {
        let is_known = |reason: &str, message: &str| {
            decisions.iter().flat_map(|it| &it.waits).any(|it| it.reason == reason && it.message == message)
        };
        let n_before = decision.waits.len();
        decision.waits.retain(|it| !is_known(&it.reason, &it.message));
        if decision.waits.is_empty() && n_before > 0 && decision.steps.is_empty() {
            continue;
        }
        decisions.push(decision);
    }
}

fn asking(ctx: &Context) -> Option<Asking<'_>> {
    let config = ctx.state.config();
    let kubelets = config.kubelet_dial.as_ref()?;
    Some(Asking { kubelets, caches: ctx.state.caches(), clock: &config.clock })
}

/// Its loops are those of this process.
fn is_own(ctx: &Context, node: &str) -> bool {
    ctx.state.config().machine.node.as_deref() == Some(node)
}

#[derive(Deserialize)]
struct Pod {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
}

/// The one node that looks after an object, empty where there is none yet; `None` where every node does.
fn node_of(ctx: &Context, resource: &Resource, key: &Key) -> Option<String> {
    if *resource == NODES {
        return Some(key.name.clone());
    }
    if *resource != PODS {
        return None;
    }
    let pod = corten_kubelets::cached::<Pod>(ctx.state.caches(), &PODS, &key.namespace, &key.name);
    Some(pod.map(|it| it.spec.node_name).unwrap_or_default())
}

fn snapshot(ctx: &Context, resource: &Resource) -> Arc<Snapshot> {
    ctx.state.caches().get(resource).expect("what nodes have journals of are rows of the table").snapshot()
}
