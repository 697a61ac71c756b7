//! A tiny API server for tests: objects, versions, conflicts, lists and watches, with the faults a test asks for.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_client::{
    Body, BoxFuture, Client, Kept, KeptAnswers, KeptChange, KeptList, LeftOut, Transport, TransportError,
};
use corten_meta::{Key, Time};
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use crate::Clock;

/// What befalls the next request of a method.
pub(crate) enum Fault {
    /// Carried out, but nobody learns of it.
    AnswerLost(&'static str),
    /// Not carried out.
    Refused(&'static str, u16, &'static str),
}

#[derive(Default)]
struct State {
    version: u64,
    /// By path.
    objects: BTreeMap<String, Value>,
    log: Vec<Change>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
    watched: BTreeSet<String>,
    watch_delay: Duration,
    is_silent: bool,
    /// Paths that end so are nobody's to read.
    forbidden: Option<&'static str>,
    unlisted: Option<String>,
    /// It is not of Corten: it does not tell its progress.
    is_foreign: bool,
    /// Plurals that it does not serve.
    unserved: BTreeSet<&'static str>,
}

#[derive(Clone)]
struct Change {
    version: u64,
    path: String,
    event_type: &'static str,
    object: Value,
}

pub(crate) struct FakeApi {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl FakeApi {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { version: 1, ..State::default() }), changed: watch::Sender::new(1) })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(Arc::new(Line(self.clone())))
    }

    /// A client that keeps what it is told there.
    pub(crate) fn keeping_client(self: &Arc<Self>, kept: &Arc<Memory>) -> Client {
        self.client().with_kept(KeptAnswers::new(kept.clone()))
    }

    /// Nobody is answered any more, or everybody again; watches go on and say nothing.
    pub(crate) fn silence(&self, is_silent: bool) {
        self.state.lock().is_silent = is_silent;
    }

    /// Whoever reads a path that ends so is refused.
    pub(crate) fn forbid(&self, end: &'static str) {
        self.state.lock().forbidden = Some(end);
    }

    /// From now on it answers `/progress` with 404, as kube-apiserver does, which has no such path.
    pub(crate) fn become_foreign(&self) {
        self.state.lock().is_foreign = true;
    }

    /// Requests for these objects go to a path that is not there, until the server serves them.
    pub(crate) fn serve(&self, plural: &'static str, is_served: bool) {
        let unserved = &mut self.state.lock().unserved;
        if is_served {
            unserved.remove(plural)
        } else {
            unserved.insert(plural)
        };
    }

    /// Watches learn of changes this much later.
    pub(crate) fn delay_watches(&self, delay: Duration) {
        self.state.lock().watch_delay = delay;
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.state.lock().faults.push_back(fault);
    }

    /// Nothing of this collection is listed any more (503), or all is again. `/api/v1/pods`
    pub(crate) fn list_no_more(&self, collection: Option<&str>) {
        self.state.lock().unlisted = collection.map(str::to_owned);
    }

    /// The requests since the last call that were neither reads nor by the test: `POST /api/v1/…`.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().requests)
    }

    /// Was there ever a watch of it? `/api/v1/pods`
    pub(crate) fn was_watched(&self, collection: &str) -> bool {
        self.state.lock().watched.contains(collection)
    }

    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        self.state.lock().objects.get(path).cloned()
    }

    pub(crate) fn objects(&self, beneath: &str) -> Vec<Value> {
        let state = self.state.lock();
        state.objects.iter().filter(|it| it.0.starts_with(beneath)).map(|it| it.1.clone()).collect()
    }

    /// Writes an object without a request.
    pub(crate) fn put(&self, path: &str, mut object: Value) {
        let mut state = self.state.lock();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-of-{path}"));
        }
        self.store(&mut state, path, object);
    }

    pub(crate) fn remove(&self, path: &str) {
        let mut state = self.state.lock();
        self.drop_object(&mut state, path);
    }

    fn store(&self, state: &mut State, path: &str, mut object: Value) -> Value {
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let event_type = if state.objects.contains_key(path) { "MODIFIED" } else { "ADDED" };
        state.objects.insert(path.to_owned(), object.clone());
        let change = Change { version: state.version, path: path.to_owned(), event_type, object: object.clone() };
        state.log.push(change);
        self.changed.send_replace(state.version);
        object
    }

    fn drop_object(&self, state: &mut State, path: &str) {
        let Some(mut object) = state.objects.remove(path) else { return };
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.log.push(Change { version: state.version, path: path.to_owned(), event_type: "DELETED", object });
        self.changed.send_replace(state.version);
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let mut state = self.state.lock();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        if method == "GET" && state.forbidden.is_some_and(|it| path.ends_with(it)) {
            return status(403, "Forbidden");
        }
        if method == "GET" && is_group_version(path) {
            let served = COLLECTIONS.iter().filter(|it| !state.unserved.contains(**it));
            return (200, json!({ "resources": served.map(|it| json!({ "name": it })).collect::<Vec<_>>() }));
        }
        if method != "GET" {
            state.requests.push(format!("{method} {path}"));
        }
        let (path, subresource) =
            match ["/status", "/binding", "/token"].iter().find_map(|it| Some((path.strip_suffix(it)?, *it))) {
                Some((path, subresource)) => (path.to_owned(), subresource),
                None => (path.to_owned(), ""),
            };
        let stored = state.objects.get(&path).cloned();
        match (method, stored) {
            ("POST", Some(pod)) if subresource == "/binding" => self.bind(&mut state, &path, pod, &sent),
            ("POST", Some(account)) if subresource == "/token" => {
                let status = json!({"token": token_of(&account, &sent), "expirationTimestamp": "2026-01-01T02:00:00Z"});
                (201, json!({"kind": "TokenRequest", "status": status}))
            }
            ("POST", _) if subresource.is_empty() => self.create(&mut state, &path, sent),
            ("GET", Some(object)) => (200, object),
            ("PATCH", Some(mut object)) => {
                let wanted = &sent["metadata"]["resourceVersion"];
                if !wanted.is_null() && *wanted != object["metadata"]["resourceVersion"] {
                    return status(409, "Conflict");
                }
                let before = object.clone();
                merge(&mut object, &sent);
                (200, if object == before { object } else { self.store(&mut state, &path, object) })
            }
            ("PUT", Some(before)) => {
                let wanted = &sent["metadata"]["resourceVersion"];
                match !wanted.is_null() && *wanted != before["metadata"]["resourceVersion"] {
                    true => status(409, "Conflict"),
                    false => (200, self.store(&mut state, &path, sent)),
                }
            }
            ("DELETE", Some(object)) => {
                let wanted = &sent["preconditions"]["uid"];
                if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
                    return status(409, "Conflict");
                }
                self.drop_object(&mut state, &path);
                (200, json!({"kind": "Status", "status": "Success"}))
            }
            ("GET", None) if is_collection(&path) => (200, list(&state, &path)),
            _ => not_found(&path),
        }
    }

    fn create(&self, state: &mut State, collection: &str, mut object: Value) -> (u16, Value) {
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            object["metadata"]["name"] = json!(format!("{prefix}{}", state.version));
        }
        let path = format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        if state.objects.contains_key(&path) {
            return status(409, "AlreadyExists");
        }
        object["metadata"]["uid"] = json!(format!("uid-{}", state.version));
        (201, self.store(state, &path, object))
    }

    fn bind(&self, state: &mut State, path: &str, mut pod: Value, binding: &Value) -> (u16, Value) {
        if pod["metadata"]["uid"] != binding["metadata"]["uid"] || pod["spec"]["nodeName"].is_string() {
            return status(409, "Conflict");
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].clone();
        self.store(state, path, pod);
        (201, json!({"kind": "Status", "status": "Success"}))
    }

    /// How far all has come, and when each resource that is known here was changed last; it is never late.
    fn progress(self: Arc<Self>) -> Body {
        let changed = self.changed.subscribe();
        let lines = stream::unfold((0, changed), move |(after, mut changed)| {
            let api = self.clone();
            async move {
                changed.wait_for(|it| *it > after).await.ok()?;
                let state = api.state.lock();
                let mut last = BTreeMap::new();
                for plural in COLLECTIONS {
                    let change = state.log.iter().rev().find(|it| it.path.rsplit('/').nth(1) == Some(plural));
                    let name = change.map_or_else(|| (*plural).to_owned(), |it| with_group(plural, &it.path));
                    last.insert(name, change.map_or(1, |it| it.version).to_string());
                }
                let object = json!({"revision": state.version.to_string(), "changed": last});
                let line = format!("{}\n", json!({"type": "BOOKMARK", "object": object}));
                let version = state.version;
                drop(state);
                Some((Ok(Frame::data(Bytes::from(line))), (version, changed)))
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(lines))
    }

    fn watch(self: Arc<Self>, collection: String, after: u64, progress: bool) -> Body {
        let delay = {
            let mut state = self.state.lock();
            state.watched.insert(collection.clone());
            state.watch_delay
        };
        let changed = self.changed.subscribe();
        let lines = stream::unfold((after, changed), move |(after, mut changed)| {
            let (api, collection) = (self.clone(), collection.clone());
            async move {
                changed.wait_for(|it| *it > after).await.ok()?;
                tokio::time::sleep(delay).await;
                let state = api.state.lock();
                let mut text = String::new();
                for it in state.log.iter().filter(|it| it.version > after && is_in(&it.path, &collection)) {
                    text.push_str(&json!({"type": it.event_type, "object": it.object}).to_string());
                    text.push('\n');
                }
                let version = state.version;
                // What others write is none of its business.
                if progress && !text.is_empty() {
                    let object = json!({"metadata": {"resourceVersion": version.to_string()}});
                    text.push_str(&format!("{}\n", json!({"type": "BOOKMARK", "object": object})));
                }
                drop(state);
                Some((Ok(Frame::data(Bytes::from(text))), (version, changed)))
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(lines))
    }
}

impl Transport for FakeApi {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move {
            // A request takes a moment, so that others come between.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let method = request.method().as_str().to_owned();
            let fault = {
                let mut faults = self.state.lock();
                let at = faults.faults.iter().position(|it| it.method() == method);
                at.and_then(|it| faults.faults.remove(it))
            };
            if let Some(Fault::Refused(_, code, reason)) = fault {
                let (code, body) = status(code, reason);
                return Ok(respond(code, &body));
            }
            if method == "GET" && self.state.lock().unlisted.as_deref() == Some(request.uri().path()) {
                let (code, body) = status(503, "ServiceUnavailable");
                return Ok(respond(code, &body));
            }
            let (code, body) = self.answer(&method, request.uri().path(), request.body());
            match fault {
                Some(_) => Err(TransportError("the answer is lost".into())),
                None => Ok(respond(code, &body)),
            }
        })
    }
}

/// A watch holds the server itself, since its answer outlives its request.
struct Line(Arc<FakeApi>);

impl Transport for Line {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        if self.0.state.lock().is_silent {
            return Box::pin(async { Err(TransportError("nobody is there".into())) });
        }
        let has_no_such_path = {
            let state = self.0.state.lock();
            let path = request.uri().path();
            state.is_foreign && path == "/progress"
                || state.unserved.iter().any(|it| path.split('/').any(|part| part == *it))
        };
        if has_no_such_path {
            let body = Full::new(Bytes::from("404 page not found")).map_err(|never| match never {}).boxed_unsync();
            let answer = Response::builder().status(404).body(body).map_err(|it| TransportError(it.to_string()));
            return Box::pin(async { answer });
        }
        if request.uri().path() == "/progress" {
            let body = self.0.clone().progress();
            return Box::pin(async move { Ok(Response::new(body)) });
        }
        if !query.contains("watch=true") {
            return self.0.send(request);
        }
        let after = query.split('&').find_map(|it| it.strip_prefix("resourceVersion=")?.parse().ok()).unwrap_or(0);
        let body =
            self.0.clone().watch(request.uri().path().to_owned(), after, query.contains("progressBookmarks=true"));
        Box::pin(async move { Ok(Response::new(body)) })
    }
}

