//! A watch or a log for who asks for a WebSocket: each event, each piece of the log is a message. A refusal is
//! an answer of HTTP.

use corten_cacher::body::{Response, whole};
use corten_kinds::{Subresource, Verb};
use corten_meta::Status;
use corten_routes::Route;
use corten_stream::Messages;
use http::StatusCode;

use super::refused;
use crate::context::Context;

/// The answer as it is, where nobody asks for a WebSocket or there is none of such answers.
pub(crate) fn instead(ctx: &mut Context, response: Response) -> Result<Response, Status> {
    let accept = match ctx.info.route {
        Route::Collection(_, Verb::Watch) | Route::Object(_, Verb::Watch) => Messages::of_lines,
        Route::Subresource(_, Subresource::Log, _) => Messages::of_pieces,
        _ => return Ok(response),
    };
    if response.status() != StatusCode::OK || !Messages::are_wanted(&ctx.headers) {
        return Ok(response);
    }
    let connection = ctx.on_upgrade();
    let (answer, client) = accept(&ctx.headers, connection).map_err(refused)?;
    ctx.state.tunnels().send(ctx.state.stopping(), client, response.into_body());
    Ok(answer.map(|()| whole("")))
}
