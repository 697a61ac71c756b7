//! `log`, `exec`, `attach` and `portforward`: passed on to the kubelet of the Pod's node.
//!
//! Kubelets are asked for SPDY on behalf of clients that speak the newest WebSocket protocols; others talk to them themselves.

mod aggregated;
mod messages;
mod options;
mod proxy;
mod target_pod;

use corten_access::Attributes;
use corten_cacher::{
    answer,
    body::{Response, whole},
};
use corten_kinds::Subresource;
use corten_kubelets::{KubeletClient, Node, complaint, status_in, words};
use corten_meta::Status;
use corten_stream::{Dialed, Purpose, Refusal, Upgrade};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt;

pub(crate) use aggregated::answer as aggregated;
pub(crate) use messages::instead as messages;
pub(crate) use proxy::answer as proxy;

use crate::context::Context;
use target_pod::TargetPod;

pub(crate) async fn answer(ctx: &mut Context, subresource: Subresource) -> Result<Response, Status> {
    let kubelet = ctx.state.config().kubelet_dial.clone();
    let kubelet = kubelet.ok_or_else(corten_kubelets::no_way)?;
    let target = TargetPod::find(ctx)?;
    match subresource {
        Subresource::Log => log(ctx, &kubelet, &target).await,
        _ => tunnel(ctx, &kubelet, &target, subresource).await,
    }
}

async fn log(ctx: &mut Context, kubelet: &KubeletClient, target: &TargetPod) -> Result<Response, Status> {
    let query = corten_routes::log_query(&ctx.info.query, &ctx.info.name)?;
    let container = target.container(ctx.info.query.get("container"))?;
    // As in `LogLocation`: a Pod that is on no node has an empty log.
    let Some(mut node) = target.node(ctx)? else { return Ok(answer::text(StatusCode::OK, "")) };
    node.is_verified = !ctx.info.query.is_set("insecureSkipTLSVerifyBackend");
    let path = format!("/containerLogs/{}/{}/{container}{query}", target.namespace, target.name);
    let dialed = kubelet.dial(&node, &Method::GET, &path, None).await;
    match dialed.map_err(|it| Status::internal(format!("Get \"https://{}{path}\": {it}", node.authority())))? {
        Dialed::Answered(response) if response.status().is_success() => {
            let mut answer = http::Response::new(ctx.recheck().guard(response.into_body().map_err(Into::into)));
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
    target: &TargetPod,
    subresource: Subresource,
) -> Result<Response, Status> {
    may_create(ctx).await?;
    let recheck = ctx.recheck().and("create");
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
        // As `UpgradeAwareHandler` does: first the client, then the kubelet, whose refusal the client hears as the command's end.
        let (kubelet_client, headers) = (kubelet.clone(), upgrade.headers().clone());
        let (response, accepted) = upgrade.accept_at_once();
        let dialing = async move { switched(&kubelet_client, &node, &path, &headers).await };
        ctx.state.tunnels().keep_when(ctx.state.stopping(), recheck, accepted, dialing);
        return Ok(response.map(|()| whole("")));
    }
    let dialed = kubelet.dial(&node, &ctx.method, &path, Some(upgrade.headers())).await;
    match dialed.map_err(|it| Status::internal(format!("error dialing backend: {it}")))? {
        Dialed::Switched(head, io) => {
            let (response, accepted) = upgrade.accept(&head);
            ctx.state.tunnels().keep(ctx.state.stopping(), recheck, accepted, io);
            Ok(response.map(|()| whole("")))
        }
        // The kubelet's own words, for the client that would have talked to it.
        Dialed::Answered(response) => Ok(response.map(|body| body.map_err(Into::into).boxed_unsync())),
    }
}

/// The kubelet's end of a translated tunnel.
async fn switched(
    kubelet: &KubeletClient,
    node: &Node,
    path: &str,
    headers: &http::HeaderMap,
) -> Result<hyper::upgrade::Upgraded, Status> {
    match kubelet.dial(node, &Method::POST, path, Some(headers)).await {
        Ok(Dialed::Switched(_, io)) => Ok(io),
        Ok(Dialed::Answered(response)) => {
            let text = words(response).await.map_err(Status::internal)?;
            // A Status is told as it is.
            Err(status_in(&text).unwrap_or_else(|| Status::internal(format!("unable to upgrade connection: {text}"))))
        }
        Err(error) => Err(Status::internal(format!(
            "error sending request: Post \"https://{}{path}\": {error}",
            node.authority()
        ))),
    }
}

/// A WebSocket begins with a GET, but what it does is no reading: `create` is asked for too (`ensureAuthorizedForVerb`).
async fn may_create(ctx: &Context) -> Result<(), Status> {
    if ctx.info.verb == "create" {
        return Ok(());
    }
    let question = Attributes::of_request(ctx.asker_now(), &ctx.info);
    ctx.state.access().may(&Attributes { verb: "create", ..question }).await
}

fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::UnknownSubprotocols(_) => Status::failure(403, "Forbidden", refusal.to_string()),
        Refusal::NotAnUpgrade | Refusal::UnknownProtocol(_) | Refusal::NotAHandshake | Refusal::NoConnection => {
            Status::bad_request(refusal.to_string())
        }
    }
}

#[cfg(test)]
mod tests;
