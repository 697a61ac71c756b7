//! Asks one server.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use corten_cacher::watch_cache::Caches;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, response::Parts};
use http_body_util::Full;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_rustls::TlsConnector;

use crate::{
    client_config::{ClientConfig, ConfigError, Location, Proof},
    connection::{Connection, Dial, Failed},
    error::{self, Error, Reason},
    idle::Idle,
    reach,
    service::{self, NoEndpoint},
    stream::Stream,
    trust,
};

/// So many requests are under way to one server. More wait, within their deadlines: a webhook whose own requests come back to it
/// ends there.
const UNDER_WAY_MAX: usize = 128;
/// So many endpoints of a Service are tried, where one does not take a connection.
const ENDPOINTS_TRIED: usize = 3;
/// So often a request goes over another connection, where one had ended before it was sent.
const CONNECTIONS_TRIED: usize = 4;
const AGENT: &str = concat!("corten/", env!("CARGO_PKG_VERSION"));

pub struct Client {
    location: Location,
    /// As messages name it, without a query.
    url: Uri,
    host: String,
    /// As requests name it.
    authority: HeaderValue,
    port: u16,
    server_name: ServerName<'static>,
    shown_name: String,
    tls: TlsConnector,
    bearer: Option<HeaderValue>,
    caches: Arc<Caches>,
    dial: Dial,
    idle: Idle<Connection>,
    under_way: Semaphore,
    /// Which endpoint is asked next.
    turn: AtomicUsize,
    _entry: Entry,
}

/// All clients that somebody has, by their configurations.
pub(crate) type ClientsByConfig = Mutex<HashMap<ClientConfig, Weak<Client>>>;

/// Keeps a client findable by its configuration, which may hold keys, for as long as somebody has the client.
pub(crate) struct Entry {
    pub(crate) known: Arc<ClientsByConfig>,
    pub(crate) config: ClientConfig,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut known = self.known.lock();
        // Another one may have taken its place already.
        if known.get(&self.config).is_some_and(|it| it.strong_count() == 0) {
            known.remove(&self.config);
        }
    }
}

/// One request.
pub struct Question<'a> {
    /// Behind the `?` of the location's address; may be empty.
    pub query: &'a str,
    /// JSON.
    pub body: Bytes,
    /// From now to the last byte of the answer.
    pub deadline: Duration,
    pub answer_bytes_max: usize,
}

/// What a server answered, whatever its code.
pub struct Document {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Client {
    pub(crate) fn new(
        config: &ClientConfig,
        caches: Arc<Caches>,
        dial: Dial,
        entry: Entry,
    ) -> Result<Self, ConfigError> {
        let url = url(&config.location)?;
        let host = url.host().unwrap_or_default().to_owned();
        let authority = HeaderValue::from_str(url.authority().map_or("", |it| it.as_str()));
        let authority = authority.map_err(|it| ConfigError(format!("the host of {url}: {it}")))?;
        let shown_name = match (&config.server_name, &config.location) {
            (Some(name), _) => name.clone(),
            (None, Location::Service { namespace, name, .. }) => format!("{name}.{namespace}.svc"),
            (None, Location::Url(_)) => host.trim_matches(['[', ']']).to_owned(),
        };
        let unnamed = |_| ConfigError(format!("{shown_name:?} is neither a host name nor an address"));
        let server_name = ServerName::try_from(shown_name.clone()).map_err(unnamed)?;
        let bearer = match &config.proof {
            Some(Proof::BearerToken(token)) => {
                let value = HeaderValue::from_str(&format!("Bearer {token}"));
                let mut value = value.map_err(|_| ConfigError("the token holds what no header may hold".into()))?;
                value.set_sensitive(true);
                Some(value)
            }
            Some(Proof::Certificate { .. }) | None => None,
        };
        Ok(Self {
            location: config.location.clone(),
            authority,
            port: url.port_u16().unwrap_or(443),
            url,
            host,
            server_name,
            shown_name,
            tls: Arc::new(trust::config(config)?).into(),
            bearer,
            caches,
            dial,
            idle: Idle::default(),
            under_way: Semaphore::new(UNDER_WAY_MAX),
            turn: AtomicUsize::new(0),
            _entry: entry,
        })
    }

    /// The body of an answer of success. No redirect is followed.
    ///
    /// # Errors
    /// There is none.
    pub async fn post_json(&self, question: Question<'_>) -> Result<Bytes, Error> {
        let unanswered = |reason| Error::Unanswered { url: self.address(question.query), reason };
        let asking = async {
            let _turn = self.under_way.acquire().await.expect("it is never closed");
            let (connection, head, body) = self.exchange(&question).await.map_err(|it| unanswered(it.into()))?;
            // Only one that has been read to its end can be asked again.
            self.idle.put(connection);
            if is_success(head.status) { Ok(body) } else { Err(refusal(head.status, &body)) }
        };
        let answered = tokio::time::timeout(question.deadline, asking).await;
        answered.unwrap_or_else(|_| Err(unanswered(Reason::Deadline)))
    }

