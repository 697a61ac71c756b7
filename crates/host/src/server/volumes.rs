//! `POST /volumes/local.corten.dev` and `POST /volumes`: what the control plane asks of the node's own driver of volumes, and of those
//! of others (`corten_volumes::channel`).

use bytes::Bytes;
use corten_volumes::{
    Code, Fault, LOCAL_DRIVER,
    channel::{self, MESSAGE_BYTES_MAX},
};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use super::{Body, PlainTextError, routes::Call, text};

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let driver = call.server.hands().mounter().drivers().get(LOCAL_DRIVER);
    let message = message(call).await?;
    let driver = driver.ok_or_else(|| failed(&Fault::new(Code::Unavailable, "the node's driver is not there yet")))?;
    let answered = driver.answer(message.to_vec()).await.map_err(|it| failed(&it))?;
    Ok(Response::new(text(Bytes::from(answered))))
}

/// For the drivers of others.
pub(super) async fn answer_for_drivers(call: Call) -> Result<Response<Body>, PlainTextError> {
    let drivers = call.server.hands().mounter().drivers().clone();
    let message = message(call).await?;
    let answered = channel::put(&message, |name| drivers.get(name)).await.map_err(|it| failed(&it))?;
    Ok(Response::new(text(Bytes::from(answered))))
}

async fn message(call: Call) -> Result<Bytes, PlainTextError> {
    let body = Limited::new(call.request.into_body(), MESSAGE_BYTES_MAX).collect().await;
    Ok(body.map_err(|it| PlainTextError::new(StatusCode::BAD_REQUEST, it.to_string()))?.to_bytes())
}

fn failed(fault: &Fault) -> PlainTextError {
    let status = match fault.code {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    PlainTextError::new(status, fault.message.clone())
}
