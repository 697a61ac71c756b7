//! The way of a request to another API server (`proxyHandler` of kube-aggregator).

use bytes::Bytes;
use corten_access::{Identity, request_header};
use corten_cacher::{
    answer,
    body::{Body, BoxError, Response},
};
use corten_forwarding::headers;
use corten_stream::{Dialed, SILENCE_MAX, dial_within};
use corten_webhook::HEADERS_BYTES_MAX;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt;
use hyper::upgrade::Upgraded;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{aggregator::Aggregator, backend::PASSED_ON, server::CONNECTIONS_OF_USER_MAX, silence::IdleTimeoutBody};

/// A request that is passed on.
pub struct Forwarded<'a> {
    pub group: &'a str,
    pub version: &'a str,
    /// Whom it is made for.
    pub who: &'a Identity,
    pub method: &'a Method,
    /// As it came: its path is what was authorized.
    pub uri: &'a Uri,
    /// As they came, without credentials.
    pub headers: &'a HeaderMap,
    pub client: Option<std::net::IpAddr>,
    pub body: Body,
    /// May the answer go on for as long as both sides like, as a watch does?
    pub goes_on: bool,
}

/// What the other server made of a request.
pub enum Answered {
    /// It answers as HTTP does.
    Response(Response),
    /// It switched protocols: the connection is a pipe now.
    Switched(Box<http::response::Parts>, Upgraded),
}

/// A request that was not passed on, with the answer that is given instead.
pub struct NotForwarded {
    pub response: Box<Response>,
    pub reason: String,
}

fn refused(code: StatusCode, text: &str) -> NotForwarded {
    let mut response = answer::text(code, format!("{text}\n"));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    NotForwarded { response: Box::new(response), reason: text.to_owned() }
}

impl Aggregator {
    /// What the other server makes of the request: an answer that is still to be read, or another protocol where the request asks
    /// for one.
    ///
    /// # Errors
    /// Nobody is there, or the answer is none that may be passed on.
    pub async fn forward(&self, forwarded: Forwarded<'_>) -> Result<Answered, NotForwarded> {
        let unavailable = || refused(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
        let backend = self.backend(forwarded.group, forwarded.version).ok_or_else(unavailable)?;
        if !backend.is_available() || backend.leads_nowhere(self.caches()) {
            return Err(unavailable());
        }
        if forwarded.headers.contains_key(PASSED_ON) {
            return Err(refused(StatusCode::LOOP_DETECTED, "the request was passed on to another API server already"));
        }
        let upgrade = headers::wants_upgrade(forwarded.headers) && is_known_protocol(forwarded.headers);
        let user = &forwarded.who.user;
        let share = backend.server.share(user).ok_or_else(|| {
            let text = format!("{user} has {CONNECTIONS_OF_USER_MAX} requests under way there already");
            refused(StatusCode::TOO_MANY_REQUESTS, &text)
        })?;
        let goes_on = forwarded.goes_on;
        let wanted: Vec<HeaderValue> = forwarded.headers.get_all(header::UPGRADE).iter().cloned().collect();
        let host = backend.authority();
        let request =
            request(forwarded, &host, upgrade).map_err(|it| refused(StatusCode::INTERNAL_SERVER_ERROR, &it))?;
        let unreached = |error: String| {
            backend.unreached.notify_one();
            refused(StatusCode::SERVICE_UNAVAILABLE, &format!("error trying to reach service: {error}"))
        };
        if upgrade {
            let stream = backend.connected(None).await.map_err(unreached)?.of(share);
            return dialled(stream, request, &wanted).await.unwrap_or_else(|it| Err(unreached(it)));
        }
        // Who does not want to wait as long for the answer has a deadline of their own.
        let asking = tokio::time::timeout(SILENCE_MAX, backend.ask(self.caches(), request)).await;
        let response =
            asking.map_err(|_| unreached(format!("no answer within {SILENCE_MAX:?}")))?.map_err(unreached)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // What follows would be read as answers to the client's next requests.
            return Err(unreached("it switches protocols without being asked to".to_owned()));
        }
        let response = response.map(|it| boxed(IdleTimeoutBody::of(it.of(share), goes_on)));
        answered(response, upgrade).map(Answered::Response)
    }
}

