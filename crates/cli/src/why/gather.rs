//! Reads what there is to know of an object: itself, its journal, its warnings, and what its waits point at.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
};

use corten_api::resources::{EVENTS, JOURNALS};
use corten_client::{Client, Error, ListParams};
use corten_kinds::Kind;
use corten_meta::{Key, Resource};
use corten_reconcile::{Journal, Wait};
use serde_json::Value;

use super::{
    Account,
    account::{Evidence, account},
};

/// Deeper chains of causes than this do not fit a screen.
const DEPTH_MAX: usize = 6;
const WARNINGS_MAX: usize = 3;

/// Explains one object.
///
/// # Errors
/// The object is not there, or the server refuses to show it.
pub(crate) async fn explain(client: &Client, kind: &'static Kind, key: &Key) -> Result<Account, Error> {
    let mut seen = BTreeSet::new();
    explain_below(client, kind, key.clone(), &mut seen).await
}

fn explain_below<'a>(
    client: &'a Client,
    kind: &'static Kind,
    key: Key,
    seen: &'a mut BTreeSet<String>,
) -> Pin<Box<dyn Future<Output = Result<Account, Error>> + Send + 'a>> {
    Box::pin(async move {
        let object: Value = client.get_as(&kind.resource, &key).await?;
        let decisions = journal(client, &kind.resource, &key).await?;
        let warnings = warnings(client, &object).await?;
        seen.insert(format!("{}/{}", kind.singular, key.name));

        let mut below = Vec::new();
        for wait in decisions.iter().flat_map(|it| &it.waits) {
            let Some((on, on_key)) = target(wait, &key) else { continue };
            if seen.len() > DEPTH_MAX || seen.contains(&format!("{}/{}", on.singular, on_key.name)) {
                continue;
            }
            // What it points at may be gone by now: then the wait itself says enough.
            if let Ok(account) = explain_below(client, on, on_key, seen).await {
                below.push((wait.clone(), account));
            }
        }
        let evidence = Evidence { kind: kind.singular.to_owned(), object, decisions, warnings };
        Ok(account(evidence, |wait| {
            let at = below.iter().position(|(it, _)| it == wait)?;
            Some(below.swap_remove(at).1)
        }))
    })
}

/// The object a wait points at, in the namespace of the one that waits where its kind has one.
fn target(wait: &Wait, from: &Key) -> Option<(&'static Kind, Key)> {
    let (kind, name) = wait.on.as_deref()?.split_once('/')?;
    let kind = corten_kinds::by_name(kind)?;
    let namespace = if kind.resource.namespaced { &*from.namespace } else { "" };
    Some((kind, Key::new(namespace, name)))
}

/// The loops' decisions; none where no journal is kept (the loops have just started).
async fn journal(client: &Client, resource: &Resource, key: &Key) -> Result<Vec<corten_reconcile::Decision>, Error> {
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    let name = Key::new(namespace, format!("{}.{}", resource.qualified(), key.name));
    match client.get_as::<Journal>(&JOURNALS, &name).await {
        Ok(journal) => Ok(journal.decisions),
        Err(Error::Status(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The newest warnings about the object, oldest first.
async fn warnings(client: &Client, object: &Value) -> Result<Vec<String>, Error> {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let params = ListParams {
        namespace: namespace.to_owned(),
        field_selector: format!("involvedObject.uid={uid},type=Warning"),
        ..ListParams::default()
    };
    let mut events: Vec<Value> = match client.list_as(&EVENTS, &params).await {
        Ok(events) => events,
        // Who may read the object but not its events still gets the rest.
        Err(Error::Status(status)) if status.code == 403 => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let when = |it: &Value| it["lastTimestamp"].as_str().or(it["eventTime"].as_str()).unwrap_or_default().to_owned();
    events.sort_by_key(when);
    // Of each reason the newest says enough.
    let mut by_reason = BTreeMap::new();
    for event in events {
        by_reason.insert(event["reason"].as_str().unwrap_or_default().to_owned(), event);
    }
    let mut events: Vec<Value> = by_reason.into_values().collect();
    events.sort_by_key(when);
    let line = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        let count = it["count"].as_i64().filter(|it| *it > 1).map(|it| format!(" (x{it})")).unwrap_or_default();
        format!("{} {}: {}{count}", when(it), text("reason"), text("message"))
    };
    let newest = events.iter().skip(events.len().saturating_sub(WARNINGS_MAX));
    Ok(newest.map(line).collect())
}