    /// A document, over a connection of its own: nobody is asked often enough to keep one. No redirect is followed. `target` is the path
    /// with its query; `headers` are sent beside the host. Put a deadline around it.
    ///
    /// # Errors
    /// There is no answer, or one that is larger.
    pub async fn get(&self, target: &str, headers: HeaderMap, bytes_max: usize) -> Result<Document, String> {
        let mut request = Request::get(target).body(Full::default()).map_err(|it| it.to_string())?;
        request.headers_mut().insert(header::HOST, self.authority.clone());
        request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        request.headers_mut().extend(headers);
        let mut connection = Connection::over(self.connected(None).await?).await?;
        let (head, body) = connection.ask(request, bytes_max).await.map_err(|it| it.reason)?;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("it switches protocols without being asked to".to_owned());
        }
        Ok(Document { code: head.status, headers: head.headers, body })
    }

    /// A new connection, for who speaks over it in their own way: to `first` where that is an endpoint that takes one. Put a deadline
    /// around it.
    ///
    /// # Errors
    /// Nobody was reached, or it was somebody else.
    pub async fn connect(&self, first: Option<SocketAddr>) -> Result<Stream, Error> {
        let unanswered = |reason: String| Error::Unanswered { url: self.url.to_string(), reason: reason.into() };
        self.connected(first).await.map_err(unanswered)
    }

    fn address(&self, query: &str) -> String {
        if query.is_empty() { self.url.to_string() } else { format!("{}?{query}", self.url) }
    }

    async fn exchange(&self, question: &Question<'_>) -> Result<(Connection, Parts, Bytes), String> {
        let mut request = self.request(question)?;
        for _ in 0..CONNECTIONS_TRIED {
            let mut connection = match self.idle.take(|_| true) {
                Some(kept) => kept,
                None => Connection::over(self.connected(None).await?).await?,
            };
            match connection.ask(request, question.answer_bytes_max).await {
                Ok((head, body)) => return Ok((connection, head, body)),
                Err(Failed { unsent: Some(unsent), .. }) => request = unsent,
                Err(Failed { reason, unsent: None }) => return Err(reason),
            }
        }
        Err("the server closes its connections again and again".into())
    }

    fn request(&self, question: &Question<'_>) -> Result<Request<Full<Bytes>>, String> {
        let path = self.url.path();
        let target = if question.query.is_empty() { path.to_owned() } else { format!("{path}?{}", question.query) };
        let body = Full::new(question.body.clone());
        let mut request = Request::post(target).body(body).map_err(|it| it.to_string())?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(self.bearer.clone().map(|it| (header::AUTHORIZATION, it)));
        Ok(request)
    }

    async fn connected(&self, first: Option<SocketAddr>) -> Result<Stream, String> {
        let (stream, to) = self.dialled(first).await?;
        let shaken = self.tls.connect(self.server_name.clone(), stream).await;
        shaken.map(|tls| Stream { tls, to }).map_err(|it| error::handshake(&it, &self.shown_name))
    }

    async fn dialled(&self, first: Option<SocketAddr>) -> Result<(TcpStream, SocketAddr), String> {
        let addresses = self.addresses().await?;
        let given = first.and_then(|first| addresses.iter().position(|it| *it == first));
        let first = given.unwrap_or_else(|| self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len());
        let mut failure = String::new();
        for address in addresses.iter().cycle().skip(first).take(addresses.len().min(ENDPOINTS_TRIED)) {
            if let Err(refused) = reach::check(&self.host, *address) {
                failure = refused;
                continue;
            }
            match (self.dial)(*address).await {
                Ok(stream) => return Ok((stream, *address)),
                Err(error) => failure = error::dialled(&address.to_string(), &error),
            }
        }
        Err(failure)
    }

    /// At least one.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let Location::Service { namespace, name, port, .. } = &self.location else {
            return looked_up(self.host.trim_matches(['[', ']']), self.port).await;
        };
        match service::endpoints(&self.caches, namespace, name, *port) {
            Ok(addresses) => Ok(addresses),
            // Whatever it leads to, the server there proves to be the Service (`ResolveCluster`).
            Err(NoEndpoint::ExternalName(host)) => looked_up(&host, *port).await,
            Err(error) => Err(error.to_string()),
        }
    }
}

async fn looked_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let none = || format!("dial tcp: lookup {host}: no such host");
    let found: Vec<_> = tokio::net::lookup_host((host, port)).await.map_err(|_| none())?.collect();
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

impl ClientConfig {
    /// # Errors
    /// No client can be made of it.
    pub fn check(&self) -> Result<(), ConfigError> {
        url(&self.location)?;
        trust::config(self).map(drop)
    }
}

fn url(location: &Location) -> Result<Uri, ConfigError> {
    let text = match location {
        Location::Url(url) => url.clone(),
        Location::Service { namespace, name, path, port } => {
            let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
            format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
        }
    };
    let url: Uri = text.parse().map_err(|it| ConfigError(format!("{text:?} is no URL: {it}")))?;
    if url.scheme_str() != Some("https") || url.host().is_none_or(str::is_empty) {
        return Err(ConfigError(format!("{text:?} must begin with https:// and a host")));
    }
    Ok(url)
}

/// As `transformResponse`: what lies above is no answer that a client of Kubernetes expects.
fn is_success(status: StatusCode) -> bool {
    (200..=206).contains(&status.as_u16())
}

fn refusal(status: StatusCode, body: &[u8]) -> Error {
    Error::Refused(Box::new(error::refused(status.as_u16(), body)))
}
