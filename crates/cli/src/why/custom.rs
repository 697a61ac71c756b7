//! The kinds that definitions in the cluster describe.

use std::collections::BTreeMap;

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::Error;
use corten_kinds::{
    Kind,
    custom::{has_condition, rows},
};

use parking_lot::Mutex;
use serde_json::Value;

use super::reader::Reader;

/// One row for each definition that is established: of the version that its objects are stored in, where that is served.
pub(super) async fn kinds(reader: &Reader<'_>) -> Vec<&'static Kind> {
    let definitions = reader.list(&CUSTOM_RESOURCE_DEFINITIONS, "").await;
    definitions.iter().filter(|it| has_condition(it, "Established")).filter_map(known).collect()
}

/// The row of a definition as it is now, made once for the whole command, however often that asks: rows are kept to its end.
fn known(definition: &Value) -> Option<&'static Kind> {
    static KNOWN: Mutex<BTreeMap<String, Option<&'static Kind>>> = Mutex::new(BTreeMap::new());
    let metadata = &definition["metadata"];
    let version = format!("{} {}", metadata["uid"], metadata["resourceVersion"]);
    *KNOWN.lock().entry(version).or_insert_with(|| row(definition))
}

fn row(definition: &Value) -> Option<&'static Kind> {
    let mut definition = definition.clone();
    // What the objects are called is all that is asked here: schemas take long to read.
    for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"] = Value::Null;
    }
    let rows = rows(&definition)?;
    let is_stored = rows.served.iter().find(|it| it.resource == rows.stored.resource).cloned();
    let row = is_stored.or_else(|| rows.served.first().cloned())?;
    Some(Box::leak(Box::new(row)))
}

/// The kind that a word names, in any spelling that kubectl takes: `crontab`, `ct`, `crontabs.stable.example.com`.
pub(crate) async fn custom_kind(reader: &Reader<'_>, word: &str) -> Result<Option<&'static Kind>, Error> {
    let kinds = kinds(reader).await;
    if let Some(error) = reader.unreachable() {
        return Err(Error::Transport(error));
    }
    let is_named = |kind: &Kind, name: &str| {
        kind.resource.plural == name
            || kind.singular == name
            || kind.short_names.contains(name)
            || kind.resource.kind.to_lowercase() == name
    };
    let of_group = |kind: &Kind| {
        let rest = word.split_once('.').map(|(name, rest)| {
            (name, rest.strip_prefix(&*kind.resource.version).and_then(|it| it.strip_prefix('.')).unwrap_or(rest))
        });
        rest.is_some_and(|(name, group)| group == kind.resource.group && is_named(kind, name))
    };
    Ok(kinds.into_iter().find(|it| is_named(it, word) || of_group(it)))
}
