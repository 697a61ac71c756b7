//! `proxy`: a request of any method, sent on to a Pod, to a Pod of a Service, or to a node's kubelet, and its answer sent
//! back.
//!
//! What runs there is not trusted: it sees no credential, its addresses must be its own, and links it answers with lead
//! through here again.

use corten_cacher::{
    answer,
    body::{Body, BoxError, Response, whole},
};
use corten_forwarding::{Links, Page, cleaned, headers};
use corten_kubelets::{KubeletClient, Location};
use corten_meta::Status;
use corten_stream::{Accepted, Answer, Dialed, SILENCE_MAX};
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::context::Context;

pub(crate) async fn answer(ctx: &mut Context) -> Result<Response, Status> {
    let client = ctx.state.config().kubelet_dial.clone().ok_or_else(corten_kubelets::no_way)?;
    let location = Location::of(ctx.state.caches(), &ctx.info.plural, &ctx.info.namespace, &ctx.info.name)?;
    let upgrade = headers::wants_upgrade(&ctx.headers);
    // What a kubelet switches protocols for does something in a container, and it sees only that the API server asks.
    let acts = upgrade && matches!(location, Location::Kubelet(_));
    if acts {
        super::may_create(ctx).await?;
    }
    let recheck = if acts { ctx.recheck().and("create") } else { ctx.recheck() };
    let asked = ctx.info.canonical_path();
    let rest = ctx.info.proxied.clone().unwrap_or_default();
    if rest.is_empty() && !upgrade && matches!(ctx.method, Method::GET | Method::HEAD) {
        return redirected(&asked, ctx.uri.query());
    }
    let prefix = asked.strip_suffix(&*rest).unwrap_or(&asked).to_owned();
    let request = request(ctx, &location, &rest, upgrade)?;
    let host = request.headers().get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let links = Links { prefix, hosts: [location.authority(), host] };
    let dialed = send(&client, &location, request).await;
    let dialed = dialed.map_err(|it| Status::unavailable(format!("error trying to reach service: {it}")))?;
    match dialed {
        Dialed::Answered(response) if upgrade && response.status().as_u16() < 400 => {
            Err(Status::internal(format!("invalid upgrade response: status code {}", response.status().as_u16())))
        }
        // What answers may never end: a page's stream of events.
        Dialed::Answered(response) => Ok(answered(response, &links).map(|it| recheck.guard(it))),
        // What follows would be read as answers to the client's next requests.
        Dialed::Switched(..) if !upgrade => {
            Err(Status::unavailable("error trying to reach service: it switches protocols without being asked to"))
        }
        Dialed::Switched(head, other) => {
            let connection = ctx.on_upgrade().ok_or_else(|| Status::bad_request("Upgrade request required"))?;
            ctx.state.tunnels().keep(ctx.state.stopping(), recheck, Accepted::plain(connection), other);
            let mut response = http::Response::new(whole(""));
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *response.headers_mut() = head.headers.clone();
            Ok(response)
        }
    }
}

async fn send(
    client: &KubeletClient,
    location: &Location,
    request: Request<Body>,
) -> Result<Dialed, corten_kubelets::Error> {
    match location {
        Location::Kubelet(node) => client.ask(node, request, SILENCE_MAX).await,
        Location::Stranger { authority, is_https } => {
            client.ask_stranger(authority, *is_https, request, SILENCE_MAX).await
        }
    }
}

/// As in `UpgradeAwareHandler`: relative links of the page at the root would lead beside it.
fn redirected(path: &str, query: Option<&str>) -> Result<Response, Status> {
    let query = query.map(|it| format!("?{it}")).unwrap_or_default();
    let mut response = answer::text(StatusCode::MOVED_PERMANENTLY, "");
    let location = HeaderValue::from_str(&format!("{path}/{query}")).map_err(Status::internal)?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn request(ctx: &mut Context, location: &Location, rest: &str, upgrade: bool) -> Result<Request<Body>, Status> {
    let path = cleaned(rest);
    let query = ctx.uri.query().map(|it| format!("?{it}")).unwrap_or_default();
    let body = ctx.take_body().unwrap_or_else(|| whole(""));
    let mut request = Request::new(body);
    *request.method_mut() = ctx.method.clone();
    *request.uri_mut() = format!("{path}{query}").parse().map_err(|it| Status::bad_request(format!("{path}: {it}")))?;
    let client = ctx.peer.as_ref().map(|it| it.address.ip());
    *request.headers_mut() = headers::onward(&ctx.headers, ctx.uri.authority(), client, upgrade);
    if matches!(location, Location::Kubelet(_)) {
        headers::forget_site(request.headers_mut());
    }
    if !request.headers().contains_key(header::HOST) {
        let host = HeaderValue::from_str(&location.authority()).map_err(Status::internal)?;
        request.headers_mut().insert(header::HOST, host);
    }
    // As in `corsRemovingTransport` and `proxyutil.Transport`: what is behind the proxy, under the path that leads there.
    let forwarded = HeaderValue::from_str(&ctx.info.canonical_path()).map_err(Status::internal)?;
    request.headers_mut().insert(headers::FORWARDED_URI, forwarded);
    Ok(request)
}

fn answered(response: http::Response<Answer>, links: &Links) -> Response {
    let (mut parts, body) = response.into_parts();
    headers::homeward(&mut parts.headers);
    let location = parts.headers.get(header::LOCATION).and_then(|it| it.to_str().ok()).map(|it| links.rewritten(it));
    if let Some(Ok(location)) = location.map(|it| HeaderValue::from_str(&it)) {
        parts.headers.insert(header::LOCATION, location);
        return http::Response::from_parts(parts, body.map_err(BoxError::from).boxed_unsync());
    }
    if !headers::is_plain_html(&parts.headers) {
        return http::Response::from_parts(parts, body.map_err(BoxError::from).boxed_unsync());
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    http::Response::from_parts(parts, relinked(body, links.clone()))
}

/// The page with its links leading through here, as it comes.
fn relinked(body: Answer, links: Links) -> Body {
    let state = Some((body, Page::new(links)));
    let frames = futures_util::stream::unfold(state, |state| async {
        let (mut body, mut page) = state?;
        loop {
            let mut out = Vec::new();
            let next = match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    page.feed(&data, &mut out);
                    Some((body, page))
                }
                Some(Err(error)) => return Some((Err(BoxError::from(error)), None)),
                None => {
                    page.finish(&mut out);
                    None
                }
            };
            match next {
                Some(next) if out.is_empty() => (body, page) = next,
                next => return Some((Ok(Frame::data(out.into())), next)),
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}