impl Fault {
    fn method(&self) -> &'static str {
        match self {
            Self::AnswerLost(method) | Self::Refused(method, _, _) => method,
        }
    }
}

fn respond(code: u16, body: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).expect("a valid response")
}

/// `/api/v1` or `/apis/apps/v1`.
fn is_group_version(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    matches!(parts[..], ["api", _] | ["apis", _, _])
}

/// As the server says which object it is that is not there.
fn not_found(path: &str) -> (u16, Value) {
    let (code, mut answer) = status(404, "NotFound");
    let name = path.rsplit('/').next().unwrap_or_default();
    answer["message"] = json!(format!("{name:?} not found"));
    answer["details"] = json!({ "name": name });
    (code, answer)
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "code": code, "reason": reason, "message": reason}))
}

/// Who it is for, for what, and in which pod: as text that a test can read.
fn token_of(account: &Value, request: &Value) -> String {
    let (spec, name) = (&request["spec"], &account["metadata"]["name"]);
    format!("{name} {} {} {}", spec["audiences"], spec["expirationSeconds"], spec["boundObjectRef"]["name"])
}

fn list(state: &State, collection: &str) -> Value {
    let items: Vec<&Value> = state.objects.iter().filter(|it| is_in(it.0, collection)).map(|it| it.1).collect();
    json!({"metadata": {"resourceVersion": state.version.to_string()}, "items": items})
}

