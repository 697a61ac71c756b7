//! The kinds that definitions in the cluster describe.

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_client::Error;
use corten_kinds::{
    Kind,
    custom::{has_condition, rows},
};

use super::reader::Reader;

/// One row for each definition that is established: of the version that its objects are stored in, where that is served.
pub(super) async fn kinds(reader: &Reader<'_>) -> Vec<&'static Kind> {
    let definitions = reader.list(&CUSTOM_RESOURCE_DEFINITIONS, "").await;
    let established = definitions.iter().filter(|it| has_condition(it, "Established"));
    let rows = established.filter_map(rows).filter_map(|it| {
        let is_stored = it.served.iter().find(|row| row.resource == it.stored.resource).cloned();
        is_stored.or_else(|| it.served.first().cloned())
    });
    // They are few, and the command ends soon.
    rows.map(|it| &**Box::leak(Box::new(it))).collect()
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
