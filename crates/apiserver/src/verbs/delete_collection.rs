//! DELETE of a collection: every object the selectors match, a bounded number at a time.

use std::sync::Arc;

use corten_cacher::{
    answer,
    body::{BoxFuture, Response},
    codec::Form,
    watch_cache::{Snapshot, Stored},
};
use corten_conversion::SnapshotQuery;
use corten_kinds::KindRef;
use corten_meta::{Details, Status};
use corten_routes::DeleteOptions;
use futures_util::future::join_all;
use http::StatusCode;

use super::{
    delete::{self, Removed},
    list,
    request_scope::RequestScope,
};
use crate::context::Context;

/// So many deletions wait for the store together.
const BATCH: usize = 32;

fn remove_one<'a>(
    ctx: &'a Context,
    one: RequestScope,
    options: &'a DeleteOptions,
) -> BoxFuture<'a, Result<Removed, Status>> {
    Box::pin(async move { delete::remove(ctx, &one, options).await })
}

/// As the deletion of one object answers.
fn all_gone(target: &RequestScope) -> Status {
    let resource = target.resource();
    let details =
        Details { group: resource.group.to_string(), kind: resource.plural.to_string(), ..Details::default() };
    Status { code: 0, details: Some(details), ..Status::success() }
}

async fn remove_all(
    ctx: &Context,
    target: &RequestScope,
    doomed: &[Arc<Stored>],
    options: &DeleteOptions,
) -> Result<(), Status> {
    for batch in doomed.chunks(BATCH) {
        let mut removals = Vec::with_capacity(batch.len());
        for it in batch {
            let one = RequestScope { namespace: it.namespace().into(), name: it.name().into(), ..target.clone() };
            removals.push(remove_one(ctx, one, options));
        }
        for result in join_all(removals).await {
            match result {
                Err(status) if status.is_not_found() => {}
                other => drop(other?),
            }
        }
    }
    Ok(())
}

/// Deletes the objects of a definition that goes as its finalizer does, which has the collection delete them at the store
/// (`CRDFinalizer.deleteInstances`): no version need be served, and no plugin of admission is asked.
///
/// # Errors
/// Why the first object that stays does.
pub(crate) async fn at_the_store(ctx: &Context, kind: &KindRef, doomed: &[Arc<Stored>]) -> Result<(), Status> {
    let target = RequestScope::of(ctx, kind.clone())?;
    remove_all(ctx, &target, doomed, &DeleteOptions::default()).await
}

/// Answers with the list of what was asked to go, as it was before. As in `DeleteCollection` of the generic store, `limit`
/// ends the list and what goes.
pub(crate) async fn delete_collection(
    ctx: &mut Context,
    target: &RequestScope,
    form: Form,
) -> Result<Response, Status> {
    let options = delete::options(ctx).await?;
    options.check_of_many()?;
    let matcher = list::matcher(ctx, target)?;
    // What is to go is known without its webhook, unless a selector asks for what only that can tell.
    let seen = if matcher.is_selective() { form } else { Form::Partial };
    let mut items = list::items(ctx, target, seen).await?;
    let doomed: Vec<Arc<Stored>> = items.objects().cloned().collect();
    remove_all(ctx, target, &doomed, &options).await?;
    items.form = form;
    if let Some(cache) = target.converter(form, &matcher).filter(|_| seen != form) {
        let gone = Snapshot::of(items.snapshot.revision, doomed);
        let wanted = SnapshotQuery { snapshot: &gone, matcher: &matcher, after: None, limit: None };
        match ctx.state.conversion().snapshot(&target.asked, cache, &wanted).await {
            Ok(shown) => items.snapshot = Arc::new(shown),
            // They have gone, whether their webhook can show them or not.
            Err(_) => return Ok(answer::json(StatusCode::OK, &all_gone(target))),
        }
    }
    let mut body = Vec::new();
    items.for_each(|it| body.extend_from_slice(&it));
    Ok(answer::json_bytes(StatusCode::OK, body))
}