/// `/api/v1/namespaces/default/pods/a` is in `/api/v1/pods`.
fn is_in(path: &str, collection: &str) -> bool {
    let (Some((parent, _)), Some((group, plural))) = (path.rsplit_once('/'), collection.rsplit_once('/')) else {
        return false;
    };
    parent == collection || (parent.starts_with(group) && parent.ends_with(&format!("/{plural}")))
}

/// As `pods`, or `jobs.batch`.
fn with_group(plural: &str, path: &str) -> String {
    let group = path.strip_prefix("/apis/").and_then(|it| it.split('/').next());
    group.map_or_else(|| plural.to_owned(), |it| format!("{plural}.{it}"))
}

const COLLECTIONS: &[&str] = &[
    "volumesnapshots",
    "volumesnapshotcontents",
    "volumesnapshotclasses",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "volumeattachments",
    "volumeattributesclasses",
    "resourceslices",
    "resourceclaims",
    "deviceclasses",
    "devicetaintrules",
    "clustertrustbundles",
    "podcertificaterequests",
    "pods",
    "configmaps",
    "nodes",
    "events",
    "secrets",
    "certificatesigningrequests",
    "endpointslices",
    "namespaces",
    "services",
    "serviceaccounts",
    "servicecidrs",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "poddisruptionbudgets",
    "podgroups",
    "customresourcedefinitions",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "networkpolicies",
];

