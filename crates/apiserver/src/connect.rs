//! `log`, `exec`, `attach` and `portforward`: passed on to the kubelet of the Pod's node.
//!
//! Kubelets are asked for SPDY on behalf of clients that speak the newest WebSocket protocols; others talk to them themselves.

mod kubelet;
mod messages;
mod options;
mod proxy;
mod scrape;
mod target;
mod tunnels;

use corten_kinds::Subresource;
use corten_meta::Status;
use corten_stream::{Dialed, Purpose, Refusal, Upgrade};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};

pub use kubelet::KubeletClient;
pub(crate) use messages::instead as messages;
pub(crate) use proxy::answer as proxy;
pub(crate) use scrape::{no_way, scrape};
pub(crate) use tunnels::Tunnels;

use crate::{
    access::Attributes,
    answer,
    filters::authorize::attributes,
    recheck::{self, Recheck},
    request::{Context, Response, whole},
};
use target::Target;

/// How much of a kubelet's complaint is passed on.
const COMPLAINT_BYTES_MAX: usize = 64 * 1024;

pub(crate) async fn answer(ctx: &mut Context, subresource: Subresource) -> Result<Response, Status> {
    let kubelet = ctx.server.config().kubelet_dial.clone();
    let kubelet =
        kubelet.ok_or_else(|| Status::unavailable("this server was started without a way to reach kubelets"))?;
    let target = Target::find(ctx)?;
    match subresource {
        Subresource::Log => log(ctx, &kubelet, &target).await,
        _ => tunnel(ctx, &kubelet, &target, subresource).await,
    }
}

async fn log(ctx: &mut Context, kubelet: &KubeletClient, target: &Target) -> Result<Response, Status> {
    let query = options::log(&ctx.info)?;
    let container = target.container(ctx.info.query.get("container"))?;
    // As upstream: a Pod that is on no node has an empty log.
    let Some(mut node) = target.node(ctx)? else { return Ok(answer::text(StatusCode::OK, "")) };
    node.is_verified = !ctx.info.query.is_set("insecureSkipTLSVerifyBackend");
    let path = format!("/containerLogs/{}/{}/{container}{query}", target.namespace, target.name);
    let dialed = kubelet.dial(&node, &Method::GET, &path, None).await;
    match dialed.map_err(|it| Status::internal(format!("Get \"https://{}{path}\": {it}", node.authority())))? {
        Dialed::Answered(response) if response.status().is_success() => {
            let mut answer = http::Response::new(Recheck::of(ctx).guard(response.into_body().map_err(Into::into)));
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
            Ok(answer)
        }
        Dialed::Answered(response) => Err(complaint(response).await),
        Dialed::Switched(..) => Err(Status::internal("the kubelet left HTTP without being asked to")),
    }
}

async fn tunnel(
    ctx: &mut Context,
    kubelet: &KubeletClient,
    target: &Target,
    subresource: Subresource,
) -> Result<Response, Status> {
    may_create(ctx)?;
    let recheck = Recheck::of(ctx).and("create");
    let connection = ctx.on_upgrade();
    let purpose = match subresource {
        Subresource::PortForward => Purpose::PortForward,
        _ => Purpose::RemoteCommand(options::streams(&ctx.info)),
    };
    let upgrade = Upgrade::from_request(&ctx.headers, connection, purpose).map_err(refused)?;
    let path = options::tunnel(&ctx.info, subresource, target)?;
    let node = target.node(ctx)?;
    let node = node.ok_or_else(|| Status::bad_request(format!("pod {} does not have a host assigned", target.name)))?;
    if upgrade.hears_of_failures() {
        // As upstream: first the client, then the kubelet, whose refusal the client hears as the command's end.
        let (kubelet_client, headers) = (kubelet.clone(), upgrade.headers().clone());
        let (response, accepted) = upgrade.accept_at_once();
        let dialing = async move { switched(&kubelet_client, &node, &path, &headers).await };
        ctx.server.tunnels().keep_when(ctx, recheck, accepted, dialing);
        return Ok(response.map(|()| whole("")));
    }
    let dialed = kubelet.dial(&node, &ctx.method, &path, Some(upgrade.headers())).await;
    match dialed.map_err(|it| Status::internal(format!("error dialing backend: {it}")))? {
        Dialed::Switched(head, io) => {
            let (response, accepted) = upgrade.accept(&head);
            ctx.server.tunnels().keep(ctx, recheck, accepted, io);
            Ok(response.map(|()| whole("")))
        }
        // As upstream: the kubelet's own words, for the client that would have talked to it.
        Dialed::Answered(response) => Ok(response.map(|body| body.map_err(Into::into).boxed_unsync())),
    }
}

/// The kubelet's end of a translated tunnel.
async fn switched(
    kubelet: &KubeletClient,
    node: &target::Node,
    path: &str,
    headers: &http::HeaderMap,
) -> Result<hyper::upgrade::Upgraded, Status> {
    match kubelet.dial(node, &Method::POST, path, Some(headers)).await {
        Ok(Dialed::Switched(_, io)) => Ok(io),
        Ok(Dialed::Answered(response)) => {
            let text = words(response).await.map_err(Status::internal)?;
            // As upstream: a Status is told as it is.
            Err(status_in(&text).unwrap_or_else(|| Status::internal(format!("unable to upgrade connection: {text}"))))
        }
        Err(error) => Err(Status::internal(format!(
            "error sending request: Post \"https://{}{path}\": {error}",
            node.authority()
        ))),
    }
}

/// A WebSocket begins with a GET, but what it does is no reading: as upstream, `create` is asked for too.
fn may_create(ctx: &Context) -> Result<(), Status> {
    if ctx.info.verb == "create" {
        return Ok(());
    }
    recheck::may(&ctx.server, &Attributes { verb: "create", ..attributes(&ctx.who(), &ctx.info) })
}

fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::UnknownSubprotocols(_) => Status::failure(403, "Forbidden", refusal.to_string()),
        Refusal::NotAnUpgrade | Refusal::UnknownProtocol(_) | Refusal::NotAHandshake | Refusal::NoConnection => {
            Status::bad_request(refusal.to_string())
        }
    }
}

async fn words(response: http::Response<corten_stream::Answer>) -> Result<String, String> {
    let body = Limited::new(response.into_body(), COMPLAINT_BYTES_MAX).collect().await;
    let body = body.map_err(|it| format!("cannot read the kubelet's answer: {it}"))?.to_bytes();
    Ok(String::from_utf8_lossy(&body).trim_end().to_owned())
}

fn status_in(text: &str) -> Option<Status> {
    serde_json::from_str::<Status>(text).ok().filter(|it| it.kind == "Status" && it.code >= 400)
}

/// What a kubelet says when it does not do what was asked: a Status, or text that becomes one.
async fn complaint(response: http::Response<corten_stream::Answer>) -> Status {
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

#[cfg(test)]
mod tests;