/// What comes of a request for another protocol, over a connection of its own.
///
/// # Errors
/// The other server does not answer.
async fn dialled<S>(
    stream: S,
    request: Request<Body>,
    wanted: &[HeaderValue],
) -> Result<Result<Answered, NotForwarded>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let dialled = dial_within(stream, request, SILENCE_MAX, HEADERS_BYTES_MAX).await;
    Ok(match dialled.map_err(|it| it.to_string())? {
        // A refusal: whatever was asked for, that does not go on.
        Dialed::Answered(response) => {
            answered(response.map(|it| boxed(IdleTimeoutBody::of(it, false))), true).map(Answered::Response)
        }
        Dialed::Switched(head, connection) => switched(head, connection, wanted),
    })
}

/// What Kubernetes's streams switch to. Over HTTP/2 in clear, further requests could be sent as if the front proxy sent them.
fn is_known_protocol(headers: &http::HeaderMap) -> bool {
    let mut wanted = headers.get_all(header::UPGRADE).iter();
    wanted.all(|it| ["websocket", "spdy/3.1"].iter().any(|known| it.as_bytes().eq_ignore_ascii_case(known.as_bytes())))
}

/// A switch to what was asked for: another protocol would have its say between the client and us.
fn switched(
    mut head: Box<http::response::Parts>,
    connection: Upgraded,
    wanted: &[HeaderValue],
) -> Result<Answered, NotForwarded> {
    let is_wanted = |it: &HeaderValue| wanted.iter().any(|wanted| same(wanted, it));
    let Some(protocol) = head.headers.get(header::UPGRADE).filter(|it| is_wanted(it)).cloned() else {
        return Err(refused(StatusCode::BAD_GATEWAY, "the backend switched to a protocol that was not asked for"));
    };
    headers::homeward(&mut head.headers);
    head.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    head.headers.insert(header::UPGRADE, protocol);
    Ok(Answered::Switched(head, connection))
}

fn same(a: &HeaderValue, b: &HeaderValue) -> bool {
    a.as_bytes().eq_ignore_ascii_case(b.as_bytes())
}

fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

fn request(forwarded: Forwarded<'_>, host: &str, upgrade: bool) -> Result<Request<Body>, String> {
    let mut request = Request::new(forwarded.body);
    *request.method_mut() = forwarded.method.clone();
    let target = forwarded.uri.path_and_query().map_or("/", |it| it.as_str());
    *request.uri_mut() = target.parse().map_err(|it| format!("{target}: {it}"))?;
    let mut sent = headers::onward(forwarded.headers, None, forwarded.client, upgrade);
    // Said by the body itself: what was announced may be another's.
    sent.remove(header::CONTENT_LENGTH);
    sent.insert(PASSED_ON, HeaderValue::from_static("true"));
    sent.insert(header::HOST, HeaderValue::from_str(host).map_err(|it| format!("{host}: {it}"))?);
    // After all else: no header of the client's can take them away.
    request_header::say(&mut sent, forwarded.who)?;
    *request.headers_mut() = sent;
    Ok(request)
}

fn answered(mut response: Response, upgrade: bool) -> Result<Response, NotForwarded> {
    let code = response.status();
    if code.is_redirection() && response.headers().contains_key(header::LOCATION) {
        let text = "the backend attempted to redirect this request, which is not permitted";
        return Err(refused(StatusCode::BAD_GATEWAY, text));
    }
    if upgrade && code.as_u16() < 400 {
        let text = format!("invalid upgrade response: status code {}", code.as_u16());
        return Err(refused(StatusCode::INTERNAL_SERVER_ERROR, &text));
    }
    headers::homeward(response.headers_mut());
    Ok(response)
}

#[cfg(test)]
mod tests;