fn is_collection(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|it| COLLECTIONS.contains(&it))
}

fn merge(object: &mut Value, patch: &Value) {
    let (Some(object), Some(patch)) = (object.as_object_mut(), patch.as_object()) else {
        *object = patch.clone();
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// A clock that goes with tokio's paused one.
pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Time::from_unix_seconds(1_000_000).after(start.elapsed()))
}

/// The objects of a list that is kept, and its version once it is whole.
type Listed = (BTreeMap<Key, Bytes>, Option<String>);

/// Keeps what a node would keep on its disk.
#[derive(Default)]
pub(crate) struct Memory {
    before: Mutex<BTreeMap<String, KeptList>>,
    lists: Mutex<BTreeMap<String, Listed>>,
    answers: Mutex<BTreeMap<(String, String), Option<Bytes>>>,
}

impl Memory {
    /// The process ends, and another one finds what was written.
    pub(crate) fn restart(&self) {
        for (of, (objects, version)) in std::mem::take(&mut *self.lists.lock()) {
            if let Some(version) = version {
                let items = objects.into_values().collect();
                self.before.lock().insert(of, KeptList { items, version, left_out: Vec::new() });
            }
        }
    }

    /// There was no room for this Pod of the default namespace.
    pub(crate) fn leave_out(&self, pod: &str, uid: &str) {
        for (_, list) in self.before.lock().iter_mut().filter(|it| it.0.starts_with("kubelet: pods ")) {
            list.items.retain(|it| !String::from_utf8_lossy(it).contains(uid));
            list.left_out.push(LeftOut { key: Key::new("default", pod), uid: uid.to_owned() });
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lists.lock().keys().cloned().collect()
    }

    pub(crate) fn owners(&self) -> BTreeSet<String> {
        self.answers.lock().keys().map(|it| it.0.clone()).collect()
    }
}

impl Kept for Memory {
    fn has_before(&self, of: &str) -> bool {
        self.before.lock().contains_key(of)
    }

    fn before(&self, of: &str) -> Option<KeptList> {
        self.before.lock().get(of).cloned()
    }

    fn change(&self, of: &str, change: KeptChange) {
        let mut lists = self.lists.lock();
        let (objects, version) = lists.entry(of.to_owned()).or_default();
        match change {
            KeptChange::Applied { key, object, .. } => drop(objects.insert(key, object)),
            KeptChange::Gone(key) => drop(objects.remove(&key)),
            KeptChange::Whole { version: new, .. } => {
                *version = Some(new);
                self.before.lock().remove(of);
            }
            KeptChange::Forgotten => {
                lists.remove(of);
                self.before.lock().remove(of);
            }
        }
    }

    fn begin_owner(&self, _owner: &str) {}

    fn answer(&self, owner: &str, what: &str) -> Option<Option<Bytes>> {
        self.answers.lock().get(&(owner.to_owned(), what.to_owned())).cloned()
    }

    fn keep_answer(&self, owner: &str, what: &str, answer: Option<Bytes>) {
        self.answers.lock().insert((owner.to_owned(), what.to_owned()), answer);
    }

    fn forget_answer(&self, owner: &str, what: &str) {
        self.answers.lock().remove(&(owner.to_owned(), what.to_owned()));
    }

    fn forget_owner(&self, owner: &str) {
        self.answers.lock().retain(|it, _| it.0 != owner);
    }
}
