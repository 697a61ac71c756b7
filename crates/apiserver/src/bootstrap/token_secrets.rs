//! Secrets that hold the token of a service account, where what is trusted has changed since they were filled.

use corten_access::tokens::legacy;
use corten_api::resources::SECRETS;
use corten_meta::{Key, Resource, Status};
use http::Method;

use super::{Write, send};
use crate::state::State;

pub(super) async fn publish(state: &State) -> Result<(), Status> {
    let resource: Resource = SECRETS;
    let Some(cache) = state.caches().get(&resource) else { return Ok(()) };
    let snapshot = cache.snapshot();
    for stored in snapshot.iter() {
        let object = stored.parse();
        let mut filled = object.clone();
        legacy::fill(state.caches(), &state.config().pki, stored.namespace(), &mut filled);
        if filled != object {
            let path = resource.path(&Key::new(stored.namespace(), stored.name()));
            match send(state, Write { method: Method::PUT, path, object: filled }).await {
                // It was deleted meanwhile.
                Err(status) if status.is_not_found() => {}
                sent => sent?,
            }
        }
    }
    Ok(())
}
