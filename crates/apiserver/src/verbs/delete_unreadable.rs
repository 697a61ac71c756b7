//! DELETE of an object that cannot be read, as a last resort: without its finalizers, preconditions and what else a deletion looks at
//! (KEP-3926, `corruptObjectDeleter`).

use corten_access::{Attributes, Decision};
use corten_meta::Status;
use corten_routes::DeleteOptions;
use corten_store::Revision;
use serde_json::Value;

use super::{guaranteed_update::GuaranteedUpdate, request_scope::RequestScope, write, write_request::WriteRequest};
use crate::context::Context;

/// Whoever may delete the object must be allowed this, too.
const VERB: &str = "unsafe-delete-ignore-read-errors";
const NOTE: &str = "allowunsafemalformedobjectdeletion.admission.k8s.io";

/// # Errors
/// 403 for who may not do this, 422 for an object that can be read or is not there.
pub(super) async fn remove(ctx: &Context, target: &RequestScope, options: &DeleteOptions) -> Result<(), Status> {
    authorize(ctx, target).await?;
    let mut update = GuaranteedUpdate::begin(ctx);
    loop {
        let Some(revision) = unreadable(ctx, target).await? else {
            return Err(Status::invalid(target.resource(), &target.name, &[DeleteOptions::not_of_readable()]));
        };
        let asked = WriteRequest::delete(ctx, target, &Value::Null, options);
        asked.admit(&mut Value::Null).await?;
        asked.validate(&Value::Null).await?;
        // Else somebody has written it meanwhile: perhaps it can be read now.
        if write::remove(&asked, revision).await? {
            tracing::warn!(resource = %target.resource(), namespace = target.namespace, name = target.name, "an object that cannot be read is deleted");
            return Ok(());
        }
        update.again(target).await?;
    }
}

async fn authorize(ctx: &Context, target: &RequestScope) -> Result<(), Status> {
    let question = Attributes { verb: VERB, ..Attributes::of_request(ctx.asker_now(), &ctx.info) };
    let decision = ctx.state.access().decide(&question).await;
    let (word, reason) = match &decision {
        Decision::Allowed(by) => ("allow", by.as_deref().unwrap_or_default()),
        Decision::Denied(denial) => ("deny", &*denial.reason),
    };
    ctx.notes.annotate(&format!("{NOTE}/decision"), word);
    ctx.notes.annotate(&format!("{NOTE}/reason"), reason);
    if decision.is_allowed() {
        return Ok(());
    }
    let detail = format!("not permitted to do {VERB:?}, reason: {reason}");
    Err(Status::forbidden(target.resource(), &target.name, &detail))
}

/// As what it is stored now, where that cannot be read.
async fn unreadable(ctx: &Context, target: &RequestScope) -> Result<Option<Revision>, Status> {
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    let found = ctx.state.config().store.get(&key).await.map_err(|it| Status::internal(&it))?;
    let Some(entry) = found else { return Ok(None) };
    ctx.state.caches().reach(entry.mod_revision).await?;
    let is_unreadable = target.newest(ctx)?.unreadable(&target.namespace, &target.name).is_some();
    Ok(is_unreadable.then_some(entry.mod_revision))
}
