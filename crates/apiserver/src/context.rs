//! What the filters and verbs know of one request: who asks, what for, and with what body.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_access::{
    Decision, Identity, Impersonation, Peer, Recheck, Request, credential::Credential, identity::party,
    impersonation::ImpersonatedUser,
};
use corten_admission::{Noted, Notes, ServiceReservations};
use corten_audit::{Level, Trail};
use corten_cacher::{
    body::{BODY_BYTES_MAX, Body},
    codec::{self, Form, Strictness},
    fence::Fence,
    warnings::Warnings,
};
use corten_connection::{Attendance, RequestPlacement, WholeBody};
use corten_meta::{Status, Time};
use corten_openapi::Documents;
use corten_routes::{RequestInfo, Route};
use http::{Extensions, HeaderMap, Method, Uri};
use http_body_util::BodyExt;
use parking_lot::Mutex;

use crate::state::State;
use corten_fairness::{Permit, Sender, Underway};
use corten_kinds::Subresource;

/// So much is read and thrown away of one that is too large: a client that is still sending does not hear the answer.
const BODY_BYTES_DRAINED: usize = 8 * BODY_BYTES_MAX;
/// A value that is read takes some hundred and sixty bytes of memory, and the text of an object fifteen times its bytes: so many bytes
/// of text each value weighs.
const VALUE_WEIGHT: usize = 10;

/// Whether a request is let on, and what is said where it is not.
pub(crate) struct Verdict {
    pub(crate) decision: Decision,
    pub(crate) refusal: Option<Status>,
}

/// Who asks before authentication.
static NOBODY: Identity =
    Identity { user: String::new(), uid: String::new(), groups: Vec::new(), extra: BTreeMap::new() };

/// One request on its way through the chain. Filters fill it in from the outside to the inside.
pub struct Context {
    pub state: State,
    /// Names the request in audit records and in the `Audit-Id` header.
    pub id: String,
    pub received: Time,
    /// When its time is over; `None` where nothing ends it.
    pub deadline: Option<tokio::time::Instant>,
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
    pub(crate) impersonated: Option<ImpersonatedUser>,
    /// What is served, as it was when the request came: it keeps its rows to its end.
    pub(crate) served: Arc<Documents>,
    pub info: RequestInfo,
    /// Sent as `Warning` headers.
    pub warnings: Warnings,
    /// What filters and admission want to be said in the audit record.
    pub audit_annotations: BTreeMap<String, String>,
    pub(crate) audit: Trail,
    /// What admission wants to be said, which only reads the request.
    pub(crate) notes: Notes,
    /// How long it waited until it was its turn.
    pub(crate) seat_wait: Duration,
    /// Its seats, which it has until it is answered.
    pub(crate) seats: Option<Underway>,
    /// Where it was found out before it was the filter's turn.
    pub(crate) verdict: Option<Verdict>,
    /// Addresses and ports that the request has taken and not stored yet.
    pub(crate) reservations: ServiceReservations,
    /// The server itself works on its store: no plugin of admission is asked.
    pub(crate) skips_admission: bool,
    /// The answer is wanted as protobuf; then the headers ask for JSON.
    pub(crate) protobuf: bool,
    /// Locked only to be taken; the lock makes the context shareable between threads.
    body: Mutex<Option<Body>>,
    /// What came of the body, where it was received before anybody has asked for it.
    received_body: Option<Result<Bytes, Status>>,
    /// What the body that was read takes of the room for all.
    body_room: Permit,
    extensions: Extensions,
}

