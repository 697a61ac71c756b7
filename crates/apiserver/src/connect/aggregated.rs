//! A request for what another API server serves: sent there, and its answer sent back as it comes.

use corten_aggregation::{Answered, Forwarded, NotForwarded};
use corten_cacher::body::{Response, whole};
use corten_meta::Status;
use corten_stream::Accepted;
use http::StatusCode;

use crate::context::Context;

pub(crate) async fn answer(ctx: &mut Context) -> Result<Response, Status> {
    let recheck = ctx.recheck();
    // What is received already is sent on from memory; a body that nobody has waited for goes on as it comes.
    let body = match ctx.take_body() {
        Some(body) => body,
        None => whole(ctx.read_body().await?),
    };
    // It is the other server's work now, and that bounds how much there is of it: one that hangs takes nobody's seats.
    ctx.seats = None;
    let who = ctx.who();
    let forwarded = Forwarded {
        group: &ctx.info.group,
        version: &ctx.info.version,
        who: &who,
        method: &ctx.method,
        uri: &ctx.uri,
        headers: &ctx.headers,
        client: ctx.peer.as_ref().map(|it| it.address.ip()),
        body,
        goes_on: ctx.goes_on(),
    };
    match ctx.state.aggregator().forward(forwarded).await {
        Err(NotForwarded { response, reason }) => {
            ctx.audit.reason = reason;
            Ok(*response)
        }
        Ok(Answered::Response(response)) => {
            let (parts, body) = response.into_parts();
            Ok(http::Response::from_parts(parts, recheck.guard(body)))
        }
        Ok(Answered::Switched(head, other)) => {
            let connection = ctx.on_upgrade().ok_or_else(|| Status::bad_request("Upgrade request required"))?;
            ctx.state.tunnels().keep(ctx.state.stopping(), recheck, Accepted::plain(connection), other);
            let mut response = http::Response::new(whole(""));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() = head.headers.clone();
            Ok(response)
        }
    }
}
