//! `log`, `exec`, `attach` and `portforward`: passed on to the kubelet of the Pod's node.
//!
//! Nothing is translated: a client that speaks only `v5.channel.k8s.io` is refused before the upgrade and falls back to SPDY.

mod kubelet;
mod options;
mod target;

use corten_kinds::Subresource;
use corten_meta::Status;
use corten_stream::{Dialed, Refusal, Upgrade};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};

pub use kubelet::KubeletClient;

use crate::{
    access::{Attributes, Target as Asked},
    answer,
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
    let Some(node) = target.node(ctx)? else { return Ok(answer::text(StatusCode::OK, "")) };
    let path = format!("/containerLogs/{}/{}/{container}{query}", target.namespace, target.name);
    let dialed = kubelet.dial(&node, &Method::GET, &path, None).await;
    match dialed.map_err(|it| Status::internal(format!("Get \"https://{}{path}\": {it}", node.authority())))? {
        Dialed::Answered(response) if response.status().is_success() => {
            let mut answer = http::Response::new(response.into_body().map_err(Into::into).boxed_unsync());
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
    let connection = ctx.on_upgrade();
    let upgrade = Upgrade::from_request(&ctx.headers, connection).map_err(refused)?;
    let path = options::tunnel(&ctx.info, subresource, target)?;
    let node = target.node(ctx)?;
    let node = node.ok_or_else(|| Status::bad_request(format!("pod {} does not have a host assigned", target.name)))?;
    let dialed = kubelet.dial(&node, &ctx.method, &path, Some(upgrade.headers())).await;
    match dialed.map_err(|it| Status::internal(format!("error dialing backend: {it}")))? {
        Dialed::Switched(head, io) => {
            let (response, accepted) = upgrade.accept(&head);
            kubelet.keep(ctx.server.stopping(), accepted, io);
            Ok(response.map(|()| whole("")))
        }
        Dialed::Answered(response) => Err(complaint(response).await),
    }
}

/// A WebSocket begins with a GET, but what it does is no reading: as upstream, `create` is asked for too.
fn may_create(ctx: &Context) -> Result<(), Status> {
    if ctx.info.verb == "create" {
        return Ok(());
    }
    let who = ctx.who();
    let info = &ctx.info;
    let question = Attributes {
        user: &who.user,
        groups: &who.groups,
        verb: "create",
        target: Asked::Resource {
            group: &info.group,
            resource: &info.plural,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
        },
    };
    match ctx.server.authorizer().decide(ctx.server.caches(), &question) {
        crate::access::Decision::Allowed => Ok(()),
        crate::access::Decision::Denied(reason) => Err(question.forbidden(&reason)),
    }
}

fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::UnknownSubprotocols(_) => Status::failure(403, "Forbidden", refusal.to_string()),
        Refusal::NotAnUpgrade | Refusal::UnknownProtocol(_) | Refusal::NoConnection => {
            Status::bad_request(refusal.to_string())
        }
    }
}

/// What a kubelet says when it does not do what was asked: a Status, or text that becomes one.
async fn complaint(response: http::Response<corten_stream::Answer>) -> Status {
    let code = response.status();
    let body = match Limited::new(response.into_body(), COMPLAINT_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Status::internal(format!("cannot read the kubelet's answer: {error}")),
    };
    if let Ok(status) = serde_json::from_slice::<Status>(&body)
        && status.kind == "Status"
        && status.code >= 400
    {
        return status;
    }
    let text = String::from_utf8_lossy(&body).trim_end().to_owned();
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
