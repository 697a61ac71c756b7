//! Requests about objects see what anybody had written before they came, whichever server it was written through.
//!
//! Where the store is shared, its newest revision is asked for, and the caches are waited for: as upstream's consistent reads
//! from the watch cache (KEP-2340), and before writes as well, which begin with what the caches hold. A read that names a
//! resourceVersion asks for no more than that.

use std::time::Duration;

use corten_cacher::{answer, body::Response, watch_cache::is_stored};
use corten_meta::Status;
use corten_routes::Route;

use super::next::Rest;
use crate::{context::Context, state::State};

/// How long the caches have to catch up; a watch that is lost may have to be begun again at another member.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    if is_about_now(ctx)
        && let Err(status) = caught_up(&ctx.state).await
    {
        return answer::status(&status);
    }
    rest.run(ctx).await
}

fn is_about_now(ctx: &Context) -> bool {
    let is_about_objects = match &ctx.info.route {
        Route::Collection(kind, _) | Route::Object(kind, _) | Route::Subresource(kind, ..) => {
            is_stored(&kind.stored_row())
        }
        _ => false,
    };
    let is_given = |name: &str| ctx.info.query.get(name).is_some_and(|it| !it.is_empty());
    let names_revision = ctx.method.is_safe() && (is_given("resourceVersion") || is_given("continue"));
    is_about_objects && !names_revision && ctx.state.config().store.is_shared()
}

/// Waits until the caches hold what anybody has written by now.
///
/// # Errors
/// 503 where the store does not answer, or the caches do not catch up in time.
pub(crate) async fn caught_up(state: &State) -> Result<(), Status> {
    let caught_up = catch_up(state).await;
    // The server's own loops ask all the time: nobody else has to, for this to end.
    state.note_lag(caught_up.as_ref().err().map(|it| it.message.clone()));
    caught_up
}

async fn catch_up(state: &State) -> Result<(), Status> {
    let newest = state.config().store.newest().await.map_err(|it| Status::unavailable(it.to_string()))?;
    let caches = state.caches();
    let reached = caches.until(|| (caches.applied() >= newest).then_some(()));
    tokio::time::timeout(PATIENCE, reached).await.map_err(|_| {
        let is = caches.applied();
        Status::unavailable(format!(
            "the watch caches are at revision {is} and the store is at {newest}; please try again"
        ))
    })
}
