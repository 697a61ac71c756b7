//! A watcher of the API that compares what it is sent with what was stored: nothing left out, nothing twice.

use std::{sync::Arc, time::Duration};

use corten_client::{Client, ListParams, Watch, WatchEvent, WatchParams, decode};
use corten_meta::{ObjectMeta, Resource};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::oracle::Oracle;

/// What one watch was sent, from one version on.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    from: u64,
    seen: Vec<u64>,
}

pub(crate) type Segments = Arc<Mutex<Vec<Segment>>>;

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

/// Watches for ever; after a break it goes on where it was, or with a new list where the server no longer knows that.
pub(crate) async fn watch(client: Client, resource: Resource, segments: Segments) {
    loop {
        let Some(from) = begin(&client, &resource, &segments).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let params = WatchParams { resource_version: from.to_string(), ..WatchParams::default() };
        match client.watch(&resource, &params).await {
            Ok(watch) => follow(watch, &segments).await,
            Err(error) if error.is_expired() => segments.lock().push(Segment { from: 0, seen: Vec::new() }),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The version to watch from: the last one seen, or that of a new list.
async fn begin(client: &Client, resource: &Resource, segments: &Segments) -> Option<u64> {
    let last = segments.lock().last().map(|it| it.seen.last().copied().unwrap_or(it.from));
    if let Some(last) = last.filter(|it| *it > 0) {
        return Some(last);
    }
    let list = client.list(resource, &ListParams { limit: 1, ..ListParams::default() }).await.ok()?;
    let from = list.resource_version.parse().ok()?;
    segments.lock().push(Segment { from, seen: Vec::new() });
    Some(from)
}

async fn follow(mut watch: Watch, segments: &Segments) {
    while let Some(Ok(event)) = watch.next().await {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                let version = decode::<OnlyMeta>(&object).ok().and_then(|it| it.metadata.resource_version.parse().ok());
                if let Some(segment) = segments.lock().last_mut() {
                    segment.seen.push(version.unwrap_or(0));
                }
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => {
                segments.lock().push(Segment { from: 0, seen: Vec::new() });
                return;
            }
        }
    }
}

/// Compares what was sent with what was stored.
pub(crate) fn compare(truth: &Oracle, plural: &str, segments: &Segments) -> Result<(), String> {
    for segment in segments.lock().iter() {
        let Some(to) = segment.seen.last() else { continue };
        let stored = truth.revisions(plural, segment.from, *to);
        if stored != segment.seen {
            let missing = stored.iter().find(|it| !segment.seen.contains(it));
            return Err(format!(
                "a watch of {plural} from {} was sent {} events where {} were stored (first missing: {missing:?})",
                segment.from,
                segment.seen.len(),
                stored.len()
            ));
        }
    }
    Ok(())
}
