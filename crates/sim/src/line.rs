//! The line between a client and the API server, in one process: as unreliable as a network, but by the dice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use corten_access::Identity;
use corten_apiserver::{Fence, Server};
use corten_client::{Body, BoxFuture, Client, Transport, TransportError};
use corten_meta::Status;
use corten_store::{Store, memory::Memory};
use futures_util::stream;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{author::Author, freezer::Freezer, reads, seeded_rng::SeededRng, signal::Fan};

/// Where all lines end: the server of the moment, or none while it restarts.
pub(crate) type Switch = Arc<Mutex<Option<Server>>>;

/// What all lines share.
#[derive(Default)]
pub(crate) struct Weather {
    /// Faults happen.
    pub(crate) is_bad: AtomicBool,
    pub(crate) n_requests: AtomicU64,
    pub(crate) n_faults: AtomicU64,
    /// How often a client went to another server.
    pub(crate) n_moves: AtomicU64,
    /// Writes that were answered with success.
    pub(crate) acknowledged: Mutex<Vec<Acknowledged>>,
    /// What a client was answered that it must not be.
    pub(crate) violation: Mutex<Option<String>>,
}

/// An answer that says: this is stored.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) what: String,
    pub(crate) revision: u64,
}

impl Weather {
    pub(crate) fn is_bad(&self) -> bool {
        self.is_bad.load(Ordering::Relaxed)
    }
}

pub(crate) struct Line {
    pub(crate) server: Switch,
    pub(crate) who: Identity,
    pub(crate) weather: Arc<Weather>,
    pub(crate) dice: SeededRng,
    /// Nothing ever happens on it: for those who only look.
    pub(crate) is_calm: bool,
    /// Where several servers share the store, the process at its end, and what the store has.
    pub(crate) process: Option<(Freezer, Arc<Memory>)>,
    /// Of a loop that leads: the term that its writes are made in, and bound to while this says so.
    pub(crate) term: Option<(Author, Fan<u64>)>,
}

/// What befalls one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// Lost on the way there.
    Lost,
    /// Carried out, and the answer lost on the way back.
    Unanswered,
    /// Refused with this code before anything is done.
    Refused(u16),
    /// Carried out, and answered with a 500.
    Blurred,
    /// Carried out twice; the second answer counts.
    Twice,
}

impl Line {
    pub(crate) fn client(self) -> Client {
        Client::new(Arc::new(self))
    }

    fn is_bad(&self) -> bool {
        !self.is_calm && self.weather.is_bad()
    }

    fn fate(&self, method: &Method) -> Fate {
        if !self.is_bad() {
            return Fate::Arrives;
        }
        let fate = match self.dice.below(1000) {
            0..30 => Fate::Lost,
            30..60 => Fate::Unanswered,
            60..80 => Fate::Refused(500),
            80..100 => Fate::Refused(503),
            100..110 => Fate::Refused(429),
            110..130 if matches!(*method, Method::PATCH | Method::PUT) => Fate::Refused(409),
            130..145 => Fate::Blurred,
            // Only what may be sent twice: nothing that carries requests repeats a POST by itself.
            145..160 if *method != Method::POST => Fate::Twice,
            _ => return Fate::Arrives,
        };
        self.weather.n_faults.fetch_add(1, Ordering::Relaxed);
        fate
    }

    async fn delay(&self) {
        let delay = if !self.is_bad() {
            Duration::from_millis(1)
        } else if self.dice.percent(5) {
            self.dice.millis(200, 5000)
        } else {
            self.dice.millis(1, 100)
        };
        tokio::time::sleep(delay).await;
    }

    async fn call(&self, mut request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        // Taken anew for each request: a line outlives the server it was first connected to.
        let server = self.server.lock().clone().ok_or_else(|| TransportError("the server is down".into()))?;
        let Some((author, revision)) = &self.term else { return Ok(server.call(self.who.clone(), request).await) };
        request.extensions_mut().insert(Fence::new(author.lease, revision.listen()));
        Ok(author.clone().request(server.call(self.who.clone(), request)).await)
    }

