//! The service Watch: one stream of requests and one of responses, which all watches of the stream share.
//!
//! A response says up to which revision its watch has been told everything only where that was asked for (`progress`): the revision is
//! read first, then all that is ready is told, and only then the revision.

mod watcher;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_etcd_api::{WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchRequestKind, WatchResponse};
use corten_store::Error;
use futures_util::{
    Stream, StreamExt,
    future::{AbortHandle, Abortable},
    stream::FuturesUnordered,
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tonic::{Status, Streaming};

use self::watcher::{Watcher, fragments};
use crate::{core::Core, failure, keys};

/// What etcd takes where nothing else is set (`--experimental-watch-progress-notify-interval`).
const PROGRESS_EVERY: Duration = Duration::from_secs(600);
/// Of one stream. Each is looked at for each change.
const WATCHES_MAX: usize = 10_000;
/// No watch: of a response that is about none, or about all.
const NO_ID: i64 = -1;

enum Next {
    Request(Option<Result<WatchRequest, Status>>),
    /// There may be more for this watch, or it is gone.
    Woken(Option<i64>),
    Tick,
    Stopping,
}

pub(crate) fn stream(
    core: Arc<Core>,
    mut requests: Streaming<WatchRequest>,
    mut stopping: watch::Receiver<bool>,
) -> impl Stream<Item = Result<WatchResponse, Status>> {
    async_stream::stream! {
        let mut watches = Watches { core, by_id: BTreeMap::new(), next_id: 0, woken: FuturesUnordered::new() };
        let mut ticks = interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                _ = stopping.wait_for(|it| *it) => Next::Stopping,
                request = requests.next() => Next::Request(request),
                woken = watches.woken.next(), if !watches.woken.is_empty() => Next::Woken(woken.and_then(Result::ok)),
                _ = ticks.tick() => Next::Tick,
            };
            let responses = match next {
                Next::Request(Some(Ok(WatchRequest { request }))) => watches.answer(request).await,
                Next::Woken(Some(id)) => watches.told(id),
                Next::Woken(None) => Ok(Vec::new()),
                Next::Tick => watches.progress_of_quiet(),
                Next::Request(None | Some(Err(_))) => return,
                Next::Stopping => Err(failure::stopped()),
            };
            match responses {
                Ok(responses) => {
                    for response in responses {
                        yield Ok(response);
                    }
                }
                Err(status) => {
                    yield Err(status);
                    return;
                }
            }
        }
    }
}

type Woken = Abortable<corten_store::BoxFuture<'static, i64>>;

struct Watches {
    core: Arc<Core>,
    by_id: BTreeMap<i64, (Watcher, AbortHandle)>,
    next_id: i64,
    woken: FuturesUnordered<Woken>,
}

impl Watches {
    async fn answer(&mut self, asked: Option<WatchRequestKind>) -> Result<Vec<WatchResponse>, Status> {
        match asked {
            Some(WatchRequestKind::Create(asked)) => self.create(asked).await,
            Some(WatchRequestKind::Cancel(WatchCancelRequest { watch_id })) => Ok(self.cancel(watch_id)),
            Some(WatchRequestKind::Progress(_)) => self.progress_of_all(),
            None => Ok(Vec::new()),
        }
    }

    async fn create(&mut self, asked: WatchCreateRequest) -> Result<Vec<WatchResponse>, Status> {
        if self.by_id.len() >= WATCHES_MAX {
            return Ok(vec![self.refused("etcdserver: too many watches of one stream")]);
        }
        let Some(id) = self.id(asked.watch_id) else {
            return Ok(vec![self.refused("etcdserver: mvcc: duplicate watch ID provided on the WatchStream")]);
        };
        // Without a key the first one is meant (`recvLoop` in etcd).
        let key = if asked.key.is_empty() { keys::ZERO } else { asked.key.clone() };
        let range = keys::range(&key, &asked.range_end);
        if range.is_empty() {
            return Ok(vec![self.refused("etcdserver: mvcc: watcher range is empty")]);
        }
        let newest = self.core.store.revision();
        let created =
            WatchResponse { header: self.core.header(newest), watch_id: id, created: true, ..WatchResponse::default() };
        let mut responses = vec![created];
        match Watcher::begin(&self.core, range, newest, &asked).await {
            Ok((watcher, first)) => {
                let of_watch = WatchResponse { watch_id: id, ..first };
                if !of_watch.events.is_empty() {
                    responses.extend(fragments(of_watch, asked.fragment));
                }
                let (woken, handle) = wake(id, &watcher);
                self.by_id.insert(id, (watcher, handle));
                self.woken.push(woken);
                responses.extend(self.told(id)?);
            }
            Err(Error::Compacted { oldest, .. }) => responses.push(self.compacted(id, oldest)),
            Err(error) => return Err(failure::of_store(error)),
        }
        Ok(responses)
    }

