//! Answers as YAML. They are made as JSON first and then written again: nobody asks for them often.

use std::time::Duration;

use corten_meta::{
    Status,
    depth::{self, Read},
};
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{accept, yaml_list};
use crate::{
    answer,
    apart::apart,
    body::{self, Response},
};

const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
/// What is one document, and larger than any object, is to be had as JSON.
const WHOLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What is larger takes twenty times its size while it is written: two at a time.
const SMALL_BYTES: u64 = 64 * 1024;
static TURNS: Semaphore = Semaphore::const_new(2);
/// Who waits has a seat, which others wait for.
const PATIENCE: Duration = Duration::from_millis(500);
const RETRY_AFTER_SECONDS: u32 = 1;

/// Does the client want YAML before all else that it could get? Then the rest of the server is asked for JSON.
///
/// # Errors
/// 406 for a watch: its events are not told apart in YAML.
pub fn wanted(headers: &mut HeaderMap, verb: &str) -> Result<bool, Status> {
    let accept = accept::header(headers, &header::ACCEPT);
    if !accept.contains(YAML) {
        return Ok(false);
    }
    let first =
        accept::ranges(accept).find(|it| matches!(accept::media_type(it), YAML | JSON | "application/*" | "*/*"));
    let Some(range) = first.filter(|it| accept::media_type(it) == YAML) else { return Ok(false) };
    if verb == "watch" {
        return Err(Status::not_acceptable(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ));
    }
    let json = HeaderValue::from_str(&range.replacen(YAML, JSON, 1)).expect("it was in a header before");
    headers.insert(header::ACCEPT, json);
    headers.remove(header::ACCEPT_ENCODING);
    Ok(true)
}

/// The same answer as YAML; what is not JSON stays what it is.
pub async fn rewritten(response: Response) -> Response {
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !media_type.is_some_and(|it| it == JSON || it.starts_with("application/json;")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(YAML));
    parts.headers.remove(header::CONTENT_LENGTH);
    let Some(length) = body.size_hint().exact() else {
        return match yaml_list::rewritten(body).await {
            Ok(body) => Response::from_parts(parts, body),
            Err(status) => answer::status(&status),
        };
    };
    if length > WHOLE_BYTES_MAX {
        return answer::status(&Status::not_acceptable(JSON));
    }
    let _turn = match turn(length).await {
        Ok(turn) => turn,
        Err(status) => return answer::status(&status),
    };
    let text = match body.collect().await {
        Ok(body) => apart(|| whole(&body.to_bytes()).and_then(text)),
        Err(error) => Err(Status::internal(error)),
    };
    match text {
        Ok(text) => Response::from_parts(parts, body::whole(text)),
        Err(status) => answer::status(&status),
    }
}

/// When it may be written; nothing where it is small.
///
/// # Errors
/// 429: others are written.
async fn turn(length: u64) -> Result<Option<SemaphorePermit<'static>>, Status> {
    if length <= SMALL_BYTES {
        return Ok(None);
    }
    match tokio::time::timeout(PATIENCE, TURNS.acquire()).await {
        Ok(turn) => Ok(turn.ok()),
        Err(_) => Err(Status::too_many_requests("Too many large documents are asked for as YAML", RETRY_AFTER_SECONDS)),
    }
}

/// Nothing is left out for the sake of another form: what an earlier release stored too deeply nested is to be had as JSON.
pub(super) fn whole(json: &[u8]) -> Result<Value, Status> {
    let Read { value, is_whole } = depth::read_answer(json).map_err(Status::internal)?;
    if is_whole { Ok(value) } else { Err(Status::not_acceptable(JSON)) }
}

/// As sigs.k8s.io/yaml writes them: fields in the order of their names.
pub(super) fn text(mut value: Value) -> Result<String, Status> {
    value.sort_all_objects();
    serde_saphyr::to_string(&value).map_err(Status::internal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let value = json!({
            "b": ["yes", "on", "null", "~", "1", "1e3", "0x10", "1.5", "", " x", "x ", "a: b", "#c", "- d", "e\nf\n", "2001-01-01", "'", "\"", "{", "%", "=", "<<"],
            "a": { "n": 1, "f": 1.5, "big": 9_223_372_036_854_775_807_i64, "t": true, "none": null, "empty": {}, "list": [] },
            "true": "false",
            "8080": ["*/*", "@", "!", "&", "`", "tab\there", "\u{7f}", "ünï"],
        });
        let written = text(value.clone()).expect("it can be written");
        assert!(written.starts_with("\"8080\":") || written.starts_with("'8080':"), "{written}");
        let read: Value = serde_saphyr::from_str(&written).expect("it is YAML");
        assert_eq!(read, value, "{written}");
    }
}
