//! `POST /volumes/local.corten.dev`: what the control plane asks of the node's own driver of volumes (`corten_volumes::channel`).

use bytes::Bytes;
use corten_volumes::{Code, Fault, LOCAL_DRIVER, channel::MESSAGE_BYTES_MAX};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use super::{Body, PlainTextError, routes::Call, text};

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let body = Limited::new(call.request.into_body(), MESSAGE_BYTES_MAX).collect().await;
    let body = body.map_err(|it| PlainTextError::new(StatusCode::BAD_REQUEST, it.to_string()))?;
    let driver = call.server.hands().mounter().drivers().get(LOCAL_DRIVER);
    let driver = driver.ok_or_else(|| failed(&Fault::new(Code::Unavailable, "the node's driver is not there yet")))?;
    let answered = driver.answer(body.to_bytes().to_vec()).await.map_err(|it| failed(&it))?;
    Ok(Response::new(text(Bytes::from(answered))))
}

fn failed(fault: &Fault) -> PlainTextError {
    let status = match fault.code {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    PlainTextError::new(status, fault.message.clone())
}