    /// The one that was asked for, or the next that is free.
    fn id(&mut self, asked: i64) -> Option<i64> {
        if asked != 0 {
            return (!self.by_id.contains_key(&asked)).then_some(asked);
        }
        while self.by_id.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Some(self.next_id - 1)
    }

    fn cancel(&mut self, id: i64) -> Vec<WatchResponse> {
        let Some((_, handle)) = self.by_id.remove(&id) else { return Vec::new() };
        handle.abort();
        let header = self.core.newest_header();
        vec![WatchResponse { header, watch_id: id, canceled: true, ..WatchResponse::default() }]
    }

    fn refused(&self, reason: &str) -> WatchResponse {
        WatchResponse {
            header: self.core.newest_header(),
            watch_id: NO_ID,
            created: true,
            canceled: true,
            cancel_reason: reason.to_owned(),
            ..WatchResponse::default()
        }
    }

    fn compacted(&self, id: i64, oldest: u64) -> WatchResponse {
        WatchResponse {
            header: self.core.newest_header(),
            watch_id: id,
            canceled: true,
            compact_revision: oldest.cast_signed(),
            cancel_reason: failure::compacted().message().to_owned(),
            ..WatchResponse::default()
        }
    }

    /// All that is ready for a watch, which is then waited for again.
    fn told(&mut self, id: i64) -> Result<Vec<WatchResponse>, Status> {
        let Some((watcher, handle)) = self.by_id.get_mut(&id) else { return Ok(Vec::new()) };
        // What comes while it is read wakes the next one.
        handle.abort();
        let (woken, next) = wake(id, watcher);
        *handle = next;
        self.woken.push(woken);
        let mut responses = Vec::new();
        loop {
            let newest = self.core.store.revision();
            match watcher.ready() {
                None => return Ok(responses),
                Some(Ok(events)) if events.is_empty() => {}
                Some(Ok(events)) => {
                    let last =
                        events.last().and_then(|it| it.kv.as_ref()).map_or(0, |it| it.mod_revision.unsigned_abs());
                    let header = self.core.header(newest.max(last));
                    let response = WatchResponse { header, watch_id: id, events, ..WatchResponse::default() };
                    responses.extend(fragments(response, watcher.is_split));
                }
                Some(Err(Error::Compacted { oldest, .. })) => {
                    responses.push(self.compacted(id, oldest));
                    if let Some((_, handle)) = self.by_id.remove(&id) {
                        handle.abort();
                    }
                    return Ok(responses);
                }
                Some(Err(error)) => return Err(failure::of_store(error)),
            }
        }
    }

    /// As etcd since 3.5.13: one response for all watches, once each has been told everything.
    fn progress_of_all(&mut self) -> Result<Vec<WatchResponse>, Status> {
        let newest = self.core.store.revision();
        let ids: Vec<i64> = self.by_id.keys().copied().collect();
        let mut responses = Vec::new();
        for id in ids {
            responses.extend(self.told(id)?);
        }
        let header = self.core.header(newest);
        responses.push(WatchResponse { header, watch_id: NO_ID, ..WatchResponse::default() });
        Ok(responses)
    }

    /// Of each watch that asked for it and has had nothing to tell since the last time.
    fn progress_of_quiet(&mut self) -> Result<Vec<WatchResponse>, Status> {
        let newest = self.core.store.revision();
        let due = self.by_id.iter_mut().filter_map(|(id, (watcher, _))| watcher.is_due().then_some(*id));
        let due: Vec<i64> = due.collect();
        let mut responses = Vec::new();
        for id in due {
            responses.extend(self.told(id)?);
            if self.by_id.contains_key(&id) {
                let header = self.core.header(newest);
                responses.push(WatchResponse { header, watch_id: id, ..WatchResponse::default() });
            }
        }
        Ok(responses)
    }
}

fn wake(id: i64, watcher: &Watcher) -> (Woken, AbortHandle) {
    let (handle, registration) = AbortHandle::new_pair();
    let woken = watcher.woken();
    let woken: corten_store::BoxFuture<'static, i64> = Box::pin(async move {
        woken.await;
        id
    });
    (Abortable::new(woken, registration), handle)
}
