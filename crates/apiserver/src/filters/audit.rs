//! Says of requests who asked for them and what became of them, as much of each as the policy wants.
//!
//! A record never holds up a request: where the sink's queue is full the record is dropped, and the drop is counted.

mod event;

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

use bytes::Bytes;
use corten_audit::{Level, Sink, Stage, Trail};
use corten_cacher::body::{Body, BoxError, Response, whole};
use corten_meta::{Status, depth};
use corten_routes::RequestInfo;
use futures_util::FutureExt;
use http::StatusCode;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use serde_json::Value;

use super::{deadline, next::Rest};
use crate::{context::Context, state::State};
use event::Event;

/// The request's object, or its body where that was no object.
fn requested(trail: &Trail) -> Option<Value> {
    let omit = trail.verdict.omit_managed_fields;
    let decoded = || trail.decoded.clone().map(|it| shown(it, omit));
    decoded().or_else(|| trail.body.as_ref().and_then(|it| object(it, omit)))
}

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let Some(sink) = judge(ctx) else { return rest.run(ctx).await };
    record(ctx, &*sink, Stage::RequestReceived, |_| {});
    let mut pending = Pending { ctx, sink, is_over: false };
    let answered = AssertUnwindSafe(rest.run(pending.ctx)).catch_unwind().await;
    let answer = match answered {
        Ok(response) => Ok(finished(pending.ctx, &pending.sink, response).await),
        Err(panic) => {
            record(pending.ctx, &*pending.sink, Stage::Panic, |event| {
                event.failed(&Status::internal("APIServer panic'd"), StatusCode::INTERNAL_SERVER_ERROR);
            });
            Err(panic)
        }
    };
    pending.is_over = true;
    answer.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A request that is under way. Where it is given up, because its time is over or nobody waits for it, that is its end.
struct Pending<'a> {
    ctx: &'a mut Context,
    sink: Arc<dyn Sink>,
    is_over: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.ctx.take_notes();
        let (ctx, sink) = (&*self.ctx, &*self.sink);
        let is_late = ctx.deadline.is_some_and(|it| it <= tokio::time::Instant::now());
        let ended = |event: &mut Event| {
            if is_late {
                event.failed(&deadline::too_late(), StatusCode::GATEWAY_TIMEOUT);
            } else {
                event.closed_early();
            }
        };
        if is_long(&ctx.info) {
            record(ctx, sink, Stage::ResponseStarted, ended);
        }
        record(ctx, sink, Stage::ResponseComplete, |event| {
            ended(event);
            event.request_object = requested(&ctx.audit);
        });
    }
}

/// A request whose credentials prove nothing comes no further than this.
pub(crate) fn refused(ctx: &mut Context, status: &Status, attempted: &str) {
    let Some(sink) = judge(ctx) else { return };
    record(ctx, &*sink, Stage::ResponseStarted, |event| {
        event.failed(status, StatusCode::UNAUTHORIZED);
        event.say(format!("Authentication failed, {attempted}"));
    });
}

/// What the policy wants of this request, put into the context. `None` where that is nothing.
fn judge(ctx: &mut Context) -> Option<Arc<dyn Sink>> {
    let config = ctx.state.config();
    let sink = config.audit.clone()?;
    let verdict = config.guard.audit_policy.judge(ctx.identity.as_ref(), &ctx.info);
    ctx.audit.verdict = verdict;
    ctx.audit.is_kept().then_some(sink)
}

fn record(ctx: &Context, sink: &dyn Sink, stage: Stage, fill: impl FnOnce(&mut Event)) {
    if ctx.audit.verdict.omits(stage) {
        return;
    }
    let mut event = Event::of(ctx, &ctx.audit.verdict, stage);
    fill(&mut event);
    write(sink, &event);
}

fn write(sink: &dyn Sink, event: &Event) {
    match serde_json::to_vec(event) {
        Ok(line) => sink.record(line),
        Err(error) => tracing::error!(%error, "an audit record cannot be written as JSON"),
    }
}

async fn finished(ctx: &Context, sink: &Arc<dyn Sink>, response: Response) -> Response {
    let code = response.status();
    let verdict = &ctx.audit.verdict;
    let request = requested(&ctx.audit);
    if is_long(&ctx.info) && code.as_u16() < 400 {
        record(ctx, &**sink, Stage::ResponseStarted, |event| event.answered(code));
        let mut event = Event::of(ctx, verdict, Stage::ResponseComplete);
        event.answered(code);
        event.request_object = request;
        let complete = (!verdict.omits(Stage::ResponseComplete)).then_some(event);
        let ending = CompletionRecord { state: ctx.state.clone(), sink: sink.clone(), complete };
        return response.map(|body| BodyExt::boxed_unsync(AuditedBody { body, _ending: ending }));
    }
    if verdict.omits(Stage::ResponseComplete) {
        return response;
    }
    // What others answer is as long as they like, and never held.
    let is_ours = !ctx.is_aggregated() && ctx.info.proxied.is_none();
    let wants_body = is_ours && (verdict.level >= Level::RequestResponse || code.as_u16() >= 400);
    let (response, bytes) = if wants_body { read(response).await } else { (response, None) };
    record(ctx, &**sink, Stage::ResponseComplete, |event| {
        let failure = (code.as_u16() >= 400).then(|| bytes.as_ref().and_then(|it| serde_json::from_slice(it).ok()));
        match failure.flatten() {
            Some(status) => event.failed(&status, code),
            None => event.answered(code),
        }
        if !ctx.audit.reason.is_empty() {
            event.say(ctx.audit.reason.clone());
        }
        event.request_object = request;
        if verdict.level >= Level::RequestResponse {
            event.response_object = bytes.as_ref().and_then(|it| object(it, verdict.omit_managed_fields));
        }
    });
    response
}

/// Answers that go on until somebody ends them, as `LongRunningFunc` tells them.
fn is_long(info: &RequestInfo) -> bool {
    info.verb == "watch"
        || info.is_resource() && matches!(&*info.subresource, "attach" | "exec" | "proxy" | "log" | "portforward")
}

/// A body that is all there, and the response with it again. One of unknown length is left alone.
async fn read(response: Response) -> (Response, Option<Bytes>) {
    if response.body().size_hint().exact().is_none() {
        return (response, None);
    }
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    (Response::from_parts(parts, whole(bytes.clone())), Some(bytes))
}

/// The object as the record shows it: what is no JSON (an exec's input) is left out, and what is too deep in one that was
/// refused for it.
fn object(bytes: &[u8], omit_managed_fields: bool) -> Option<Value> {
    let json = || depth::read_answer(bytes).map(|it| it.value);
    let object: Value = json().or_else(|_| corten_schema::proto::decode(bytes)).ok()?;
    Some(shown(object, omit_managed_fields))
}

fn shown(mut object: Value, omit_managed_fields: bool) -> Value {
    if omit_managed_fields {
        let strip = |it: &mut Value| {
            if let Some(metadata) = it.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.shift_remove("managedFields");
            }
        };
        strip(&mut object);
        object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(strip);
    }
    object
}

/// Records the end of a long answer, however it comes.
struct CompletionRecord {
    state: State,
    sink: Arc<dyn Sink>,
    complete: Option<Event>,
}

impl Drop for CompletionRecord {
    fn drop(&mut self) {
        if let Some(mut event) = self.complete.take() {
            event.stage_timestamp = self.state.now().micro();
            write(&*self.sink, &event);
        }
    }
}

/// A body with its ending.
struct AuditedBody {
    body: Body,
    _ending: CompletionRecord,
}

impl http_body::Body for AuditedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
