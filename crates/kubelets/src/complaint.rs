//! What a kubelet says that does not do what it was asked.

use corten_meta::Status;
use http_body_util::{BodyExt, Limited};

/// How much of it is passed on.
const COMPLAINT_BYTES_MAX: usize = 64 * 1024;

pub async fn words(response: http::Response<corten_stream::Answer>) -> Result<String, String> {
    let body = Limited::new(response.into_body(), COMPLAINT_BYTES_MAX).collect().await;
    let body = body.map_err(|it| format!("cannot read the kubelet's answer: {it}"))?.to_bytes();
    Ok(String::from_utf8_lossy(&body).trim_end().to_owned())
}

pub fn status_in(text: &str) -> Option<Status> {
    serde_json::from_str::<Status>(text).ok().filter(|it| it.kind == "Status" && it.code >= 400)
}

/// What a kubelet says when it does not do what was asked: a Status, or text that becomes one.
pub async fn complaint(response: http::Response<corten_stream::Answer>) -> Status {
    let code = response.status();
    let text = match words(response).await {
        Ok(text) => text,
        Err(error) => return Status::internal(error),
    };
    if let Some(status) = status_in(&text) {
        return status;
    }
    match code.as_u16() {
        400 => Status::bad_request(text),
        403 => Status::failure(403, "Forbidden", text),
        404 => Status::failure(404, "NotFound", text),
        code @ 401..500 => Status::failure(code, "Unknown", text),
        _ => Status::internal(text),
    }
}
