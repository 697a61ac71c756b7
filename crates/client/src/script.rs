//! A transport for tests: answers requests from a script, in order, and notes what was asked.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Body, BoxFuture, Client, Transport, TransportError};

pub(crate) enum Answer {
    Json(u16, Value),
    /// The frames of a body that then ends.
    Closed(Vec<Vec<u8>>),
    /// The frames of a body that then stays open.
    Open(Vec<Vec<u8>>),
    /// The connection breaks before the answer.
    Lost,
}

/// After its last answer it answers no more: the request stays open.
pub(crate) struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn new(answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into()), asked: Mutex::new(Vec::new()) })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(self.clone())
    }

    /// What has been asked since the last call: `GET /api/v1/pods?limit=500` and, after a space, a body.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

impl Transport for Script {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let text = format!("{} {} {}", request.method(), request.uri(), String::from_utf8_lossy(request.body()));
        self.asked.lock().push(text.trim_end().to_owned());
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            let Some(answer) = answer else { return std::future::pending().await };
            let (code, body) = match answer {
                Answer::Json(code, value) => (code, whole(value.to_string())),
                Answer::Closed(frames) => (200, streamed(frames, false)),
                Answer::Open(frames) => (200, streamed(frames, true)),
                Answer::Lost => return Err(TransportError("the line is cut".into())),
            };
            Ok(Response::builder().status(code).body(body).expect("a valid response"))
        })
    }
}

fn whole(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn streamed(frames: Vec<Vec<u8>>, stays_open: bool) -> Body {
    let frames = stream::iter(frames.into_iter().map(|it| Ok(Frame::data(Bytes::from(it)))));
    if stays_open {
        BodyExt::boxed_unsync(StreamBody::new(frames.chain(stream::pending())))
    } else {
        BodyExt::boxed_unsync(StreamBody::new(frames))
    }
}

/// One line of a watch.
pub(crate) fn event(event_type: &str, object: &Value) -> Vec<u8> {
    let mut line = json!({"type": event_type, "object": object}).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A pod with just enough metadata.
pub(crate) fn pod(name: &str, uid: &str, version: u64) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1",
           "metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string()}})
}
