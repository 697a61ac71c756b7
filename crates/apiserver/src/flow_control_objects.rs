//! Keeps the FlowSchemas and PriorityLevelConfigurations: puts back those every cluster has, and says of a FlowSchema whether its
//! priority level is there (condition `Dangling`).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_api::resources::{FLOW_SCHEMAS, PRIORITY_LEVEL_CONFIGURATIONS};
use corten_cacher::watch_cache::{Snapshot, Stored};
use corten_meta::{Key, Resource, Status, Time, transition_time};
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    bootstrap,
    own_requests::{self, JSON},
    state::State,
};

static SCHEMAS: Resource = FLOW_SCHEMAS;
static LEVELS: Resource = PRIORITY_LEVEL_CONFIGURATIONS;

/// Before what failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Until the server ends.
pub(crate) async fn run(state: State, mut ended: watch::Receiver<bool>) {
    let keeping = async {
        let mut said = CheckedFlowSchemas::default();
        loop {
            let caches = [&SCHEMAS, &LEVELS].map(|it| state.caches().get(it).map(|it| it.events()));
            let [Some(schemas), Some(levels)] = caches else { return };
            let (n_schemas, n_levels) = (schemas.count(), levels.count());
            let result = keep(&state, &mut said).await;
            let changed = async {
                tokio::select! {
                    () = schemas.after(n_schemas) => {}
                    () = levels.after(n_levels) => {}
                }
            };
            match result {
                Ok(()) => changed.await,
                Err(status) => {
                    tracing::warn!(%status, "flow schemas and priority levels cannot be kept up");
                    drop(tokio::time::timeout(RETRY, changed).await);
                }
            }
        }
    };
    tokio::select! {
        biased;
        _ = ended.wait_for(|it| *it) => {}
        () = keeping => {}
    }
}

/// The FlowSchemas whose conditions are right, by the revision they are right at, while these are the priority levels: of thousands
/// the one that has changed is read.
#[derive(Default)]
pub(crate) struct CheckedFlowSchemas {
    levels: u64,
    schemas: BTreeMap<String, u64>,
}

impl CheckedFlowSchemas {
    /// Those that nothing is known of.
    fn unknown<'s>(&mut self, schemas: &'s Snapshot, levels: u64) -> Vec<&'s Arc<Stored>> {
        if self.levels != levels {
            *self = Self { levels, ..Self::default() };
        }
        self.schemas.retain(|name, _| schemas.get("", name).is_some());
        schemas.iter().filter(|it| self.schemas.get(it.name()) != Some(&it.revision())).collect()
    }
}

/// Makes the objects what they should be now.
///
/// # Errors
/// What a write is refused with.
pub(crate) async fn keep(state: &State, said: &mut CheckedFlowSchemas) -> Result<(), Status> {
    bootstrap::keep_flow_control(state).await?;
    let [Some(schemas), Some(levels)] = [&SCHEMAS, &LEVELS].map(|it| state.caches().get(it).map(|it| it.snapshot()))
    else {
        return Ok(());
    };
    let mut told = Vec::new();
    for schema in said.unknown(&schemas, levels.revision) {
        match with_dangling(&schema.parse(), &levels, state.now()) {
            Some(new) => told.push(new),
            None => drop(said.schemas.insert(schema.name().to_owned(), schema.revision())),
        }
    }
    let writes = told.into_iter().map(|new| async move {
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/status", SCHEMAS.path(&Key::cluster(name)));
        match own_requests::send(state, Method::PUT, &path, JSON, new.to_string().into()).await {
            // It was changed or is gone: what is then is looked at next.
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            _ => Ok(()),
        }
    });
    join_all(writes).await.into_iter().collect()
}

/// The FlowSchema with its condition; `None` where it says so already.
fn with_dangling(object: &Value, levels: &Snapshot, now: Time) -> Option<Value> {
    let level = object["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
    let (status, reason, message) = if levels.get("", level).is_some() {
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} and it exists");
        ("False", "Found", message)
    } else {
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} but there is no such object"
        );
        ("True", "NotFound", message)
    };
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut by_type: BTreeMap<String, Value> =
        conditions.into_iter().map(|it| (it["type"].as_str().unwrap_or_default().to_owned(), it)).collect();
    let before = by_type.get("Dangling");
    let is_said = |field: &str, value: &str| before.is_some_and(|it| it[field] == value);
    if is_said("status", status) && is_said("reason", reason) && is_said("message", &message) {
        return None;
    }
    let since = transition_time(before, status, now);
    let condition = json!({ "type": "Dangling", "status": status, "lastTransitionTime": since, "reason": reason, "message": message });
    by_type.insert("Dangling".into(), condition);
    let mut new = object.clone();
    new["status"]["conditions"] = by_type.into_values().collect();
    Some(new)
}