impl Context {
    pub(crate) fn new(
        state: State,
        request: http::Request<Body>,
        peer: Option<Peer>,
        identity: Option<Identity>,
    ) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            id: state.new_uid(),
            received: state.now(),
            deadline: None,
            served: state.served(),
            state,
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
            notes: Notes::default(),
            seat_wait: Duration::ZERO,
            seats: None,
            verdict: None,
            reservations: ServiceReservations::default(),
            skips_admission: false,
            protobuf: false,
            body: Mutex::new(Some(body)),
            received_body: None,
            body_room: Permit::default(),
            extensions: parts.extensions,
        }
    }

    /// Who asks. Before authentication: nobody, who may nothing.
    pub fn who(&self) -> Identity {
        self.asker_now().clone()
    }

    pub(crate) fn asker_now(&self) -> &Identity {
        self.identity.as_ref().unwrap_or(&NOBODY)
    }

    /// Is it for another API server to answer?
    pub(crate) fn is_aggregated(&self) -> bool {
        matches!(self.info.route, Route::Aggregated { .. })
    }

    /// Is it what another API server answers, as long as the client likes? (`BasicLongRunningRequestCheck`)
    pub(crate) fn is_aggregated_for_long(&self) -> bool {
        let is_long = |it: &str| matches!(it, "attach" | "exec" | "log" | "portforward" | "proxy");
        self.is_aggregated() && is_long(&self.info.subresource)
    }

    /// Is it meant to go on for as long as its client likes? Then its answer has no time to be read in.
    pub(crate) fn goes_on(&self) -> bool {
        self.info.verb == "watch" || self.holds_no_seats()
    }

    /// A watch holds some until it has begun.
    pub(crate) fn holds_no_seats(&self) -> bool {
        let is_long =
            |it| matches!(it, Subresource::Attach | Subresource::Exec | Subresource::Log | Subresource::PortForward);
        let info = &self.info;
        info.proxied.is_some() || info.route.subresource().is_some_and(is_long) || self.is_aggregated_for_long()
    }

    /// What is asked again while the request's answer goes on.
    pub(crate) fn recheck(&self) -> Recheck {
        let request = Request {
            peer: self.peer.clone(),
            credential: self.credential.clone(),
            asker: self.impersonator.clone().unwrap_or_else(|| self.who()),
            impersonated: self.impersonated.clone().map(|wanted| Impersonation { wanted, identity: self.who() }),
            info: self.info.clone(),
        };
        Recheck::new(self.state.access().clone(), request)
    }

    /// The user whose share of the server's room the request takes: who asks in truth.
    pub(crate) fn asker(&self) -> &str {
        self.impersonator.as_ref().or(self.identity.as_ref()).map_or("", |it| &it.user)
    }

    /// With whom they share.
    pub(crate) fn party(&self) -> &str {
        party(self.asker())
    }

    /// The whole body, read once; a second call gets an empty one.
    ///
    /// # Errors
    /// 413 where it is larger than [`BODY_BYTES_MAX`], 400 where the client broke off.
    pub async fn read_body(&mut self) -> Result<Bytes, Status> {
        self.receive_body().await;
        let Some(received) = self.received_body.take() else { return Ok(Bytes::new()) };
        let body = received?;
        self.audit.saw_body(&body);
        Ok(body)
    }

    /// Waits for the body, and keeps it for who reads it. A body that was taken is not waited for.
    pub(crate) async fn receive_body(&mut self) {
        if let Some(body) = self.body.get_mut().take() {
            let received = self.receive(body).await;
            self.received_body = Some(received);
        }
    }

    async fn receive(&mut self, mut body: Body) -> Result<Bytes, Status> {
        let (mut whole, mut size) = (WholeBody::default(), 0_usize);
        let state = self.state.clone();
        while let Some(frame) = body.frame().await {
            let broken = |error| Status::bad_request(format!("cannot read the request's body: {error}"));
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            size += data.len();
            if size <= BODY_BYTES_MAX {
                // As it comes, not as it is announced: who sends nothing takes nothing. What is said inside the process is there already.
                if let Some(sender) = self.sender() {
                    let room = state.room().for_body(sender, size - data.len(), data.len()).await?;
                    self.body_room.merge(room);
                }
                whole.push(data);
            } else if size > BODY_BYTES_DRAINED {
                break;
            } else {
                whole = WholeBody::default();
            }
        }
        if size > BODY_BYTES_MAX {
            return Err(Status::too_large(format!("Request entity too large: limit is {BODY_BYTES_MAX}")));
        }
        Ok(whole.into())
    }

    /// Who takes room; `None` inside the process.
    fn sender(&self) -> Option<Sender<'_>> {
        self.peer.as_ref()?;
        let who = self.impersonator.as_ref().unwrap_or_else(|| self.asker_now());
        Some(Sender { party: party(&who.user), is_of_system: who.is_of_system() })
    }

    /// How long the body is, where it has been received and not been taken.
    pub(crate) fn n_received(&self) -> usize {
        self.received_body.as_ref().and_then(|it| it.as_ref().ok()).map_or(0, Bytes::len)
    }

    /// As [`Self::n_received`]; of a body of many small values as much as others have that take as much memory when they are read.
    pub(crate) fn weight_received(&self) -> usize {
        let body = self.received_body.as_ref().and_then(|it| it.as_ref().ok());
        body.map_or(0, |it| it.len().max(VALUE_WEIGHT * it.iter().filter(|it| **it == b',').count()))
    }

    /// Room to work on an object of so many bytes, which the request has until it is answered.
    ///
    /// # Errors
    /// 429 where there is none for too long.
    pub(crate) async fn take_work_room(&mut self, bytes: usize) -> Result<(), Status> {
        let state = self.state.clone();
        if let Some(sender) = self.sender() {
            let room = state.room().for_work(sender, bytes).await?;
            self.body_room.merge(room);
        }
        Ok(())
    }

    /// The body as a stream, for requests that are passed on. `None` when it was read before.
    pub fn take_body(&mut self) -> Option<Body> {
        self.body.get_mut().take()
    }

    /// The connection itself, once the `101 Switching Protocols` answer is sent. `None` for calls from inside the process.
    pub fn on_upgrade(&mut self) -> Option<hyper::upgrade::OnUpgrade> {
        self.extensions.remove()
    }

    /// What a write is bound to, where the caller leads.
    pub(crate) fn fence(&self) -> Option<&Fence> {
        self.extensions.get()
    }

    /// Says when the client leaves, where the request goes on without it.
    pub(crate) fn attendance(&mut self) -> Option<Attendance> {
        self.extensions.remove()
    }

    /// Where it is worked on, where that may change.
    pub(crate) fn placement(&self) -> Option<&RequestPlacement> {
        self.extensions.get()
    }

    pub fn dry_run(&self) -> bool {
        self.info.query.all("dryRun").next().is_some()
    }

    pub fn warn(&mut self, message: impl Into<String>) {
        self.warnings.add(message.into());
    }

    /// Puts what was noted where it is sent from.
    pub(crate) fn take_notes(&mut self) {
        let Noted { warnings, annotations, annotations_of_objects } = self.notes.take();
        self.warnings.merge(warnings);
        self.audit_annotations.extend(annotations);
        if self.audit.verdict.level >= Level::Request {
            self.audit_annotations.extend(annotations_of_objects);
        }
    }

    pub fn header(&self, name: http::header::HeaderName) -> &str {
        codec::header(&self.headers, &name)
    }

    /// In what form the answer is wanted.
    ///
    /// # Errors
    /// 406.
    pub fn form(&self) -> Result<Form, Status> {
        Form::of(&self.headers, &self.info.query)
    }

    /// What becomes of unknown and duplicate fields.
    ///
    /// # Errors
    /// 422.
    pub fn strictness(&self) -> Result<Strictness, Status> {
        Strictness::of(&self.info.query, self.info.verb)
    }
}
