//! The metrics API: GET and LIST of what nodes and Pods use. As metrics-server has it, an object is named and labelled as
//! what it is of.

use corten_kubelets::{Pair, Source, Use, Window};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_api::resources::{NODES, PODS};
use corten_cacher::{
    body::Response,
    watch_cache::{Matcher, Snapshot, Stored},
};
use corten_kinds::Kind;
use corten_meta::{Quantity, Resource, Status, duration};
use serde::Deserialize;
use serde_json::{Value, json};

use super::unstored;
use crate::context::Context;

type Pairs = BTreeMap<String, Pair>;

pub(crate) async fn answer(ctx: &Context, kind: &'static Kind) -> Result<Response, Status> {
    if ctx.info.verb == "get" {
        return unstored::object(ctx, kind, get(ctx, kind).await?);
    }
    unstored::list(ctx, kind, &json!({}), &list(ctx, kind).await?)
}

/// The resource whose use is asked for.
fn measured(kind: &Kind) -> &'static Resource {
    static OF_NODES: Resource = NODES;
    static OF_PODS: Resource = PODS;
    if kind.resource.namespaced { &OF_PODS } else { &OF_NODES }
}

fn snapshot(ctx: &Context, resource: &Resource) -> Arc<Snapshot> {
    ctx.state.caches().get(resource).expect("nodes and pods are rows of the table").snapshot()
}

async fn get(ctx: &Context, kind: &'static Kind) -> Result<Value, Status> {
    let (namespace, name) = (&ctx.info.namespace, &ctx.info.name);
    let of = measured(kind);
    let objects = snapshot(ctx, of);
    let stored = objects.get(namespace, name).ok_or_else(|| Status::not_found(of, name))?;
    let pairs = ctx.state.usages().of(&source(ctx), &node_names(ctx)).await?;
    // As in metrics-server: what is not found is named by the kind.
    let unknown = || {
        let plural = kind.resource.kind.to_lowercase();
        let resource = Resource { plural: plural.into(), ..kind.resource.clone() };
        let full = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        Status::not_found(&resource, &full)
    };
    let mut object = json!({ "kind": kind.resource.kind, "apiVersion": kind.resource.api_version() });
    let mut fields = used(ctx, stored, &pairs, kind).ok_or_else(unknown)?;
    object.as_object_mut().expect("made as an object").append(fields.as_object_mut().expect("made as an object"));
    Ok(object)
}

async fn list(ctx: &Context, kind: &'static Kind) -> Result<Vec<Value>, Status> {
    let selector = |name: &str| ctx.info.query.get(name).unwrap_or_default();
    let matcher = Matcher::new(kind, &ctx.info.namespace, selector("labelSelector"), selector("fieldSelector"))?;
    let pairs = ctx.state.usages().of(&source(ctx), &node_names(ctx)).await?;
    let objects = snapshot(ctx, measured(kind));
    let wanted = objects.range(&matcher.namespace, None).filter(|it| matcher.matches(it));
    Ok(wanted.filter_map(|it| used(ctx, it, &pairs, kind)).collect())
}

fn source(ctx: &Context) -> Source<'_> {
    let config = ctx.state.config();
    Source { kubelets: config.kubelet_dial.as_ref(), caches: ctx.state.caches(), clock: &config.clock }
}

fn node_names(ctx: &Context) -> Vec<String> {
    snapshot(ctx, &NODES).range("", None).map(|it| it.name().to_owned()).collect()
}

/// `None`: nothing is known of it.
fn used(ctx: &Context, stored: &Stored, pairs: &Pairs, kind: &Kind) -> Option<Value> {
    let metadata = json!({
        "name": stored.name(),
        "namespace": stored.namespace(),
        "creationTimestamp": ctx.state.now().whole_seconds(),
        "labels": stored.labels(),
    });
    let mut object = json!({ "metadata": metadata });
    let pruned = object["metadata"].as_object_mut().expect("made as an object");
    pruned.retain(|_, it| *it != json!("") && *it != json!({}));
    let (field, usage, window) = if kind.resource.namespaced {
        let pair = pairs.get(&node_of(stored))?;
        let (uses, window) = pair.pod(stored.namespace(), stored.name())?;
        let one = |(name, it): (&str, Use)| json!({ "name": name, "usage": usage(it) });
        ("containers", uses.into_iter().map(one).collect(), window)
    } else {
        let (it, window) = pairs.get(stored.name())?.node()?;
        ("usage", usage(it), window)
    };
    let Window { end, length } = window;
    object["timestamp"] = json!(end.whole_seconds());
    object["window"] = json!(duration::text(millis(length).saturating_mul(1_000_000)));
    object[field] = usage;
    Some(object)
}

fn node_of(pod: &Stored) -> String {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Pod {
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        node_name: String,
    }
    serde_json::from_slice::<Pod>(pod.value()).unwrap_or_default().spec.node_name
}

fn usage(it: Use) -> Value {
    json!({ "cpu": Quantity::nanos(it.nanocores), "memory": Quantity::bytes(it.memory_bytes) })
}

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