    /// As [`Line::call`], of a server among several.
    async fn call_process(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let Some((freezer, store)) = &self.process else { return self.call(request).await };
        freezer.thawed().await;
        let listed = reads::is_consistent_list(&request).then(|| (request.uri().to_string(), store.revision()));
        let response = self.call(request).await;
        freezer.thawed().await;
        let Some((what, newest)) = listed else { return response };
        let (head, body) = response?.into_parts();
        let body = body.collect().await.map_err(|error| TransportError(error.to_string()))?.to_bytes();
        if head.status.is_success()
            && let Err(violation) = reads::check_list(&what, newest, &body)
        {
            self.weather.violation.lock().get_or_insert(violation);
        }
        Ok(Response::from_parts(head, whole(body)))
    }

    pub(crate) async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        self.weather.n_requests.fetch_add(1, Ordering::Relaxed);
        let method = request.method().clone();
        let what = format!("{method} {}", request.uri());
        let is_watch =
            request.uri().path() == "/progress" || request.uri().query().is_some_and(|it| it.contains("watch=true"));
        let fate = self.fate(&method);
        self.delay().await;
        match fate {
            Fate::Lost => return Err(lost()),
            Fate::Refused(code) => return Ok(refusal(code)),
            Fate::Twice if !is_watch => {
                self.call_process(request.clone()).await?;
            }
            _ => {}
        }
        let mut response = self.call_process(request).await?;
        if is_watch {
            return Ok(self.patchy(response));
        }
        if method != Method::GET && response.status().is_success() {
            response = self.note(&what, response).await?;
        }
        self.delay().await;
        match fate {
            Fate::Unanswered => Err(lost()),
            Fate::Blurred => Ok(refusal(500)),
            _ => Ok(response),
        }
    }

    /// Remembers what the server says it has stored.
    async fn note(&self, what: &str, response: Response<Body>) -> Result<Response<Body>, TransportError> {
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| TransportError(error.to_string()))?.to_bytes();
        let object: Value = serde_json::from_slice(&body).unwrap_or_default();
        let revision = object["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok());
        if let Some(revision) = revision {
            self.weather.acknowledged.lock().push(Acknowledged { what: what.to_owned(), revision });
        }
        Ok(Response::from_parts(head, whole(body)))
    }

    /// A watch whose events come late, sometimes twice, and that breaks off now and then.
    fn patchy(&self, response: Response<Body>) -> Response<Body> {
        if self.is_calm {
            return response;
        }
        let (dice, weather) = (SeededRng::new(self.dice.throw()), self.weather.clone());
        let state = Patchy { dice, weather, body: None, again: None };
        response.map(|body| {
            let frames = stream::unfold(Patchy { body: Some(body), ..state }, |mut it| async move {
                it.next().await.map(|frame| (frame.map(Frame::data), it))
            });
            StreamBody::new(frames).boxed_unsync()
        })
    }
}

impl Transport for Line {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

struct Patchy {
    dice: SeededRng,
    weather: Arc<Weather>,
    /// None once it has broken off.
    body: Option<Body>,
    again: Option<Bytes>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Patchy {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        if let Some(again) = self.again.take() {
            return Some(Ok(again));
        }
        let frame = self.body.as_mut()?.frame().await?;
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => {
                self.body = None;
                return Some(Err(error));
            }
        };
        if !self.weather.is_bad() {
            return Some(Ok(data));
        }
        let delay = if self.dice.percent(5) { self.dice.millis(300, 4000) } else { self.dice.millis(0, 200) };
        tokio::time::sleep(delay).await;
        match self.dice.below(100) {
            0..2 => {
                self.weather.n_faults.fetch_add(1, Ordering::Relaxed);
                self.body = None;
                Some(Err("the watch is cut".into()))
            }
            2..5 if data.starts_with(b"{\"type\":") && data.ends_with(b"\n") => {
                self.weather.n_faults.fetch_add(1, Ordering::Relaxed);
                self.again = Some(data.clone());
                Some(Ok(data))
            }
            _ => Some(Ok(data)),
        }
    }
}

fn lost() -> TransportError {
    TransportError("the line is cut".into())
}

fn refusal(code: u16) -> Response<Body> {
    let status = match code {
        409 => Status::failure(409, "Conflict", "the object has been modified; by the dice"),
        429 => Status::too_many_requests("the dice say: too many requests", 1),
        503 => Status::unavailable("the dice say: unavailable"),
        _ => Status::internal("the dice say so"),
    };
    let body = serde_json::to_vec(&status).expect("a status is plain data");
    Response::builder().status(code).body(whole(body.into())).expect("a code and a body make a response")
}

pub(crate) fn whole(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
