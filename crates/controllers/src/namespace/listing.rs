//! What servers hold in a namespace, as they say themselves just before it goes: other servers, and one of another version, whose kinds
//! are seen apart.
//!
//! Their objects are seen through watches, and lists of every few seconds: what those showed last may be of a time before
//! their server died, or before an object was made. So each resource is listed once more, and none may fail
//! (`namespacedResourcesDeleter.deleteAllContent`).

use corten_meta::{ObjectMeta, Resource};
use corten_reconcile::{ApiPath, Effect, View};
use serde::Deserialize;

use crate::{elsewhere, projections::Namespace};

/// More of one resource need not be known at once: what was found goes, and then it is listed again.
const FOUND_MAX: &str = "50";

/// What was listed since the last plan that did anything else.
pub(super) struct Listing {
    /// What has not been listed.
    pub(super) missing: Vec<Effect>,
    /// What cannot be, and why.
    pub(super) refused: Vec<(Resource, String)>,
    pub(super) found: Vec<(Resource, Vec<ObjectMeta>)>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
}

impl Listing {
    /// `own` are kinds of the cluster's server itself.
    pub(super) fn of(view: &View, namespace: &Namespace, own: Vec<Resource>) -> Self {
        let key = namespace.metadata.key();
        let mut listing = Self { missing: Vec::new(), refused: Vec::new(), found: Vec::new() };
        for resource in elsewhere::resources(view).filter(|it| it.namespaced).chain(own) {
            let path =
                ApiPath { path: resource.collection_path(&key.name), query: vec![("limit", FOUND_MAX.to_owned())] };
            match view.fetched(&key, &path) {
                None => listing.missing.push(Effect::Fetch(path)),
                Some(Err(why)) => listing.refused.push((resource, why.clone())),
                Some(Ok(body)) => match serde_json::from_slice::<List>(body) {
                    Ok(list) if list.items.is_empty() => {}
                    Ok(list) => listing.found.push((resource, list.items.into_iter().map(|it| it.metadata).collect())),
                    Err(error) => listing.refused.push((resource, format!("its answer is no list: {error}"))),
                },
            }
        }
        listing
    }
}
