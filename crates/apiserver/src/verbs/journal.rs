//! GET of a Journal: what every loop last decided about one object, named `pods.web-1` or `deployments.apps.web`.

use corten_kinds::{KINDS, Kind};
use corten_meta::{Key, ObjectMeta, Status};
use corten_reconcile::Journal;
use http::StatusCode;

use crate::{
    answer,
    request::{Context, Response},
    watch_cache,
};

pub(super) fn get(ctx: &Context, journals: &Kind) -> Result<Response, Status> {
    let journals = &journals.resource;
    let name = &ctx.info.name;
    let missing = || Status::not_found(journals, name);
    let (kind, object) = about(name).ok_or_else(missing)?;
    let namespace = if kind.resource.namespaced { &*ctx.info.namespace } else { "" };
    let decisions = ctx.server.config().journals.decisions(&kind.resource, &Key::new(namespace, object));
    if decisions.is_empty() && ctx.server.cache(kind).get(namespace, object).is_none() {
        return Err(missing());
    }
    let journal = Journal {
        api_version: journals.api_version(),
        kind: journals.kind.to_string(),
        metadata: ObjectMeta { name: name.clone(), namespace: ctx.info.namespace.clone(), ..ObjectMeta::default() },
        decisions,
    };
    Ok(answer::json(StatusCode::OK, &journal))
}

/// The kind and name of the object a journal is about. Both may hold dots: the longest resource wins.
fn about(journal: &str) -> Option<(&'static Kind, &str)> {
    let candidates = KINDS.iter().filter(|it| watch_cache::is_stored(it)).filter_map(|kind| {
        let name = journal.strip_prefix(&kind.resource.qualified())?.strip_prefix('.')?;
        (!name.is_empty()).then_some((kind, name))
    });
    candidates.min_by_key(|(_, name)| name.len())
}
