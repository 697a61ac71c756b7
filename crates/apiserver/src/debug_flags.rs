//! `/debug/flags/v`: what the process logs, read and changed while it runs. Upstream's path; what it takes are the directives
//! of `--log-level` instead of klog's number.

use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use http::{Method, StatusCode};

use crate::context::Context;

pub(crate) const PATH: &str = "/debug/flags/v";

pub(crate) async fn answer(ctx: &mut Context) -> Result<Response, Status> {
    let log = ctx.state.config().guard.log.clone().ok_or_else(Status::no_such_path)?;
    match ctx.method {
        Method::GET | Method::HEAD => Ok(answer::text(StatusCode::OK, log.filter() + "\n")),
        Method::PUT => {
            let body = ctx.read_body().await?;
            let told = std::str::from_utf8(&body).map_err(|it| Status::bad_request(it.to_string()))?.trim();
            log.set_filter(told).map_err(Status::bad_request)?;
            Ok(answer::text(StatusCode::OK, format!("successfully set the log level to {told}\n")))
        }
        _ => Err(Status::failure(405, "MethodNotAllowed", "unrecognized method: GET and PUT are known here")),
    }
}
