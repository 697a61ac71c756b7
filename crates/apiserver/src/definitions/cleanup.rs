//! Deletes the objects of a definition that is being deleted, and then lets go of it.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use corten_cacher::watch_cache::{ResourceCache, Snapshot, Stored};
use corten_conversion::KnownDefinition;
use corten_kinds::{
    KindRef,
    custom::{CLEANUP_FINALIZER, Condition, Rows, with_condition},
};
use corten_meta::{Key, Status, aggregate};
use corten_store::{Operation, Outcome, Txn};
use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, update_all};
use crate::{
    own_requests::{MERGE_PATCH, at_the_store, send},
    state::State,
    verbs::delete_collection,
};

pub(super) async fn empty(state: &State, known: &KnownDefinition) -> Result<(), Status> {
    let Some(rows) = known.rows() else { return let_go(state, known).await };
    let resource = &rows.stored.resource;
    let Some(cache) = state.caches().custom(&rows.stored) else { return let_go(state, known).await };
    // It has begun to go since its rows were looked at: that wakes who looks again, and serves what refuses new objects.
    if !known.refuses_objects() {
        return Ok(());
    }
    // What is announced from now on is refused: its row no longer allows it.
    if cache.is_written_to() {
        return Err(Status::failure(503, "ServiceUnavailable", "objects of it are still being written"));
    }
    let objects = cache.snapshot();
    if objects.is_empty() {
        return let_go(state, known).await;
    }
    remove_unreadable(state, &cache, &objects).await?;
    delete(state, known, rows, &objects).await?;
    let left = cache.snapshot();
    if left.is_empty() {
        return let_go(state, known).await;
    }
    let message = format!(
        "CustomResource deletion is in progress: {} {resource} are left{}",
        left.len(),
        held(left.iter().map(|it| it.parse()))
    );
    tell(state, known, "InstanceDeletionInProgress", message).await;
    Ok(())
}

/// Has every object deleted that is not yet, a namespace after the other, at the store (`CRDFinalizer.deleteInstances`).
async fn delete(state: &State, known: &KnownDefinition, rows: &Rows, objects: &Snapshot) -> Result<(), Status> {
    let mut namespaces: BTreeMap<&str, Vec<Arc<Stored>>> = BTreeMap::new();
    for object in objects.iter().filter(|it| it.parse()["metadata"]["deletionTimestamp"].is_null()) {
        namespaces.entry(object.namespace()).or_default().push(object.clone());
    }
    let ctx = at_the_store(state);
    let mut refusals = Vec::new();
    for doomed in namespaces.values() {
        if let Err(refusal) = delete_collection::at_the_store(&ctx, &KindRef::Custom(rows.stored.clone()), doomed).await
        {
            refusals.push(refusal);
        }
    }
    let Some(first) = refusals.first().cloned() else { return Ok(()) };
    let said = aggregate(refusals.into_iter().map(|it| it.message)).unwrap_or_default();
    tell(state, known, "InstanceDeletionFailed", format!("could not issue all deletes: {said}")).await;
    Err(first)
}

/// Whether it is said does not decide whether they go.
async fn tell(state: &State, known: &KnownDefinition, reason: &'static str, message: String) {
    let condition = Condition { kind: "Terminating", is_true: true, reason, message };
    let told = with_condition(&known.definition(), &condition, state.now());
    update_all(state, told.into_iter().collect()).await;
}

/// What cannot be read goes as it is: nobody can take a finalizer off it, or show it to whoever else decides.
async fn remove_unreadable(state: &State, cache: &ResourceCache, objects: &Snapshot) -> Result<(), Status> {
    const BATCH: usize = 100;
    let keys: Vec<Bytes> = objects.unreadable_keys().map(|it| format!("{}{it}", cache.prefix()).into()).collect();
    for keys in keys.chunks(BATCH) {
        let operations = keys.iter().map(|it| Operation::Delete { key: it.clone() }).collect();
        let outcome = state.config().store.commit(Txn { operations, ..Txn::default() }).await;
        let Outcome::Committed(revision) = outcome.map_err(|it| Status::internal(&it))? else { continue };
        tracing::warn!(resource = %cache.kind().resource, n = keys.len(), "objects that cannot be read are deleted with their definition");
        state.caches().reach(revision).await?;
    }
    Ok(())
}

/// What holds the objects, and how many.
fn held(objects: impl Iterator<Item = Value>) -> String {
    let mut by_finalizer: BTreeMap<String, usize> = BTreeMap::new();
    for object in objects {
        for name in object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            *by_finalizer.entry(name.to_owned()).or_default() += 1;
        }
    }
    let told: Vec<String> = by_finalizer.iter().map(|(name, n)| format!("{n} held by the finalizer {name}")).collect();
    if told.is_empty() { String::new() } else { format!(", {}", told.join(", ")) }
}

/// Takes the finalizer off: with the last one the definition goes.
async fn let_go(state: &State, known: &KnownDefinition) -> Result<(), Status> {
    let definition = known.definition();
    let finalizers = definition["metadata"]["finalizers"].as_array();
    let left: Vec<&Value> = finalizers.into_iter().flatten().filter(|it| **it != CLEANUP_FINALIZER).collect();
    let patch = json!({ "metadata": { "uid": known.uid(), "finalizers": left } });
    let path = DEFINITIONS.path(&Key::new("", known.name()));
    send(state, Method::PATCH, &path, MERGE_PATCH, patch.to_string().into()).await.map(drop)
}
