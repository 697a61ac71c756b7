//! ComponentStatuses: the three components of a control plane, looked at when somebody asks. Nothing of them is stored.

use corten_cacher::body::Response;
use corten_kinds::Kind;
use corten_meta::{FieldSelector, Selector, Status};
use serde_json::{Value, json};

use super::unstored;
use crate::context::Context;

/// Why something is not healthy.
type Health = Result<(), String>;

pub(crate) async fn get(ctx: &Context, kind: &'static Kind) -> Result<Response, Status> {
    let name = &ctx.info.name;
    let found = all(ctx).await.into_iter().find(|it| it["metadata"]["name"] == **name);
    let object = found.ok_or_else(|| Status::not_found(&kind.resource, name))?;
    unstored::object(ctx, kind, object)
}

pub(crate) async fn list(ctx: &Context, kind: &'static Kind) -> Result<Response, Status> {
    let selector = |name: &str| ctx.info.query.get(name).unwrap_or_default();
    let labels = Selector::parse(selector("labelSelector"))
        .map_err(|it| Status::bad_request(format!("unable to parse requirement: {it}")))?;
    let fields = FieldSelector::parse(selector("fieldSelector")).map_err(Status::bad_request)?;
    if let Some(other) = fields.0.iter().find(|it| it.path != "metadata.name") {
        return Err(Status::bad_request(format!("field label not supported: {}", other.path)));
    }
    let mut items = all(ctx).await;
    items.retain(|it| {
        let name = it["metadata"]["name"].as_str().unwrap_or_default();
        labels.matches(&Default::default()) && fields.matches(|_| name)
    });
    unstored::list(ctx, kind, &json!({}), &items)
}

async fn all(ctx: &Context) -> Vec<Value> {
    let metrics = ctx.state.metrics();
    // A loop that lives always watches something.
    let watching = |n: i64, who: &str| if n > 0 { Ok(()) } else { Err(format!("{who} watches this API server")) };
    vec![
        component("controller-manager", watching(metrics.watches.of_controllers(), "no controller")),
        component("scheduler", watching(metrics.watches.of_schedulers(), "no scheduler")),
        component("etcd-0", store(ctx).await),
    ]
}

async fn store(ctx: &Context) -> Health {
    ctx.state.config().store.get(b"/registry/health").await.map_err(|it| it.to_string())?;
    if ctx.state.is_fed() { Ok(()) } else { Err("the watch caches lost the store".to_owned()) }
}

fn component(name: &str, health: Health) -> Value {
    let condition = match health {
        Ok(()) => json!({ "type": "Healthy", "status": "True", "message": "ok" }),
        Err(reason) => json!({ "type": "Healthy", "status": "False", "message": reason }),
    };
    json!({
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": { "name": name },
        "conditions": [condition],
    })
}
