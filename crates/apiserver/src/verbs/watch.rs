//! WATCH: a stream of frames that were encoded once for all watchers.
//!
//! A watch that cannot go on says so with one ERROR event and ends; the client lists again.

use std::{collections::VecDeque, pin::Pin, sync::Arc, time::Duration};

use async_stream::stream;
use bytes::Bytes;
use corten_access::Recheck;
use corten_cacher::{
    answer,
    body::{BoxError, Response},
    codec::{Form, partial, protobuf, table},
    watch_cache::{
        Caches, Event, EventType, FellBehind, Few, Matcher, ResourceCache, Snapshot, Start, Stored, Watcher,
        protobuf_frame, versions,
    },
};
use corten_conversion::SnapshotQuery;
use corten_kinds::KindRef;
use corten_meta::{Resource, Status, Violation};
use corten_metrics::WatchGuard;
use corten_routes::list_options::{self, Match};
use corten_store::Revision;
use futures_util::Stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{list, request_scope::RequestScope};
use crate::{context::Context, state::State};
use corten_fairness::Permit;

/// Time for a bookmark, and to ask whether the watch may go on.
const LOOK_EVERY: Duration = corten_access::EVERY;
/// Between two bookmarks of a watch that asked for one after every change.
const PROGRESS_REST: Duration = Duration::from_millis(2);
/// A watch without `timeoutSeconds` ends after this and up to as much again, so that not all return at once.
const LIFETIME_SECONDS_MIN: u64 = 1800;
/// Initial events are sent in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;

pub(crate) async fn watch(ctx: &Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    let matcher = list::matcher(ctx, target)?;
    begin(ctx, target, form, matcher).await
}

/// The older way to watch one object: its name is in the path.
pub(crate) async fn watch_one(ctx: &Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    let matcher = list::matcher(ctx, target)?.of_object(&target.namespace, &target.name);
    begin(ctx, target, form, matcher).await
}

/// What is watched in a version that a webhook makes: selectors look at what it made.
struct Converter {
    cache: Arc<ResourceCache>,
    matcher: Matcher,
}

async fn begin(ctx: &Context, target: &RequestScope, form: Form, matcher: Matcher) -> Result<Response, Status> {
    let options = WatchOptions::read(ctx)?;
    // The loops of this process are few and need theirs.
    let n_selector_bytes = list::selectors(ctx).map(str::len).into_iter().sum();
    let room = || ctx.state.room().for_watch(ctx.party(), n_selector_bytes);
    let place = ctx.peer.is_some().then(room).transpose()?;
    // What follows a revision can be waited for before there is that revision; the state at it cannot be shown.
    if let (Start::State | Start::Now, Some(revision)) = (options.start, options.revision) {
        ctx.state.caches().reach(revision).await?;
    }
    let media_type = if ctx.protobuf { protobuf::STREAM } else { "application/json" };
    let mut response = answer::with_type(StatusCode::OK, media_type, Bytes::new());
    // Read before the snapshot is taken: the snapshot then is the state at the later of the two revisions.
    let applied = ctx.state.caches().applied();
    let wanted = matcher.clone();
    let converter =
        target.converter(form, &matcher).map(|it| Converter { cache: it.clone(), matcher: matcher.clone() });
    let matcher = if converter.is_some() { matcher.before_conversion() } else { matcher };
    let frames = match target.cache(ctx).watch(matcher, options.start) {
        Ok(started) => {
            list::whole(&started.snapshot, &wanted)?;
            // What lies between an older revision and now is still to be sent.
            let revision = match options.start {
                Start::After(revision) => revision,
                Start::State | Start::Now => applied.max(started.snapshot.revision),
            };
            let initial = (options.start == Start::State).then_some(Initial {
                snapshot: started.snapshot,
                after: None,
                is_converted: false,
            });
            let frames = Frames::new(ctx, target.asked.clone(), form, &options, started.watcher, initial, revision);
            Frames { converter, ..frames }
        }
        // As in the cacher's `newErrWatcher`: a revision that is gone is told by an event, not by the response's code.
        Err(oldest) => {
            let asked = options.revision.unwrap_or_default();
            let status = Status::expired(format!("too old resource version: {asked} ({oldest})"));
            *response.body_mut() = corten_cacher::body::whole(error_frame(ctx.protobuf, &status));
            return Ok(response);
        }
    };
    *response.body_mut() = StreamBody::new(body(frames, place)).boxed_unsync();
    Ok(response)
}

