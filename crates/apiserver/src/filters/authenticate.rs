//! Finds out who asks: the caller inside the process, the holder of a client certificate or of a token, or nobody in
//! particular.
//!
//! A credential that was presented and proves nothing is 401; only a request without any is anonymous.

use corten_access::credential::{self, Attempted, Credential, Proof};
use corten_cacher::{answer, body::Response};
use corten_meta::Status;

use super::{audit, catch_up::caught_up, next::Rest};
use crate::context::Context;

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let mut identified = identify(ctx).await;
    // A token that was issued through another server may be of what the caches do not hold yet.
    if identified.is_err() && ctx.state.config().store.is_shared() && caught_up(&ctx.state).await.is_ok() {
        identified = identify(ctx).await;
    }
    match identified {
        Ok(identity) => ctx.identity = Some(identity),
        Err(Attempted(attempted)) => {
            let status = Status::unauthorized();
            audit::refused(ctx, &status, attempted);
            return answer::status(&status);
        }
    }
    credential::forget_secrets(&mut ctx.headers);
    rest.run(ctx).await
}

async fn identify(ctx: &mut Context) -> Result<corten_access::Identity, Attempted> {
    // Only calls from inside the process come with an identity: nothing on the wire can set it.
    if let Some(known) = &ctx.identity {
        ctx.credential = Credential::Inside;
        return Ok(known.clone());
    }
    let Proof { identity, credential, stale, .. } = {
        let access = ctx.state.access();
        access.identify(ctx.peer.as_ref(), &ctx.headers, ctx.uri.path()).await?
    };
    if let Some(stale) = stale {
        ctx.audit_annotations.insert("authentication.k8s.io/stale-token".into(), stale);
    }
    ctx.credential = credential;
    Ok(identity)
}
