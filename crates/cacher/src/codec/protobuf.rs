//! Answers as Kubernetes's protobuf. Objects, lists and events are encoded from the type table; what else there is to say (a
//! Status, a review, a scale) is made as JSON first and then written again.

use std::{sync::Arc, vec};

use corten_kinds::{Kind, Schema};
use corten_meta::{Status, depth};
use corten_routes::Query;
use corten_schema::{
    find,
    proto::{self, Message},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;

use super::{Form, accept, items::Items};
use crate::{
    answer,
    body::{self, Response},
    watch_cache::{Extent, Stored, message_body},
};

const JSON: &str = "application/json";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// How many objects are encoded before others get their turn.
const ENCODED_AT_ONCE: usize = 64;
/// How large a piece of a list is.
const PIECE_BYTES: usize = 128 * 1024;

/// Does protobuf have the kind's objects? Those of custom resources it has not, nor those that are no kinds of Kubernetes.
pub fn has(kind: &Kind) -> bool {
    matches!(&kind.schema, Schema::Table(name) if find(name).is_some_and(|it| it.has_protobuf()))
}

/// Does the client want protobuf before all else that it could get? Then the rest of the server is asked for JSON. Metadata
/// alone is to be had as protobuf of every kind, `objects` only where [`has`] says so, tables never.
pub fn wanted(headers: &mut HeaderMap, query: &Query, objects: bool) -> bool {
    let accept = accept::header(headers, &header::ACCEPT);
    if !accept.contains(PROTOBUF) {
        return false;
    }
    let json = accept::ranges(accept).find_map(|range| {
        let media_type = accept::media_type(range);
        let asked = range.replacen(media_type, JSON, 1);
        let form = Form::of_range(&asked, query);
        match (media_type, form) {
            (PROTOBUF, Some(Ok(Form::Object))) if objects => Some(Some(asked)),
            (PROTOBUF, Some(Ok(Form::Partial))) => Some(Some(asked)),
            (PROTOBUF, _) | (_, None) => None,
            (JSON | super::yaml::YAML | "application/*" | "*/*", _) => Some(None),
            _ => None,
        }
    });
    let Some(json) = json.flatten().and_then(|it| HeaderValue::from_str(&it).ok()) else { return false };
    headers.insert(header::ACCEPT, json);
    true
}

/// One object.
pub fn object(kind: &Kind, stored: &Stored, form: Form) -> Response {
    let (revision, message) = (stored.revision.to_string(), stored.message(kind));
    answer::with_type(StatusCode::OK, PROTOBUF, message_body(kind, &message, extent(form), &revision))
}

/// Tables are never protobuf: see [`wanted`].
pub fn extent(form: Form) -> Extent {
    if form == Form::Partial { Extent::Metadata } else { Extent::Whole }
}

/// An event of a watch, of an object that is none: a bookmark, an error.
pub fn event(event_type: &str, object: &Value) -> Vec<u8> {
    proto::event(event_type, &proto::whole(object).unwrap_or_default())
}

/// Encodes a list. Others get their turn amid a long one, which may have to be encoded from its beginning.
pub async fn list(items: &Items) -> List {
    let objects: Vec<Arc<Stored>> = items.objects().cloned().collect();
    let mut messages = Vec::with_capacity(objects.len());
    for objects in objects.chunks(ENCODED_AT_ONCE) {
        for object in objects {
            let message = object.message(&items.kind);
            let message = if items.form == Form::Partial { Arc::new(message.metadata()) } else { message };
            messages.push((message, object.revision.to_string()));
        }
        tokio::task::yield_now().await;
    }
    List::new(&items.kind, items.form, &items.metadata(), messages)
}

/// A list that is being sent piece by piece. Its items were encoded before: their lengths stand at its beginning.
pub struct List {
    head: Vec<u8>,
    items: vec::IntoIter<(Arc<Message>, String)>,
    is_done: bool,
}

impl List {
    fn new(kind: &Kind, form: Form, metadata: &Value, items: Vec<(Arc<Message>, String)>) -> Self {
        let length = items.iter().map(|(it, revision)| it.item_len(revision)).sum();
        let head = match form {
            Form::Partial => proto::list_head("meta.k8s.io/v1", "PartialObjectMetadataList", metadata, length),
            _ => proto::list_head(&kind.resource.api_version(), &kind.list_kind(), metadata, length),
        };
        Self { head, items: items.into_iter(), is_done: false }
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

impl Iterator for List {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.is_done {
            return None;
        }
        let mut out = std::mem::take(&mut self.head);
        for (item, revision) in self.items.by_ref() {
            proto::put_item(&item, &revision, &mut out);
            if out.len() >= PIECE_BYTES {
                return Some(out);
            }
        }
        out.extend_from_slice(proto::list_tail());
        self.is_done = true;
        Some(out)
    }
}

/// The same answer as protobuf; what is not JSON, or of no kind that protobuf has, stays what it is.
pub async fn rewritten(response: Response) -> Response {
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if media_type != Some(JSON) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let json = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return answer::status(&Status::internal(error)),
    };
    let written = depth::read_answer(&json).ok().filter(|it| it.is_whole).and_then(|it| proto::whole(&it.value));
    let Some(written) = written else { return Response::from_parts(parts, body::whole(json)) };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body::whole(written))
}