/// The frames stay where they are: a stream that hands its state on from item to item would move it for each event.
fn body(mut frames: Frames, place: Option<Permit>) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send {
    stream! {
        let _place = place;
        while let Some(bytes) = frames.next().await {
            yield Ok(Frame::data(bytes));
        }
    }
}

struct WatchOptions {
    revision: Option<Revision>,
    start: Start,
    bookmarks: bool,
    /// Say with a bookmark, soon after each change of the resource, selected or not, that everything up to it has been sent.
    progress: bool,
    /// Say with a bookmark where the initial events end.
    mark_initial: bool,
    lifetime: Duration,
}

impl WatchOptions {
    fn read(ctx: &Context) -> Result<Self, Status> {
        let query = &ctx.info.query;
        let revision = list_options::resource_version(&ctx.info.query)?;
        let version_match = list_options::version_match(&ctx.info.query)?;
        let initial = query.flag("sendInitialEvents");
        let forbidden =
            |detail: &str| Err(list_options::invalid(&[Violation::forbidden("resourceVersionMatch", detail)]));
        match (initial, version_match) {
            (Some(_), None | Some(Match::Exact)) => {
                return forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            (None, Some(_)) => {
                return forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            _ => {}
        }
        let start = match (initial, revision) {
            (Some(true), _) | (None, None) => Start::State,
            (Some(false), None) => Start::Now,
            (_, Some(revision)) => Start::After(revision),
        };
        let bookmarks = query.is_set("allowWatchBookmarks");
        let asked = query.seconds("timeoutSeconds")?;
        let spread: u64 = ctx.id.bytes().map(u64::from).sum::<u64>() * 97 % LIFETIME_SECONDS_MIN;
        let lifetime = asked.unwrap_or(Duration::from_secs(LIFETIME_SECONDS_MIN + spread));
        let progress = query.is_set("progressBookmarks");
        Ok(Self { revision, start, bookmarks, progress, mark_initial: bookmarks && initial == Some(true), lifetime })
    }
}

/// The objects a watch begins with, sent as ADDED.
struct Initial {
    snapshot: Arc<Snapshot>,
    after: Option<Arc<str>>,
    /// Its objects are in the version that is watched.
    is_converted: bool,
}

/// What a watch that wants to know has been told.
struct Progress {
    told: Revision,
    rests_until: Instant,
    /// In whose form the objects are stored.
    stored: Resource,
}

impl Progress {
    /// Until there is a change to tell of, and it may be told.
    async fn is_due(&self, state: &State) {
        let caches = state.caches();
        // Most changes are of other resources: who waits for all of them is woken for each.
        if let Some(cache) = caches.get(&self.stored) {
            cache.changed_after(self.told).await;
        }
        caches.until(|| self.is_behind(caches, caches.applied()).then_some(())).await;
        tokio::time::sleep_until(self.rests_until).await;
    }

    /// Has the resource changed since, and everything up to that change come to `revision`? What definitions describe counts as
    /// changed with the cluster.
    fn is_behind(&self, caches: &Caches, revision: Revision) -> bool {
        let newest = caches.get(&self.stored).map_or_else(|| caches.applied(), ResourceCache::snapshot_revision);
        self.told < newest && newest <= revision
    }
}

/// The body of one watch.
struct Frames {
    state: State,
    kind: KindRef,
    form: Form,
    protobuf: bool,
    watcher: Watcher,
    converter: Option<Converter>,
    initial: Option<Initial>,
    mark_initial: bool,
    bookmarks: bool,
    queue: VecDeque<Bytes>,
    /// Everything up to here was sent or is none of the watcher's business.
    revision: Revision,
    progress: Option<Progress>,
    timer: Pin<Box<Sleep>>,
    end: Instant,
    recheck: Recheck,
    /// The changes of rights that `recheck` has been asked after.
    rights: u64,
    /// Nothing was waited for since the last events: then nobody has looked at the timer.
    is_behind: bool,
    with_columns: bool,
    done: bool,
    counted: WatchGuard,
}

impl Frames {
    fn new(
        ctx: &Context,
        kind: KindRef,
        form: Form,
        options: &WatchOptions,
        watcher: Watcher,
        initial: Option<Initial>,
        revision: Revision,
    ) -> Self {
        let now = Instant::now();
        let end = now + options.lifetime;
        let rights = ctx.state.rights_changed().count();
        let stored = kind.stored_row().resource.clone();
        Self {
            recheck: ctx.recheck(),
            rights,
            is_behind: false,
            counted: ctx.state.metrics().watches.begin(
                &kind,
                &ctx.info,
                ctx.identity.as_ref().map_or("", |it| &it.user),
            ),
            state: ctx.state.clone(),
            kind,
            form,
            protobuf: ctx.protobuf,
            watcher,
            converter: None,
            initial,
            mark_initial: options.mark_initial,
            bookmarks: options.bookmarks,
            queue: VecDeque::new(),
            revision,
            progress: options.progress.then_some(Progress { told: revision, rests_until: now, stored }),
            timer: Box::pin(sleep_until(end.min(now + LOOK_EVERY))),
            end,
            with_columns: true,
            done: false,
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.queue.pop_front() {
                return Some(frame);
            }
            if self.done {
                return None;
            }
            if self.is_time_to_look() {
                self.look().await;
                continue;
            }
            if self.initial.is_some() {
                if let Err(status) = self.convert_initial().await {
                    self.fail(&status);
                    continue;
                }
                self.send_initial();
                continue;
            }
            // Read before the log: what is in the log is then at least as new.
            let applied = self.state.caches().applied();
            let is_closed = self.watcher.is_closed();
            match self.watcher.ready() {
                Err(FellBehind) => {
                    let message = "the watch fell too far behind; list again";
                    self.queue.push_back(error_frame(self.protobuf, &Status::expired(message)));
                    self.done = true;
                }
                Ok(events) if events.is_empty() && is_closed => self.done = true,
                Ok(events) if events.is_empty() => {
                    self.revision = self.revision.max(applied);
                    if !self.tell_progress() {
                        self.wait().await;
                    }
                }
                Ok(events) => {
                    self.is_behind = true;
                    if let Err(status) = self.send(events).await {
                        self.fail(&status);
                    }
                }
            }
        }
    }

    /// Queues the frames of events, in the form that is watched.
    async fn send(&mut self, events: Few<(Arc<Event>, EventType)>) -> Result<(), Status> {
        let last = events.last().map_or(0, |it| it.0.revision);
        let events = self.converted(events).await?;
        self.counted.sent(events.len());
        self.revision = self.revision.max(last);
        for (event, seen) in events {
            self.revision = self.revision.max(event.revision);
            let frame = match self.form {
                form if self.protobuf => event.protobuf_frame(seen, &self.kind, protobuf::extent(form)),
                Form::Object => event.frame_as(seen, &self.kind),
                _ => self.transformed(seen, event.subject(seen), event.revision),
            };
            self.queue.push_back(frame);
        }
        // An event tells as much as a bookmark.
        if let Some(progress) = &mut self.progress {
            progress.told = self.revision;
        }
        Ok(())
    }

    /// Ends the watch with an ERROR event, because an object cannot be shown (`WatchServer.HandleHTTP`).
    fn fail(&mut self, status: &Status) {
        self.queue.push_back(error_frame(self.protobuf, status));
        self.done = true;
    }

    /// The events as they are in the watched version, and what they are in it.
    async fn converted(&self, events: Few<(Arc<Event>, EventType)>) -> Result<Few<(Arc<Event>, EventType)>, Status> {
        let Some(Converter { cache, matcher }) = &self.converter else { return Ok(events) };
        let events: Vec<Arc<Event>> = events.into_iter().map(|it| it.0).collect();
        let converted = self.state.conversion().events(&self.kind, cache, &events).await?;
        let seen = converted.into_iter().filter_map(|it| it.seen_by(matcher).map(|seen| (it, seen)));
        Ok(seen.collect())
    }

    /// The state that the watch begins with, before the first of it is sent.
    async fn convert_initial(&mut self) -> Result<(), Status> {
        let (Some(converter), Some(initial)) = (&self.converter, &mut self.initial) else { return Ok(()) };
        if initial.is_converted {
            return Ok(());
        }
        let wanted =
            SnapshotQuery { snapshot: &initial.snapshot, matcher: &converter.matcher, after: None, limit: None };
        let shown = self.state.conversion().snapshot(&self.kind, &converter.cache, &wanted).await?;
        (initial.snapshot, initial.is_converted) = (Arc::new(shown), true);
        Ok(())
    }

    /// Until there may be events, or it is time to look.
    async fn wait(&mut self) {
        self.is_behind = false;
        let is_over = || self.state.is_stopping() || self.state.rights_changed().count() != self.rights;
        tokio::select! {
            biased;
            () = self.watcher.changed(is_over) => self.done = self.state.is_stopping(),
            () = self.timer.as_mut() => self.look().await,
            () = progress_is_due(self.progress.as_ref(), &self.state) => {}
        }
    }

    /// Says up to where everything has been sent, to who wants to know and has not been told just now.
    fn tell_progress(&mut self) -> bool {
        let (revision, now) = (self.revision, Instant::now());
        let is_due = |it: &&mut Progress| it.rests_until <= now && it.is_behind(self.state.caches(), revision);
        let Some(progress) = self.progress.as_mut().filter(is_due) else { return false };
        (progress.told, progress.rests_until) = (revision, now + PROGRESS_REST);
        let frame = self.bookmark(false);
        self.queue.push_back(frame);
        true
    }

    /// Has somebody's right changed? And a client that never lets the watch catch up shall not have it for ever.
    fn is_time_to_look(&self) -> bool {
        self.state.rights_changed().count() != self.rights
            || ((self.is_behind || self.initial.is_some()) && Instant::now() >= self.timer.deadline())
    }

    /// Whether the watch may go on, and for how long; and a bookmark where it is time for one.
    async fn look(&mut self) {
        // Read before the question: what changes after it is asked for again.
        self.rights = self.state.rights_changed().count();
        if let Err(status) = self.recheck.ask().await {
            self.queue.push_back(error_frame(self.protobuf, &status));
            self.done = true;
            return;
        }
        let now = Instant::now();
        if now < self.timer.deadline() {
            return;
        }
        self.done = now >= self.end;
        self.timer.as_mut().reset(self.end.min(now + LOOK_EVERY));
        // Not in the midst of the initial events: the client would take the rest of them for news.
        if self.bookmarks && self.initial.is_none() {
            let frame = self.bookmark(false);
            self.queue.push_back(frame);
        }
    }

    fn send_initial(&mut self) {
        let Some(mut initial) = self.initial.take() else { return };
        let snapshot = initial.snapshot.clone();
        let mut out = Vec::new();
        let after = initial.after.take();
        let matcher = self.converter.as_ref().map_or(&self.watcher.matcher, |it| &it.matcher).clone();
        let namespace = matcher.namespace.clone();
        for object in snapshot.range(&namespace, after.as_deref()) {
            initial.after = Some(object.key.clone());
            if !matcher.matches(object) {
                continue;
            }
            let (added, revision) = (EventType::Added, object.revision);
            match self.form {
                form if self.protobuf => {
                    out.extend_from_slice(&protobuf_frame(&self.kind, protobuf::extent(form), added, object, revision));
                }
                Form::Object => versions::write_frame(&self.kind, added, object, revision, &mut out),
                _ => out.extend_from_slice(&self.transformed(added, object, revision)),
            }
            if out.len() >= PIECE_BYTES {
                self.initial = Some(initial);
                break;
            }
        }
        if !out.is_empty() {
            self.queue.push_back(out.into());
        }
        if self.initial.is_none() && self.mark_initial {
            let frame = self.bookmark(true);
            self.queue.push_back(frame);
        }
    }

    /// The event for clients that asked for tables or metadata.
    fn transformed(&mut self, seen: EventType, subject: &Stored, revision: Revision) -> Bytes {
        let mut object = subject.parse();
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        // Cells of a built-in kind are read from what is stored.
        if self.form == Form::Object || self.kind.is_custom() && self.form != Form::Partial {
            versions::from_stored(&self.kind, &mut object);
        }
        let object = match self.form {
            Form::Object => object,
            Form::Partial => partial::of(&object),
            Form::Table(include) => {
                let with_columns = std::mem::take(&mut self.with_columns);
                table::single(&self.kind, &object, include, self.state.now(), with_columns)
            }
        };
        line(false, seen.as_str(), &object)
    }

    fn bookmark(&self, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let resource = &self.kind.resource;
        let object = match self.form {
            Form::Object => {
                json!({ "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata })
            }
            Form::Partial => {
                json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
            }
            Form::Table(_) => {
                let row = json!({ "cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata } });
                json!({ "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": null, "rows": [row],
                        "metadata": { "resourceVersion": self.revision.to_string() } })
            }
        };
        line(self.protobuf, "BOOKMARK", &object)
    }
}

/// Never, for who does not want to know.
async fn progress_is_due(progress: Option<&Progress>, state: &State) {
    match progress {
        Some(progress) => progress.is_due(state).await,
        None => std::future::pending().await,
    }
}

fn error_frame(as_protobuf: bool, status: &Status) -> Bytes {
    line(as_protobuf, "ERROR", &serde_json::to_value(status).expect("a status is plain strings and numbers"))
}

fn line(as_protobuf: bool, event_type: &str, object: &Value) -> Bytes {
    if as_protobuf {
        return protobuf::event(event_type, object).into();
    }
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}
