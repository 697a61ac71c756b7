//! What the filters and verbs know of one request: who asks, what for, and with what body.

use std::{collections::BTreeMap, future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use bytes::Bytes;
pub use corten_kinds::routes::{Query, RequestInfo};
use corten_meta::{Status, Time};
use http::{Extensions, HeaderMap, Method, Uri};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;

use crate::{
    Server,
    filters::{audit::Trail, authenticate::Credential, impersonate::Wanted},
    limits::Held,
    warnings::Warnings,
};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body on its way in or out: whole, or the endless one of a watch.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
pub type Response = http::Response<Body>;

/// The largest request body, as upstream's limit for resource requests.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// So much is read and thrown away of one that is too large: a client that is still sending does not hear the answer.
const BODY_BYTES_DRAINED: usize = 8 * BODY_BYTES_MAX;

/// Who asks, as authentication found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    pub fn new(user: impl Into<String>, groups: &[&str]) -> Self {
        Self { user: user.into(), groups: groups.iter().map(|it| (*it).to_owned()).collect(), ..Self::default() }
    }
}

/// The other end of a network connection. Absent for calls from inside the process.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client's certificate chain as it was sent, leaf first, empty where there is none: its holder has the key, but
    /// whether it is worth anything is for authentication to say.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

/// One request on its way through the chain. Filters fill it in from the outside to the inside.
pub struct Context {
    pub server: Server,
    /// Names the request in audit records and in the `Audit-Id` header.
    pub id: String,
    pub received: Time,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub peer: Option<Peer>,
    /// Set by authentication; known from the start for calls from inside the process.
    pub identity: Option<Identity>,
    /// By what `identity`, or the impersonator, was proved.
    pub(crate) credential: Credential,
    /// Who asks in truth, where `identity` is whom they act as.
    pub(crate) impersonator: Option<Identity>,
    /// By which right they do, where it is one that is limited; else empty.
    pub(crate) impersonation_constraint: &'static str,
    /// Whom they act as, as they asked for it.
    pub(crate) impersonated: Option<Wanted>,
    pub info: RequestInfo,
    /// Sent as `Warning` headers.
    pub warnings: Warnings,
    /// What filters and admission want to be said in the audit record.
    pub audit_annotations: BTreeMap<String, String>,
    pub(crate) audit: Trail,
    /// What those add who hold the context only to read it: admission.
    noted: Mutex<Noted>,
    /// Addresses and ports that the request has taken and not stored yet.
    pub(crate) claims: crate::services::Claims,
    /// Locked only to be taken; the lock makes the context shareable between threads.
    body: Mutex<Option<Body>>,
    /// What the body that was read takes of the room for all.
    body_room: Option<Held>,
    extensions: Extensions,
}

impl Context {
    pub(crate) fn new(
        server: Server,
        request: http::Request<Body>,
        peer: Option<Peer>,
        identity: Option<Identity>,
    ) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            id: server.new_uid(),
            received: server.now(),
            server,
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
            peer,
            identity,
            impersonator: None,
            impersonation_constraint: "",
            impersonated: None,
            credential: Credential::default(),
            info: RequestInfo::default(),
            warnings: Warnings::default(),
            audit_annotations: BTreeMap::new(),
            audit: Trail::default(),
            noted: Mutex::default(),
            claims: crate::services::Claims::default(),
            body: Mutex::new(Some(body)),
            body_room: None,
            extensions: parts.extensions,
        }
    }

    /// Who asks. Before authentication: nobody, who may nothing.
    pub fn who(&self) -> Identity {
        self.identity.clone().unwrap_or_default()
    }

    /// The user whose share of the server's room the request takes: who asks in truth.
    pub(crate) fn asker(&self) -> &str {
        self.impersonator.as_ref().or(self.identity.as_ref()).map_or("", |it| &it.user)
    }

    /// The whole body, read once; a second call gets an empty one.
    ///
    /// # Errors
    /// 413 where it is larger than [`BODY_BYTES_MAX`], 400 where the client broke off.
    pub async fn read_body(&mut self) -> Result<Bytes, Status> {
        let Some(mut body) = self.body.get_mut().take() else { return Ok(Bytes::new()) };
        let (mut whole, mut size) = (Vec::new(), 0_usize);
        let (server, asker) = (self.server.clone(), self.asker().to_owned());
        while let Some(frame) = body.frame().await {
            let broken = |error| Status::bad_request(format!("cannot read the request's body: {error}"));
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            size += data.len();
            if size <= BODY_BYTES_MAX {
                // As it comes, not as it is announced: who sends nothing takes nothing.
                let room = server.room().for_body(&asker, data.len()).await?;
                match &mut self.body_room {
                    Some(held) => held.merge(room),
                    None => self.body_room = Some(room),
                }
                whole.push(data);
            } else if size > BODY_BYTES_DRAINED {
                break;
            } else {
                whole.clear();
            }
        }
        if size > BODY_BYTES_MAX {
            return Err(Status::too_large(format!("Request entity too large: limit is {BODY_BYTES_MAX}")));
        }
        let body: Bytes = match whole.len() {
            1 => whole.remove(0),
            _ => whole.concat().into(),
        };
        self.audit.saw_body(&body);
        Ok(body)
    }

    /// The body as a stream, for requests that are passed on. `None` when it was read before.
    pub fn take_body(&mut self) -> Option<Body> {
        self.body.get_mut().take()
    }

    /// The connection itself, once the `101 Switching Protocols` answer is sent. `None` for calls from inside the process.
    pub fn on_upgrade(&mut self) -> Option<hyper::upgrade::OnUpgrade> {
        self.extensions.remove()
    }

    pub fn dry_run(&self) -> bool {
        self.info.query.all("dryRun").next().is_some()
    }

    pub fn warn(&mut self, message: impl Into<String>) {
        self.warnings.add(message.into());
    }

    /// As [`Context::warn`]. A write that is tried again says it once.
    pub(crate) fn note_warning(&self, message: impl Into<String>) {
        self.noted.lock().warnings.add(message.into());
    }

    /// For the audit record.
    pub(crate) fn note_annotation(&self, key: &str, value: impl Into<String>) {
        self.noted.lock().annotations.insert(key.to_owned(), value.into());
    }

    /// Puts what was noted where it is sent from.
    pub(crate) fn take_notes(&mut self) {
        let Noted { warnings, annotations } = std::mem::take(self.noted.get_mut());
        self.warnings.merge(warnings);
        self.audit_annotations.extend(annotations);
    }

    pub fn header(&self, name: http::header::HeaderName) -> &str {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Default)]
struct Noted {
    warnings: Warnings,
    annotations: BTreeMap<String, String>,
}

/// A body that is all there.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
